/**
 * `pawl status`: who holds the pipeline, what is committed, how far behind it is, and why it waits.
 *
 * Lag is known for embedded logs alone, since no pipeline file and no broker are asked: a log belongs to a source
 * when its topic id is the one that was read.
 */
import { openSegmentLog } from '../adapters/segments/log.ts'
import type { PlaceStatus } from '../adapters/system/liveness.ts'
import { systemRandom } from '../adapters/system/random.ts'
import type { Head, Paused } from '../model/head.ts'
import type { Manifest } from '../model/manifest.ts'
import { laneName } from '../model/names.ts'
import type { Store } from '../ports/store.ts'
import { holderOf, manifestIfReadable, type OpenedPipeline, withPipeline } from './open-directory.ts'
import { type Call, type Command, placeOptions } from './parse-arguments.ts'
import { age, count, duration, pairs, time } from './print-values.ts'
import { exitCodes } from './report-error.ts'
import { type Output, type Style, styled } from './write-output.ts'

/** `pawl status [PIPELINE]`. */
export const statusCommand: Command = {
  name: 'status',
  summary: 'say who holds the pipeline, its lag, and why it waits',
  positionals: ['[PIPELINE]'],
  options: placeOptions,
  notes: ['exit code 3 when the pipeline is parked, 4 when it is paused or drains'],
  examples: ['pawl status', 'pawl status word-count --dir /var/lib/pawl', 'pawl status --json | jq .lag'],
  run: ({ options, positionals, output }: Call) =>
    withPipeline(options, positionals[0], (opened) => report(opened, output)),
}

/** Records that one partition holds beyond the last committed epoch; the end is text. */
interface PartitionLag {
  readonly source: string
  readonly partition: number
  readonly records: string
}

async function report(opened: OpenedPipeline, output: Output): Promise<number> {
  const { head, store } = opened
  const manifest = await manifestIfReadable(store, head.committed.manifest)
  const lag = manifest === null ? null : await lagOf(store, manifest)
  const holder = head.run.open ? await holderOf(opened, head) : null
  output.record({ ...headRecord(head, holder), watermarkMs: manifest?.watermarkMs ?? null, holderStatus: holder, lag })
  const style = output.style()
  output.print([...headLines(head, holder, style), ...lagLines(manifest, lag, style)])
  return exitCodeOf(head)
}

function lagLines(manifest: Manifest | null, lag: readonly PartitionLag[] | null, style: Style): string[] {
  const watermark = manifest && time(manifest.watermarkMs)
  if (lag === null || lag.length === 0)
    return pairs([
      ['watermark', watermark ?? '-'],
      ['lag', 'unknown here: pawl doctor asks the brokers'],
    ])
  const total = lag.reduce((sum, { records }) => sum + BigInt(records), 0n)
  const behind = lag.filter(({ records }) => records !== '0')
  const parts = behind.map(({ source, partition, records }) => `${source}/${partition} ${count(style, records)}`)
  return pairs([
    ['watermark', watermark ?? '-'],
    ['lag', [count(style, total), ...(parts.length === 0 ? [] : [`(${parts.join(', ')})`])].join(' ')],
  ])
}

async function lagOf(store: Store, { progress }: Manifest): Promise<PartitionLag[]> {
  const ends = new Map<string, bigint>()
  for (const topic of await embeddedTopics(store)) {
    const { topicId, partitions } = await (await openSegmentLog(store, topic, systemRandom())).bounds()
    for (const { partition, end } of partitions) ends.set(`${topicId}/${partition}`, end)
  }
  return progress.flatMap(({ source, partition, topicId, end }) => {
    const logEnd = ends.get(`${topicId}/${partition}`)
    return logEnd === undefined ? [] : [{ source, partition, records: (logEnd - BigInt(end)).toString() }]
  })
}

/** Names of the logs in a store. */
export async function embeddedTopics(store: Store): Promise<string[]> {
  const topics: string[] = []
  for await (const { name } of store.list('logs/')) {
    const topic = /^logs\/([^/]+)\/topic$/.exec(name)?.[1]
    if (topic !== undefined) topics.push(topic)
  }
  return topics
}

/** The head, as far as people care, in JSON. */
export function headRecord(head: Head, holder: PlaceStatus | null) {
  const { pipeline, incarnation, generation, committed, promotedThrough, retainedFrom, run, open, failures, parked } =
    head
  return {
    pipeline,
    incarnation,
    generation,
    state: stateOf(head, holder),
    committed: { epoch: committed.epoch, atMs: committed.atMs },
    promotedThrough,
    retainedFrom,
    run: { id: run.id, sequence: run.sequence, open: run.open, place: run.place, epochs: run.epochs },
    open: open && { epoch: open.epoch, attempt: open.attempt, openedAtMs: open.openedAtMs, span: open.span },
    failures: { count: failures.count, last: failures.last, notBeforeMs: failures.notBeforeMs },
    parked,
    unconfirmed: head.unconfirmed ?? null,
    refusing: head.refusing ?? [],
    paused: head.paused ?? null,
    hurry: head.hurry ?? null,
  }
}

