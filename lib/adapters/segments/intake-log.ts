/**
 * The intake as a log: what events and reads from the broker laid down of a topic, each offset once.
 *
 * Segments may overlap, come in any order and be laid down by several at once. The end of a partition is its first
 * gap: an offset that is missing may be a hole or a batch that was lost, and only the broker knows which. Where
 * segments overlap their records must be the same, or the topic is another than it was.
 */
import { PawlError } from '../../model/errors.ts'
import type { PartitionBatch, PlacedRecord } from '../../model/mapping-event.ts'
import { Columns } from '../../model/record-columns.ts'
import { decodeBatches } from '../../model/record-decode.ts'
import type { LogBatch } from '../../model/records.ts'
import type { LogBounds, LogSource, StartPosition } from '../../ports/log.ts'
import type { Store } from '../../ports/store.ts'
import { assertWithinLog, partitionMissing } from '../shared/log-ranges.ts'
import { differing, digestsOf, placedDigests } from './intake-digest.ts'
import {
  type Coverage,
  coverageOf,
  doubtName,
  floorName,
  type IntakeListing,
  type Interval,
  intervalsOf,
  lifeName,
  listIntake,
  mustBeSound,
  type RunsCache,
} from './intake-listing.ts'
import {
  batchesWithin,
  brokerSegment,
  eventSegment,
  type IntakePlace,
  type IntakeSegment,
  intakePrefix,
  intakeSegmentOf,
  type Run,
} from './intake-segment.ts'
import { segmentDamaged } from './segment.ts'

/** A topic as the intake of one pipeline holds it. */
export interface IntakeLog extends LogSource {
  readonly topic: string
  /** All objects now, and what they cover of each described partition. */
  look(): Promise<IntakeListing & { readonly coverage: ReadonlyMap<number, Coverage> }>
  /**
   * Lays a batch of an event down; durable when it resolves. `committed` is the offset that the pipeline goes on from,
   * null while there is none: what lies below is compared with what is here. Throws `INTAKE_CONFLICT`, and what the
   * store throws for an outcome that is open: to be repeated then.
   */
  lay(batch: PartitionBatch, committed: bigint | null): Promise<void>
  /** Lays down what the broker has of a range, holes included. */
  layRange(partition: number, range: Run, records: readonly PlacedRecord[]): Promise<void>
  /** Describes a partition: the topic's id at the broker, and where the pipeline begins. */
  describe(topicId: string, partition: number, start: bigint): Promise<void>
  /** Removes doubts, once the broker has said that the topic is the one that was described. */
  clear(doubts: readonly string[]): Promise<void>
}

/** Opens the intake of a topic, without a call. */
export function openIntakeLog(store: Store, pipeline: string, topic: string): IntakeLog {
  return new OpenIntake(store, intakePrefix(pipeline, topic), topic)
}

class OpenIntake implements IntakeLog {
  readonly topic: string
  readonly #store: Store
  readonly #prefix: string
  readonly #runs: RunsCache = new Map()

  constructor(store: Store, prefix: string, topic: string) {
    this.#store = store
    this.#prefix = prefix
    this.topic = topic
  }

