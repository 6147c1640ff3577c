/**
 * What is known of a topic of the intake, from the names of its objects.
 *
 * Below `intake/<pipeline>/<topic>/` lie, all of them immutable:
 * - `lives/<topic id>/<partition>-<start>`: a partition as the broker described it, and where the pipeline begins in it;
 * - `segments/<partition>/…`: records, see `intake-segment.ts`;
 * - `floors/<partition>/<offset>`: below it everything may be gone, since no root needs it any more;
 * - `doubts/<partition>-<start>-<end>-<hash>`: a batch below the floor, which nothing here can be compared with.
 */
import { PawlError } from '../../model/errors.ts'
import type { Store } from '../../ports/store.ts'
import {
  decodeRuns,
  type IntakeSegment,
  intakeSegmentOf,
  offsetName,
  partitionText,
  type Run,
  runsWithin,
} from './intake-segment.ts'
import { segmentDamaged } from './segment.ts'

/** A look at all objects of a topic. */
export interface IntakeListing {
  /** Ids under which the broker knew the topic; more than one when it was created again. */
  readonly topicIds: readonly string[]
  /** Where each described partition begins for the pipeline, by partition, floors included. */
  readonly starts: ReadonlyMap<number, bigint>
  readonly floors: readonly { readonly name: string; readonly partition: number; readonly offset: bigint }[]
  readonly doubts: readonly string[]
  /** By partition, ascending by start. */
  readonly segments: ReadonlyMap<number, readonly IntakeSegment[]>
}

/** A partition as far as it is laid down. */
export interface Coverage {
  /** Everything in `[start, end)` is here, or known to be a hole. */
  readonly start: bigint
  readonly end: bigint
  /** The offset behind the last one that is here. */
  readonly known: bigint
  /** What is missing between `end` and `known`, ascending. */
  readonly gaps: readonly Run[]
}

/** Describes a partition, under the id of its topic. */
export const lifeName = (prefix: string, topicId: string, partition: number, start: bigint) =>
  `${prefix}lives/${topicId}/${partitionText(partition)}-${offsetName(start)}`
/** Says that nothing below the offset is read any more. */
export const floorName = (prefix: string, partition: number, offset: bigint) =>
  `${prefix}floors/${partitionText(partition)}/${offsetName(offset)}`
/** Says that a segment could not be compared with what it repeats. */
export const doubtName = (prefix: string, { partition, start, end, hash }: IntakeSegment) =>
  `${prefix}doubts/${partitionText(partition)}-${offsetName(start)}-${offsetName(end)}-${hash}`

/** Lists a topic, in one pass. */
export async function listIntake(store: Store, prefix: string): Promise<IntakeListing> {
  const lives: { topicId: string; partition: number; start: bigint }[] = []
  const floors: { name: string; partition: number; offset: bigint }[] = []
  const doubts: string[] = []
  const segments = new Map<number, IntakeSegment[]>()
  for await (const { name } of store.list(prefix)) {
    const [kind, first = '', second = ''] = name.slice(prefix.length).split('/')
    if (kind === 'lives') {
      const [partition, start] = second.split('-')
      lives.push({ topicId: first, partition: Number(partition), start: BigInt(start!) })
    } else if (kind === 'floors') floors.push({ name, partition: Number(first), offset: BigInt(second) })
    else if (kind === 'doubts') doubts.push(name)
    const segment = intakeSegmentOf(name)
    if (segment === null) continue
    const found = segments.get(segment.partition)
    if (found === undefined) segments.set(segment.partition, [segment])
    else found.push(segment)
  }
  const starts = startsOf(lives, floors)
  return { topicIds: [...new Set(lives.map(({ topicId }) => topicId))], starts, floors, doubts, segments }
}

/** Of two descriptions of a partition the one counts that begins earlier: it misses nothing. */
function startsOf(
  lives: readonly { readonly partition: number; readonly start: bigint }[],
  floors: IntakeListing['floors'],
): ReadonlyMap<number, bigint> {
  const starts = new Map<number, bigint>()
  for (const { partition, start } of lives) {
    const before = starts.get(partition)
    if (before === undefined || start < before) starts.set(partition, start)
  }
  for (const { partition, offset } of floors) {
    if (offset > (starts.get(partition) ?? offset)) starts.set(partition, offset)
  }
  return starts
}

/** Throws what must stop a reader: `INTAKE_UNDESCRIBED`, `INTAKE_UNVERIFIED`, `TOPIC_RECREATED`. */
export function mustBeSound(topic: string, { topicIds, doubts }: IntakeListing): string {
  const [topicId, another] = topicIds
  if (topicId === undefined) throw new PawlError('INTAKE_UNDESCRIBED', topic, { topic })
  if (another !== undefined) {
    const fault = `${topic} had the ids ${topicIds.join(' and ')}`
    throw new PawlError('TOPIC_RECREATED', fault, { topic, topicIds: topicIds.join(' ') })
  }
  if (doubts.length > 0) throw new PawlError('INTAKE_UNVERIFIED', `${topic} (${doubts[0]})`, { topic })
  return topicId
}

/** Tables of runs by the name of their segment, which never changes. */
export type RunsCache = Map<string, readonly Run[]>
const cachedMax = 4_096

/** A run with the segment that it lies in. */
export interface Interval extends Run {
  readonly segment: IntakeSegment
}

/** All runs that reach beyond `from`, ascending by start. Reads the tables of segments with gaps inside. */
export async function intervalsOf(
  store: Store,
  topic: string,
  segments: readonly IntakeSegment[],
  from: bigint,
  cache: RunsCache,
): Promise<Interval[]> {
  const intervals: Interval[] = []
  for (const segment of segments) {
    if (segment.end <= from) continue
    for (const { start, end } of await runsIn(store, topic, segment, cache)) {
      if (end > from) intervals.push({ start, end, segment })
    }
  }
  return intervals.sort((a, b) => (a.start < b.start ? -1 : a.start > b.start ? 1 : 0))
}

async function runsIn(store: Store, topic: string, segment: IntakeSegment, cache: RunsCache): Promise<readonly Run[]> {
  if (segment.runs === 1) return [segment]
  const known = cache.get(segment.name)
  if (known !== undefined) return known
  const within = runsWithin(segment)
  const bytes = await store.read(segment.name, within)
  if (bytes?.length !== within.end - within.start) {
    throw segmentDamaged('its runs are missing', { ...segment, topic, base: segment.start })
  }
  if (cache.size >= cachedMax) cache.clear()
  const runs = decodeRuns(bytes)
  cache.set(segment.name, runs)
  return runs
}

/** How far the intervals reach from `start` without a gap, and what is missing behind. */
export function coverageOf(start: bigint, intervals: readonly Interval[]): Coverage {
  const gaps: Run[] = []
  let known = start
  for (const interval of intervals) {
    if (interval.start > known) gaps.push({ start: known, end: interval.start })
    if (interval.end > known) known = interval.end
  }
  return { start, end: gaps[0]?.start ?? known, known, gaps }
}
