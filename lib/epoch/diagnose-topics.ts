/**
 * Diagnose topics: whether brokers answer, what the principal may do, how markers are kept, how long input lasts.
 *
 * Reads:  bounds, settings and the first unread record of each source. Writes: nothing.
 * Safe to repeat because: it only reads.
 */
import type { Head } from '../model/head.ts'
import type { Manifest } from '../model/manifest.ts'
import type { LogBounds } from '../ports/log.ts'
import type { ClusterSpec, TopicSpec } from '../ports/spec.ts'
import type { TopicOperation, TopicReport } from '../ports/surroundings.ts'
import { broken, type Finding, ill, type Patient, well } from './finding.ts'
import { type Job, openSource } from './job.ts'

/** How far behind the unread input may be, as a share of its retention. */
const ageShareWarn = 0.5
const ageShareFail = 0.9
/** Offsets among which the first unread record is looked for: control batches and holes come before it. */
const probeSpan = 1000n

type Spec = TopicSpec<unknown, unknown>

/** Findings for each source, then for each sink that is a topic. */
export async function diagnoseTopics(
  patient: Patient,
  head: Head | null,
  manifest: Manifest | null,
): Promise<Finding[]> {
  const { compiled } = patient.job
  const found: Finding[] = []
  for (const [id, spec] of Object.entries(compiled.sources))
    found.push(...(await diagnoseSource(patient, id, spec, head, manifest)))
  for (const [id, spec] of Object.entries(compiled.sinks))
    if (spec.kind === 'topic') found.push(...(await diagnoseSink(patient, id, spec, head)))
  return found
}

async function diagnoseSource(
  { job, cluster }: Patient,
  id: string,
  spec: Spec,
  head: Head | null,
  manifest: Manifest | null,
): Promise<Finding[]> {
  const check = `source ${id}`
  try {
    const report = await reportOf(spec.cluster ?? cluster, spec.topic)
    const denied = report === null ? null : refusal(check, report, ['Describe', 'Read'])
    if (denied !== null) return [denied]
    const bounds = await (await openSource(job, id, head?.incarnation ?? '')).bounds()
    return [
      well(check, `${spec.topic} may be read: ${bounds.partitions.length} partition(s)`),
      ...(manifest === null ? [] : await retentionFindings(job, id, report, bounds, manifest)),
    ]
  } catch (error) {
    return [broken(check, error)]
  }
}

/** Null where the topic is no topic of a cluster that answers such questions. */
async function reportOf(cluster: ClusterSpec | null, topic: string): Promise<TopicReport | null> {
  return (await cluster?.inspect?.([topic]))?.[0] ?? null
}

/** What keeps the principal from the topic; null when nothing is known to. */
function refusal(
  check: string,
  { topic, exists, operations }: TopicReport,
  needed: readonly TopicOperation[],
): Finding | null {
  if (!exists)
    return ill(
      check,
      'fail',
      `there is no topic ${topic}, or it may not be seen`,
      `create ${topic}, or allow Describe`,
      'TOPIC_MISSING',
    )
  const lacking = needed.filter((operation) => operations !== null && !operations.has(operation))
  if (lacking.length === 0) return null
  const mend = `grant the principal ${lacking.join(' and ')} on topic ${topic}`
  return ill(check, 'fail', `the principal may not ${lacking.join(' or ')} ${topic}`, mend, 'AUTHORIZATION_FAILED')
}