  async look(): Promise<IntakeListing & { readonly coverage: ReadonlyMap<number, Coverage> }> {
    const listing = await listIntake(this.#store, this.#prefix)
    const coverage = new Map<number, Coverage>()
    for (const [partition, start] of listing.starts) {
      coverage.set(partition, coverageOf(start, await this.#intervals(listing, partition, start)))
    }
    return { ...listing, coverage }
  }

  async bounds(): Promise<LogBounds> {
    const { coverage, ...listing } = await this.look()
    const topicId = mustBeSound(this.topic, listing)
    const partitions: LogBounds['partitions'][number][] = []
    // Partitions are described in order: behind one that is missing the description is not complete.
    for (let partition = 0; coverage.has(partition); partition++) {
      const { start, end, known } = coverage.get(partition)!
      partitions.push({ partition, start, end, ...(known > end ? { known } : {}) })
    }
    return { topicId, partitions }
  }

  /** The position was resolved when the topic was described: an intake has nothing from before. */
  async resolve(_position: StartPosition): Promise<ReadonlyMap<number, bigint>> {
    const { partitions } = await this.bounds()
    return new Map(partitions.map(({ partition, start }) => [partition, start]))
  }

  async *read(range: Parameters<LogSource['read']>[0]): AsyncGenerator<LogBatch, void, undefined> {
    const { partition, start, end, topicId } = range
    const listing = await listIntake(this.#store, this.#prefix)
    const found = mustBeSound(this.topic, listing)
    if (topicId !== undefined && topicId !== found) {
      throw new PawlError('TOPIC_RECREATED', `${this.topic} has id ${found}, not ${topicId}`, { topic: this.topic })
    }
    const first = listing.starts.get(partition)
    if (first === undefined) throw partitionMissing(this.topic, partition)
    const intervals = await this.#intervals(listing, partition, first)
    assertWithinLog(this.topic, range, coverageOf(first, intervals))
    const within = intervals.filter((interval) => interval.end > start && interval.start < end)
    const reading = new Reading(this.#store, this.topic)
    const columns = new Columns()
    for (let at = start; at < end; ) {
      const chosen = widest(within, at)
      const until = earlier(chosen.end, end)
      await reading.mustAgree(chosen, { start: at, end: until }, within)
      const bytes = await reading.batches(chosen.segment)
      yield* decodeBatches(bytes, { topic: this.topic, partition, start: at, end: until, columns }).batches
      at = until
    }
  }

  async lay(batch: PartitionBatch, committed: bigint | null): Promise<void> {
    const place = this.#place(batch.partition)
    const { name, chunks } = eventSegment(place, batch.records)
    const segment = intakeSegmentOf(name)!
    if (committed !== null && segment.start < committed) await this.#compare(batch, segment, committed)
    await this.#store.create(name, chunks)
  }

  async layRange(partition: number, range: Run, records: readonly PlacedRecord[]): Promise<void> {
    const { name, chunks } = brokerSegment(this.#place(partition), range, records)
    await this.#store.create(name, chunks)
  }

  async describe(topicId: string, partition: number, start: bigint): Promise<void> {
    await this.#store.create(lifeName(this.#prefix, topicId, partition, start), [])
  }

  async clear(doubts: readonly string[]): Promise<void> {
    await this.#store.delete(doubts)
  }

  /** The floor comes first: a reader must never find the segments gone and the start where it was. */
  async retain(from: ReadonlyMap<number, bigint>): Promise<void> {
    const listing = await listIntake(this.#store, this.#prefix)
    const garbage: string[] = []
    for (const [partition, offset] of from) {
      const start = listing.starts.get(partition)
      if (start === undefined || offset < start) continue
      if (offset > start) await this.#store.create(floorName(this.#prefix, partition, offset), [])
      const below = listing.floors.filter((floor) => floor.partition === partition && floor.offset < offset)
      const passed = (listing.segments.get(partition) ?? []).filter(({ end }) => end <= offset)
      garbage.push(...below.map(({ name }) => name), ...passed.map(({ name }) => name))
    }
    if (garbage.length > 0) await this.#store.delete(garbage)
  }

  async close(): Promise<void> {}

  #place(partition: number): IntakePlace {
    return { prefix: this.#prefix, topic: this.topic, partition }
  }

  #intervals({ segments }: IntakeListing, partition: number, from: bigint): Promise<Interval[]> {
    return intervalsOf(this.#store, this.topic, segments.get(partition) ?? [], from, this.#runs)
  }

  /**
   * Holds a batch that begins below what is committed against what is here: nobody reads those offsets again. Where
   * nothing is left to compare with, a doubt is noted before the batch is laid down, and stops the pipeline until the
   * broker is asked.
   */
  async #compare({ partition, records }: PartitionBatch, segment: IntakeSegment, committed: bigint): Promise<void> {
    const listing = await listIntake(this.#store, this.#prefix)
    const there = (listing.segments.get(partition) ?? []).filter(({ start }) => start < segment.end)
    if (there.some(({ name }) => name === segment.name)) return
    const intervals = await intervalsOf(this.#store, this.topic, there, segment.start, this.#runs)
    const reading = new Reading(this.#store, this.topic)
    const mine = placedDigests(records)
    let covered = segment.start
    for (const { start, end, segment: other } of intervals) {
      const theirs = digestsOf(await reading.batches(other), { topic: this.topic, partition, start, end })
      for (const { offset } of records) {
        if (offset >= start && offset < end && mine.get(offset) !== theirs.get(offset))
          throw conflict(this.topic, partition, offset)
      }
      if (start <= covered && end > covered) covered = end
    }
    if (covered < segment.end && covered < committed) await this.#store.create(doubtName(this.#prefix, segment), [])
  }
}

/** Bytes of segments while one range is read; keeps the last ones. */
class Reading {
  readonly #store: Store
  readonly #topic: string
  readonly #held = new Map<string, Buffer>()

  constructor(store: Store, topic: string) {
    this.#store = store
    this.#topic = topic
  }

  async batches(segment: IntakeSegment): Promise<Buffer> {
    const held = this.#held.get(segment.name)
    if (held !== undefined) return held
    const bytes = await this.#store.read(segment.name)
    const place = { topic: this.#topic, partition: segment.partition, base: segment.start, name: segment.name }
    if (bytes === null) throw segmentDamaged('it is missing', place)
    if (this.#held.size >= 2) this.#held.delete(this.#held.keys().next().value as string)
    const batches = batchesWithin(bytes, this.#topic, segment)
    this.#held.set(segment.name, batches)
    return batches
  }

  /** Throws `INTAKE_CONFLICT` unless every other interval says the same of `range` as the chosen one. */
  async mustAgree(chosen: Interval, range: Run, intervals: readonly Interval[]): Promise<void> {
    const { partition } = chosen.segment
    for (const other of intervals) {
      if (other.start >= range.end) break
      if (other.segment.name === chosen.segment.name) continue
      const start = later(other.start, range.start)
      const end = earlier(other.end, range.end)
      if (start >= end) continue
      const within = { topic: this.#topic, partition, start, end }
      const mine = digestsOf(await this.batches(chosen.segment), within)
      const offset = differing(mine, digestsOf(await this.batches(other.segment), within))
      if (offset !== null) throw conflict(this.#topic, partition, offset)
    }
  }
}

const earlier = (a: bigint, b: bigint) => (a < b ? a : b)
const later = (a: bigint, b: bigint) => (a > b ? a : b)

/** The interval that holds `offset` and reaches furthest. */
function widest(intervals: readonly Interval[], offset: bigint): Interval {
  let found: Interval | null = null
  for (const interval of intervals) {
    if (interval.start > offset) break
    if (interval.end > offset && (found === null || interval.end > found.end)) found = interval
  }
  return found!
}

function conflict(topic: string, partition: number, offset: bigint): PawlError {
  const details = { topic, partition, offset: offset.toString() }
  return new PawlError('INTAKE_CONFLICT', `offset ${offset} of ${topic}/${partition}`, details)
}
