/**
 * Report health: how a pipeline fares, looked at from outside, so that it is told even when no run ever starts.
 *
 * Reads:  the head, the last manifest, the bounds of the logs, one record of each partition that lags. Writes: nothing.
 * Safe to repeat because: it only reads, and nothing decides by it. Never throws for what a run would report better:
 * what cannot be read is null, which alarms treat as bad news.
 */
import type { PartitionLag, ProgressEvent } from '../model/event.ts'
import type { Head } from '../model/head.ts'
import type { LogSource } from '../ports/log.ts'
import { isPaused } from './decide.ts'
import { type Job, openSource, readManifest } from './job.ts'

/** Partitions that are asked for their oldest record at once, and how much of each. */
const peeksAtOnce = 8
const peekBytes = 64 * 1024

/** How the pipeline fares now. `head` as it was read just before; null when the pipeline never ran. */
export async function reportHealth(job: Job, head: Head | null): Promise<ProgressEvent> {
  const lag = head === null ? null : await lagOf(job, head).catch(() => null)
  const nowMs = job.place.clock.nowMs()
  const parked = head?.parked ?? null
  const usage = job.place.usage?.()
  return {
    event: 'health',
    pipeline: job.compiled.topology.pipeline,
    step: null,
    run: head?.run.id ?? null,
    epoch: head?.committed.epoch ?? null,
    attempt: head?.open?.attempt ?? null,
    stage: null,
    task: null,
    promotedThrough: head?.promotedThrough ?? 0,
    lag,
    stalledMs: head === null ? null : stalledMs(head, lag, nowMs),
    unpromotedMs: head === null ? 0 : unpromotedMs(head, nowMs),
    parked: parked && { kind: parked.kind, code: parked.code, message: parked.message },
    ...(usage === undefined ? {} : { usage }),
  }
}

/**
 * How long records have waited although the pipeline could go on. The oldest record tells how long, unless its
 * timestamp is not of the past; time since the last commit bounds it, since a replay may bring old timestamps.
 */
export function stalledMs(head: Head, lag: readonly PartitionLag[] | null, nowMs: number): number | null {
  // Each of these is told by itself; one trouble is not told twice.
  if (isPaused(head) || head.parked !== null || head.committed.epoch > head.promotedThrough) return 0
  if (lag === null) return null
  const waiting = lag.filter(({ records }) => records !== '0')
  if (waiting.length === 0) return 0
  const sinceMs = Math.max(0, nowMs - head.committed.atMs)
  const ages = waiting.map(({ ageMs }) => ageMs ?? Number.POSITIVE_INFINITY)
  return Math.min(sinceMs, Math.max(...ages))
}

function unpromotedMs(head: Head, nowMs: number): number {
  return head.committed.epoch > head.promotedThrough ? Math.max(0, nowMs - head.committed.atMs) : 0
}

/** Records beyond the last committed epoch, with the age of the oldest. Throws what sources and store throw. */
async function lagOf(job: Job, head: Head): Promise<PartitionLag[]> {
  const { progress } = await readManifest(job, head.committed.manifest)
  const found: PartitionLag[] = []
  for (const source of Object.keys(job.compiled.sources).sort()) {
    const log = await openSource(job, source, head.incarnation)
    const { topicId, partitions } = await log.bounds()
    const waiting = partitions.map(({ partition, start, end, known = end }) => {
      const at = progress.find((known) => known.source === source && known.partition === partition)
      const next = at === undefined || BigInt(at.end) < start ? start : BigInt(at.end)
      return { partition, topicId, start: next, end: end < next ? next : end, known: known < next ? next : known }
    })
    const { topic } = job.compiled.sources[source]
    for (let from = 0; from < waiting.length; from += peeksAtOnce) {
      const ages = waiting.slice(from, from + peeksAtOnce).map(async (range) => {
        const { known, ...readable } = range
        const records = (known - range.start).toString()
        return { source, topic, partition: range.partition, records, ageMs: await ageOf(job, log, readable) }
      })
      found.push(...(await Promise.all(ages)))
    }
  }
  return found
}

type Waiting = Parameters<LogSource['read']>[0]

/** Null when nothing is visible there, or when its timestamp is none or of the future. */
async function ageOf(job: Job, log: LogSource, range: Waiting): Promise<number | null> {
  if (range.end <= range.start) return null
  for await (const batch of log.read({ ...range, bytesMax: peekBytes })) {
    if (batch.count === 0) continue
    const timestampMs = Number(batch.timestamps[0])
    const nowMs = job.place.clock.nowMs()
    return timestampMs > 0 && timestampMs <= nowMs ? nowMs - timestampMs : null
  }
  return null
}
