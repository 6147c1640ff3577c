/**
 * A partitioned log of immutable segments over the store port: the same log in a directory and in a bucket.
 *
 * Needs nothing of the store but create-if-absent, ranged reads and listing. Offsets are dense, exact to int64.
 * A segment that is damaged, missing in the middle, or cut short stops the reader with topic, partition and
 * offset; only segments missing at the beginning move the start. Retention deletes from the front and must leave
 * the last segment, which alone knows the end.
 */
import { isPawlError, PawlError } from '../../model/errors.ts'
import { offsetText } from '../../model/offsets.ts'
import { Columns } from '../../model/record-columns.ts'
import { decodeBatches } from '../../model/record-decode.ts'
import type { LogBatch } from '../../model/records.ts'
import type { LogAppender, LogBounds, LogSource, StartPosition } from '../../ports/log.ts'
import type { Store } from '../../ports/store.ts'
import type { Random } from '../../ports/system.ts'
import { assertWithinLog, type OffsetRange, partitionMissing } from '../shared/log-ranges.ts'
import { explicitOffsets, groupUnsupported } from '../shared/start-positions.ts'
import { appendRecords } from './append.ts'
import { PartitionIndex } from './partition-index.ts'
import { decodeSegmentHeader, segmentDamaged, segmentHeaderBytes, segmentName } from './segment.ts'
import { createTopicObject, growTopic, readTopicObject, type TopicObject } from './topic-object.ts'

/** An open topic. */
export interface SegmentLog extends LogSource, LogAppender {
  /** Adds partitions until there are `partitions`; they start empty. */
  grow(partitions: number): Promise<void>
}

/** Shape of a new topic. */
export interface SegmentLogOptions {
  readonly topic: string
  readonly partitions: number
  /** Ids of topic and appends. */
  readonly random: Random
  /** First offset of every partition; 0 by default. */
  readonly baseOffset?: bigint
}

/** Creates a topic, or opens it as it is when it exists. Safe to repeat and to race. */
export async function createSegmentLog(store: Store, options: SegmentLogOptions): Promise<SegmentLog> {
  const { topic, partitions, random, baseOffset = 0n } = options
  await createTopicObject(store, topic, { topicId: random.id(), partitions, baseOffset })
  return openSegmentLog(store, topic, random)
}

/** Opens a topic. Throws `TOPIC_MISSING`, `LOG_TOO_NEW`. `close` leaves the store open: it is the caller's. */
export async function openSegmentLog(store: Store, topic: string, random: Random): Promise<SegmentLog> {
  const log = new OpenLog(store, topic)
  await log.describe()
  return {
    bounds: () => log.bounds(),
    resolve: (position) => log.resolve(position),
    read: (range) => log.read(range),
    async append(partition, records) {
      const index = await log.partition(partition)
      await log.verifyTail(partition, index)
      return { baseOffset: await appendRecords(store, random, index, records) }
    },
    async grow(partitions) {
      const { topicId, partitions: now } = await log.describe()
      if (partitions > now) await growTopic(store, topic, topicId, partitions)
    },
    async close() {},
  }
}

class OpenLog {
  readonly #store: Store
  readonly #topic: string
  #topicId = ''
  #indexes = new Map<number, PartitionIndex>()
  /** Partitions whose last segment was checked before the first append. */
  #verified = new Set<number>()

  constructor(store: Store, topic: string) {
    this.#store = store
    this.#topic = topic
  }