async function diagnoseSink(
  { job, cluster, stage }: Patient,
  id: string,
  spec: Spec,
  head: Head | null,
): Promise<Finding[]> {
  const check = `sink ${id}`
  const at = spec.cluster ?? cluster
  if (at?.inspect === undefined) return []
  try {
    const topics = spec.route?.topics ?? [spec.topic]
    const { pipeline } = job.compiled.topology
    const control = at.controlTopic?.(id, { stage, pipeline })
    const reports = await at.inspect([...topics, ...(control === undefined ? [] : [control])])
    const targets = reports.filter(({ topic }) => topic !== control)
    const refused = targets.flatMap((report) => refusal(check, report, ['Describe', 'Write']) ?? [])
    const marked = reports.find(({ topic }) => topic === control)
    const sound = well(check, `${topics.join(', ')} may be written`)
    return [
      ...(refused.length > 0 ? refused : [sound]),
      ...(marked === undefined ? [] : [controlFinding(marked, id, head)]),
    ]
  } catch (error) {
    return [broken(check, error)]
  }
}

/** The topic of markers is made by the first plan; from then on it must stay, and keep the last record of each key. */
function controlFinding(report: TopicReport, sink: string, head: Head | null): Finding {
  const check = `control topic of ${sink}`
  const { topic, exists, configs } = report
  const isRegistered = head?.lanes.some((lane) => lane.sink === sink) ?? false
  if (!exists && !isRegistered) return well(check, `${topic} is made by the first run`)
  const refused = refusal(check, report, ['Describe', 'Read', 'Write'])
  if (refused !== null) return refused
  const policy = configs?.get('cleanup.policy')
  if (policy === undefined)
    return ill(check, 'warn', `the settings of ${topic} may not be read`, `grant DescribeConfigs on ${topic}`)
  if (policy === 'compact') return well(check, `${topic} is compacted`)
  const mend = `set cleanup.policy=compact on ${topic}: the broker deletes markers otherwise`
  return ill(check, 'fail', `${topic} has cleanup.policy=${policy}`, mend, 'CONTROL_TOPIC_INVALID')
}

/** Input that is not read in time is deleted by the broker. */
async function retentionFindings(
  job: Job,
  id: string,
  report: TopicReport | null,
  bounds: LogBounds,
  { progress, incarnation }: Manifest,
): Promise<Finding[]> {
  const check = `retention of ${id}`
  const mend = 'raise retention.ms of the topic, and let the pipeline catch up: more shards, or mend what holds it'
  const own = progress.filter(({ source }) => source === id)
  const behind = own.flatMap(({ partition, end }) => {
    const bound = bounds.partitions[partition]
    return bound === undefined || bound.end <= BigInt(end) ? [] : [{ ...bound, next: BigInt(end) }]
  })
  const lost = behind.find(({ start, next }) => start > next)
  if (lost !== undefined) {
    const text = `partition ${lost.partition} begins at ${lost.start}, ${lost.next} comes next: the broker has deleted unread records`
    return [
      ill(
        check,
        'fail',
        text,
        'raise retention.ms, and choose onLostOffsets if what is lost may be skipped',
        'LOG_OFFSET_LOST',
      ),
    ]
  }
  const retentionMs = Number(report?.configs?.get('retention.ms') ?? -1)
  if (retentionMs < 0 || report?.configs?.get('cleanup.policy') === 'compact')
    return [well(check, 'input is not deleted by age')]
  const source = await openSource(job, id, incarnation)
  let oldestMs = Number.POSITIVE_INFINITY
  for (const { partition, next, end } of behind) {
    const stop = end < next + probeSpan ? end : next + probeSpan
    for await (const { timestamps, count } of source.read({ partition, start: next, end: stop })) {
      if (count > 0) oldestMs = Math.min(oldestMs, timestamps[0] ?? Number.POSITIVE_INFINITY)
      break
    }
  }
  const ageMs = Math.max(0, job.place.clock.nowMs() - oldestMs)
  const text = `the oldest unread record is ${seconds(ageMs)} s old, the topic keeps ${seconds(retentionMs)} s`
  if (!Number.isFinite(oldestMs) || ageMs < retentionMs * ageShareWarn)
    return [well(check, Number.isFinite(oldestMs) ? text : 'everything is read')]
  return [ill(check, ageMs < retentionMs * ageShareFail ? 'warn' : 'fail', text, mend)]
}

const seconds = (ms: number) => Math.round(ms / 1000)