/** How the pipeline stands, in a word or two. */
export type State = 'parked' | 'draining' | 'pausing' | 'paused' | 'running' | 'abandoned' | 'at rest'

/** `abandoned`: held by a run that is gone; `pausing`: a run is to finish what it began. */
export function stateOf(head: Head, holder: PlaceStatus | null): State {
  if (head.parked !== null) return 'parked'
  if (head.paused?.drain) return 'draining'
  if (head.paused) return isAtRest(head) || holder === 'gone' ? 'paused' : 'pausing'
  if (!head.run.open) return 'at rest'
  return holder === 'gone' ? 'abandoned' : 'running'
}

/** No run holds the pipeline, and everything committed is visible. */
export function isAtRest({ run, open, committed, promotedThrough }: Head): boolean {
  return !run.open && open === null && committed.epoch === promotedThrough
}

/** What scripts ask: parked, paused, or neither. */
export function exitCodeOf({ parked, paused = null }: Head): number {
  if (parked !== null) return exitCodes.parked
  return paused === null ? exitCodes.success : exitCodes.paused
}

const hueOf = {
  parked: 'red',
  draining: 'yellow',
  pausing: 'yellow',
  paused: 'yellow',
  running: 'green',
  abandoned: 'yellow',
  'at rest': 'bold',
} as const

/** The head in aligned lines. */
export function headLines(head: Head, holder: PlaceStatus | null, style: Style): string[] {
  const { committed, open, failures, parked, run } = head
  const state = stateOf(head, holder)
  const rows: [string, string][] = [
    ['pipeline', styled(style, 'bold', head.pipeline)],
    ['state', styled(style, hueOf[state], state)],
    ['committed', `epoch ${count(style, committed.epoch)}, ${time(committed.atMs)} (${age(style, committed.atMs)})`],
    ['promoted', `through epoch ${count(style, head.promotedThrough)}`],
    ['retained', `from epoch ${count(style, head.retainedFrom)}`],
  ]
  const gone = holder === 'gone' ? ', which is gone' : ''
  if (run.open) rows.push(['held by', `run ${run.sequence} at ${run.place}${gone}, generation ${head.generation}`])
  if (open)
    rows.push([
      'open',
      `epoch ${open.epoch}, attempt ${open.attempt.slice(0, 8)}, since ${age(style, open.openedAtMs)}`,
    ])
  if (failures.count > 0) {
    const last = parked === null ? `, last: ${failures.last?.message ?? 'unknown'}` : ''
    rows.push(['failures', `${failures.count} in a row${last}`])
  }
  if (head.unconfirmed)
    rows.push([
      'unconfirmed',
      `${count(style, head.unconfirmed.rows)} rows were given up, at most once, and may not be shown`,
    ])
  if (head.refusing?.length) {
    const lanes = head.refusing.map(({ sink, lane }) => laneName(sink, lane))
    rows.push([
      'refused',
      `${lanes.join(', ')}: the next epoch carries rows that were refused there to the dead letters`,
    ])
  }
  if (parked) rows.push(...parkedRows(parked, style))
  if (head.paused) rows.push(['paused', pausedText(head.paused, style)])
  return pairs(rows)
}

/** When, by whom and why, and how far a drain is to read. */
export function pausedText({ sinceMs, by, why, drain }: Paused, style: Style): string {
  const who = by === null ? '' : ` by ${by}`
  const ends = drain?.ends?.map(({ source, partition, end }) => `${source}/${partition} ${count(style, end)}`)
  const until = drain === null ? '' : `, once it is read up to ${ends?.join(', ') ?? 'the ends of the logs'}`
  return `${age(style, sinceMs)}${who}${why === null ? '' : `: ${why}`}${until}`
}

function parkedRows(parked: NonNullable<Head['parked']>, style: Style): [string, string][] {
  const waits =
    parked.retryAtMs === null
      ? 'for a person or a new build: mend it, then pawl resume'
      : `tries again in ${duration(parked.retryAtMs - style.nowMs)}, ${parked.retries} tries so far`
  return [
    ['parked', `${age(style, parked.sinceMs)}, ${parked.kind}: ${parked.message}`],
    ['waits', waits],
  ]
}