  /** The topic as it stands; a recreated one forgets what was known of its segments. */
  async describe(): Promise<TopicObject> {
    const described = await readTopicObject(this.#store, this.#topic)
    if (described.topicId !== this.#topicId) {
      this.#topicId = described.topicId
      this.#indexes = new Map()
      this.#verified = new Set()
    }
    return described
  }

  async bounds(): Promise<LogBounds> {
    const described = await this.describe()
    const indexes = Array.from({ length: described.partitions }, (_, partition) => this.#index(partition, described))
    await Promise.all(indexes.map((index) => index.refresh()))
    return {
      topicId: described.topicId,
      partitions: indexes.map(({ start, end }, partition) => ({ partition, start, end })),
    }
  }

  /** An up-to-date index of one partition. */
  async partition(partition: number): Promise<PartitionIndex> {
    const described = await this.describe()
    if (!(partition >= 0 && partition < described.partitions)) throw partitionMissing(this.#topic, partition)
    const index = this.#index(partition, described)
    await index.refresh()
    return index
  }

  /** An appender that trusted a damaged last segment would leave a gap for ever. */
  async verifyTail(partition: number, index: PartitionIndex): Promise<void> {
    const last = index.bases.at(-1)
    if (last === undefined || this.#verified.has(partition)) return
    for await (const batch of this.#readSegment(index, last, last, index.end, new Columns())) void batch
    this.#verified.add(partition)
  }

  async *read(range: OffsetRange): AsyncIterable<LogBatch> {
    const index = await this.partition(range.partition)
    assertWithinLog(this.#topic, range, index)
    const columns = new Columns()
    for (let at = range.start; at < range.end; ) {
      at = yield* this.#readSegment(index, index.baseFor(at), at, range.end, columns)
    }
  }

  /** Yields what of `[start, end)` the segment holds; returns its own end. */
  async *#readSegment(
    index: PartitionIndex,
    base: bigint,
    start: bigint,
    end: bigint,
    columns: Columns,
  ): AsyncGenerator<LogBatch, bigint, undefined> {
    const place = index.placeOf(base)
    const bytes = await this.#store.read(segmentName(place))
    if (bytes === null) throw await this.#segmentGone(index, base, start)
    const header = decodeSegmentHeader(bytes, place)
    const body = bytes.subarray(segmentHeaderBytes)
    if (start >= header.end) throw segmentDamaged(`it ends at ${header.end}; the next one is missing`, place)
    if (body.length !== header.bodyBytes) throw segmentDamaged(`${body.length} bytes, not ${header.bodyBytes}`, place)
    try {
      const { topic, partition } = place
      const { batches, next } = decodeBatches(body, { topic, partition, start, end, columns })
      if (next !== header.end) throw segmentDamaged(`its batches end at ${next}, not at ${header.end}`, place)
      yield* batches
    } catch (error) {
      if (isPawlError(error) && error.code === 'BATCH_FORMAT_UNKNOWN') throw segmentDamaged(error.message, place, error)
      throw error
    }
    return header.end
  }

  async #segmentGone(index: PartitionIndex, base: bigint, start: bigint): Promise<PawlError> {
    await index.relist()
    if (index.start <= start) return segmentDamaged('it is missing', index.placeOf(base))
    const details = { topic: this.#topic, offset: offsetText(start), logStart: offsetText(index.start) }
    return new PawlError(
      'LOG_OFFSET_LOST',
      `offset ${start} of ${this.#topic}, which starts at ${index.start}`,
      details,
    )
  }

  async resolve(position: StartPosition): Promise<ReadonlyMap<number, bigint>> {
    if (position.at === 'group') throw groupUnsupported(this.#topic, position.group)
    const bounds = await this.bounds()
    if (position.at === 'offsets') return explicitOffsets(this.#topic, position.offsets, bounds)
    const resolved = new Map<number, bigint>()
    for (const { partition, start, end } of bounds.partitions) {
      if (position.at === 'timestamp') resolved.set(partition, await this.#firstSince(partition, position.timestampMs))
      else resolved.set(partition, position.at === 'earliest' ? start : end)
    }
    return resolved
  }

  /** The first offset whose timestamp is no earlier; the end when there is none. */
  async #firstSince(partition: number, timestampMs: number): Promise<bigint> {
    const index = this.#indexes.get(partition)!
    const { end } = index
    for (const base of index.bases) {
      const header = await index.header(base)
      if (header === null || header.maxTimestampMs < timestampMs) continue
      for await (const batch of this.#readSegment(index, base, base, header.end, new Columns())) {
        const i = batch.timestamps.subarray(0, batch.count).findIndex((ms) => ms >= timestampMs)
        if (i >= 0) return batch.baseOffset + BigInt(batch.offsetDeltas[i]!)
      }
    }
    return end
  }

  #index(partition: number, { baseOffset }: TopicObject): PartitionIndex {
    const found = this.#indexes.get(partition)
    if (found !== undefined) return found
    const made = new PartitionIndex(this.#store, { topic: this.#topic, partition, baseOffset })
    this.#indexes.set(partition, made)
    return made
  }
}
