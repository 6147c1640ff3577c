/**
 * Survey: looks at the logs and lays out the ranges of the next epoch.
 *
 * Reads:  bounds of every source, the last manifest. Writes: nothing.
 * Safe to repeat because: it only reads. What it refuses (a recreated topic, lost offsets, a log that ends before
 * what was committed) it refuses by code, never by skipping.
 */
import { PawlError } from '../model/errors.ts'
import type { PartitionLag } from '../model/event.ts'
import type { DrainEnd } from '../model/head.ts'
import type { Manifest, PartitionProgress, PlannedRange } from '../model/manifest.ts'
import type { RangeText } from '../model/offsets.ts'
import type { LogBounds } from '../ports/log.ts'
import { type Job, openSource } from './job.ts'

export interface Survey {
  /** Sorted by source, partition; all partitions, also those without new offsets. */
  readonly ranges: readonly PlannedRange[]
  /** Offsets that the ranges span. */
  readonly span: number
  /** Offsets that the logs hold beyond the last committed epoch, by partition. */
  readonly lag: readonly PartitionLag[]
  /** Offsets at which logs wait for something that is missing, though they know of offsets behind. */
  readonly awaited: readonly { readonly source: string; readonly partition: number; readonly offset: string }[]
  /** Ranges that the logs lost and that a policy lets go. */
  readonly lost: readonly RangeText[]
}

interface Available {
  readonly source: string
  readonly partition: number
  readonly topicId: string
  readonly start: bigint
  readonly end: bigint
  /** Where this epoch must stop, at most `end`. */
  readonly limit: bigint
  /** Behind the last offset that the log knows of. */
  readonly known: bigint
}

/**
 * Lays out what may be read; with `ends`, nothing at or beyond them, and nothing of partitions that they do not name.
 * Throws `TOPIC_RECREATED`, `LOG_OFFSET_LOST`, `LOG_SHRUNK`, and what the sources throw.
 */
export async function survey(
  job: Job,
  parent: Manifest,
  spanMax: number,
  inOrder: boolean,
  ends: readonly DrainEnd[] | null = null,
): Promise<Survey> {
  const stops = ends && new Map(ends.map(({ source, partition, end }) => [`${source}/${partition}`, BigInt(end)]))
  const lost: RangeText[] = []
  const available: Available[] = []
  for (const source of Object.keys(job.compiled.sources).sort()) {
    const bounds = await (await openSource(job, source, parent.incarnation)).bounds()
    for (const at of await availableOf(job, source, bounds, parent, lost))
      available.push({ ...at, limit: limitOf(at, stops) })
  }
  const taken = inOrder ? takeInOrder(available, BigInt(spanMax)) : takeEvenly(available, BigInt(spanMax))
  return {
    ranges: available.map((at, i) => ({
      source: at.source,
      partition: at.partition,
      topicId: at.topicId,
      start: at.start.toString(),
      end: (at.start + taken[i]).toString(),
      caughtUp: at.start + taken[i] === at.end,
    })),
    span: Number(taken.reduce((sum, span) => sum + span, 0n)),
    lag: available.map((at) => ({
      source: at.source,
      topic: topicOf(job, at.source),
      partition: at.partition,
      records: (at.known - at.start).toString(),
    })),
    awaited: available
      .filter(({ known, end }) => known > end)
      .map(({ source, partition, end }) => ({ source, partition, offset: end.toString() })),
    lost,
  }
}

function limitOf(
  { source, partition, start, end }: Omit<Available, 'limit'>,
  stops: ReadonlyMap<string, bigint> | null,
) {
  if (stops === null) return end
  const stop = stops.get(`${source}/${partition}`)
  return stop === undefined || stop < start ? start : least(end, stop)
}

async function availableOf(
  job: Job,
  source: string,
  bounds: LogBounds,
  parent: Manifest,
  lost: RangeText[],
): Promise<Omit<Available, 'limit'>[]> {
  const known = new Map(parent.progress.filter((at) => at.source === source).map((at) => [at.partition, at]))
  const first = known.size === 0 ? await resolveStart(job, source, parent.incarnation) : null
  const available: Omit<Available, 'limit'>[] = []
  for (const bound of bounds.partitions) {
    const progress = known.get(bound.partition)
    if (progress) refuseOther(job, source, bounds, progress)
    const wanted = progress ? BigInt(progress.end) : (first?.get(bound.partition) ?? bound.start)
    const start = wanted < bound.start ? skipLost(job, source, bound, wanted, lost) : wanted
    if (bound.end < start) throw shrunk(job, source, bound, start)
    const { partition, end } = bound
    available.push({ source, partition, topicId: bounds.topicId, start, end, known: bound.known ?? end })
  }
  for (const partition of known.keys()) {
    if (partition >= bounds.partitions.length) {
      throw new PawlError('LOG_SHRUNK', `${topicOf(job, source)} has no partition ${partition} any more`, {
        source,
        partition,
      })
    }
  }
  return available
}

function refuseOther(job: Job, source: string, bounds: LogBounds, progress: PartitionProgress): void {
  if (progress.topicId === bounds.topicId) return
  throw new PawlError('TOPIC_RECREATED', `${topicOf(job, source)} was ${progress.topicId} and is ${bounds.topicId}`, {
    source,
    topic: topicOf(job, source),
  })
}

function skipLost(
  job: Job,
  source: string,
  bound: { partition: number; start: bigint },
  wanted: bigint,
  lost: RangeText[],
): bigint {
  const range = { source, partition: bound.partition, start: wanted.toString(), end: bound.start.toString() }
  if (job.compiled.sources[source].onLostOffsets !== 'skip') {
    throw new PawlError(
      'LOG_OFFSET_LOST',
      `${topicOf(job, source)}/${bound.partition} starts at ${range.end}, ${range.start} comes next`,
      range,
    )
  }
  lost.push(range)
  return bound.start
}

function shrunk(job: Job, source: string, bound: { partition: number; end: bigint }, start: bigint): PawlError {
  const fault = `${topicOf(job, source)}/${bound.partition} ends at ${bound.end}, ${start} comes next`
  return new PawlError('LOG_SHRUNK', fault, {
    source,
    partition: bound.partition,
    end: bound.end.toString(),
    committed: start.toString(),
  })
}

function topicOf(job: Job, source: string): string {
  return job.compiled.sources[source].topic
}

async function resolveStart(job: Job, source: string, incarnation: string): Promise<ReadonlyMap<number, bigint>> {
  return (await openSource(job, source, incarnation)).resolve(job.compiled.sources[source].start)
}

const least = (a: bigint, b: bigint) => (a < b ? a : b)

/** Equal shares, and what one partition leaves goes to the others. */
function takeEvenly(available: readonly Available[], budget: bigint): bigint[] {
  const taken = available.map(() => 0n)
  let left = budget
  let open = available.map((_, i) => i).filter((i) => available[i].limit > available[i].start)
  while (left > 0n && open.length > 0) {
    const share = left / BigInt(open.length) || 1n
    for (const i of open) {
      const room = available[i].limit - available[i].start - taken[i]
      const span = least(room, least(share, left))
      taken[i] += span
      left -= span
    }
    open = open.filter((i) => available[i].start + taken[i] < available[i].limit)
  }
  return taken
}

/** First partition first: a bisection must meet the same records again. */
function takeInOrder(available: readonly Available[], budget: bigint): bigint[] {
  let left = budget
  return available.map((at) => {
    const room = at.limit - at.start
    const span = least(room, left)
    left -= span
    return span
  })
}
