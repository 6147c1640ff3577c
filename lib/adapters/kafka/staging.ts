/**
 * Staging: rows become sealed Kafka record batches, once, in the task that made them.
 *
 * A batch belongs to one topic, partition and lane and waits in the store until its epoch is committed; promotion
 * only names the producer in it. Keys go to partitions as the Java client's default partitioner sends them; a row
 * without a key goes to its source partition modulo the number of partitions. The lane follows from the same hash
 * (so that with as many lanes as partitions a lane writes to one partition); rows of one key keep their order.
 *
 * A row that the broker would refuse is refused here, before the commit: too large, a timestamp outside the
 * topic's bounds, no key for a compacted topic. Partition counts are pinned in the handle.
 */
import { assert } from '../../model/assert.ts'
import { PawlError } from '../../model/errors.ts'
import type { ObjectRef } from '../../model/head.ts'
import type { StagedPart } from '../../model/manifest.ts'
import { murmur2 } from '../../model/murmur2.ts'
import { RecordBatchEncoder, type WritingSerde } from '../../model/record-batch.ts'
import type { Header } from '../../model/records.ts'
import type { StageContext, StageWriter } from '../../ports/sink.ts'
import type { TopicSpec } from '../../ports/spec.ts'
import { lend } from '../shared/lent-memory.ts'
import { type Content, encodeKey, encodeValue, routeOf } from '../shared/row-encoding.ts'
import { createStaged, stagedName } from '../shared/staged-objects.ts'

/** Batches are sealed before they grow past this. */
export const batchBytesMax = 900_000
/** Varints of one record around its key and value, and one more for each change of timestamp; an upper bound. */
const recordOverheadMax = 48
const batchHeaderBytes = 61
/** Encoders kept over a flush; beyond, memory goes back. */
const encodersKeptMax = 64

/** What a topic takes, as of when it was looked up. */
export interface StagingTarget {
  readonly topic: string
  /** Changes when the topic is created again. */
  readonly topicId: string
  readonly partitions: number
  /** `max.message.bytes` of the topic. */
  readonly messageBytesMax: number
  /** What the topic accepts as timestamp of a record; -1 (none) is always fine. */
  readonly timestampMinMs: number
  readonly timestampMaxMs: number
  /** A compacted topic refuses records without a key. */
  readonly keyRequired: boolean
}

/** What promotion needs beside the objects: `topics` are referred to by position. Version 1. */
export interface StagedHandle {
  readonly version: 1
  readonly topics: readonly { readonly topic: string; readonly topicId: string; readonly partitions: number }[]
  /** For each object its batches, in order: where they go, how long they are, how many records they hold. */
  readonly objects: readonly (readonly StagedBatch[])[]
}
/** One batch of an object; `topic` is a position in the handle's topics. */
export type StagedBatch = readonly [topic: number, partition: number, bytes: number, rows: number]

interface OpenTarget extends StagingTarget {
  readonly index: number
  readonly batchBytesMax: number
  /** By lane · partitions + partition. */
  encoders: (RecordBatchEncoder | undefined)[]
}

/** What waits for one lane's next object, and what the lane has in the store already. */
interface OpenLane {
  readonly lane: number
  rows: number
  bytes: number
  chunks: Buffer[]
  batches: StagedBatch[]
  readonly objects: ObjectRef[]
  readonly indexes: StagedBatch[][]
}

/**
 * A writer for one invocation; `targets` holds the topic of the spec, or every topic of its route. `flush` returns while
 * the store still works on what it was handed; the next flush, and `seal`, wait for that and throw what it threw.
 */
export function stagingWriter(
  spec: TopicSpec<unknown, unknown>,
  targets: readonly StagingTarget[],
  context: StageContext,
): StageWriter {
  return new StagingWriter(spec, targets, context)
}

class StagingWriter implements StageWriter {
  bufferedBytes = 0
  readonly #spec: TopicSpec<unknown, unknown>
  readonly #context: StageContext
  readonly #targets: readonly OpenTarget[]
  readonly #byTopic: ReadonlyMap<string, OpenTarget>
  readonly #lanes: readonly OpenLane[]
  /** The serde of values, when it can write them in place. */
  readonly #writing: WritingSerde | null
  #storing: Promise<unknown> = Promise.resolve()
  #encoders = 0
  #sealed = false
  #scratch = Buffer.allocUnsafe(256)

  constructor(spec: TopicSpec<unknown, unknown>, targets: readonly StagingTarget[], context: StageContext) {
    this.#spec = spec
    this.#writing = spec.value.write === undefined ? null : (spec.value as WritingSerde)
    this.#context = context
    this.#targets = targets.map((target, index) => ({
      ...target,
      index,
      batchBytesMax: Math.min(batchBytesMax, target.messageBytesMax),
      encoders: [],
    }))
    this.#byTopic = new Map(this.#targets.map((target) => [target.topic, target]))
    this.#lanes = Array.from({ length: context.lanes }, (_, lane) => ({
      lane,
      rows: 0,
      bytes: 0,
      chunks: [],
      batches: [],
      objects: [],
      indexes: [],
    }))
  }

  add(key: unknown, value: unknown, timestampMs: number, partition: number): void {
    assert(!this.#sealed, 'a row was added to a sealed writer')
    const spec = this.#spec
    const target = spec.route === null ? this.#targets[0] : this.#byTopic.get(routeOf(spec, key, value))!
    const keyOut = encodeKey(spec.key, key)
    const headers = spec.headers === null ? undefined : spec.headers(value, key)
    checkAccepted(target, keyOut, timestampMs)
    const hash = keyOut === null ? partition : this.#hash(keyOut)
    const lane = hash % this.#lanes.length
    const to = hash % target.partitions
    const slot = lane * target.partitions + to
    const encoder = target.encoders[slot] ?? this.#encoder(target, slot)
    const writing = headers === undefined ? this.#writing : null
    const before = encoder.count === 0 ? 0 : encoder.bytes
    if (writing !== null && encoder.addWritten(timestampMs, keyOut, value, writing, target.batchBytesMax))
      this.bufferedBytes += encoder.bytes - before
    else this.#addEncoded(target, slot, encoder, timestampMs, keyOut, encodeValue(spec.value, value), headers)
    this.#lanes[lane].rows++
  }

  #addEncoded(
    target: OpenTarget,
    slot: number,
    encoder: RecordBatchEncoder,
    timestampMs: number,
    key: Content,
    value: Content,
    headers: readonly Header[] | undefined,
  ): void {
    // A UTF-16 unit is at most three bytes; only close to the limit is it worth counting them.
    const bytesAtMost = 3 * (lengthOf(key) + lengthOf(value)) + recordOverheadMax
    if (headers !== undefined || encoder.bytes + bytesAtMost > target.batchBytesMax)
      this.#makeRoom(target, slot, encoder, recordBytes(key, value, headers))
    const before = encoder.count === 0 ? 0 : encoder.bytes
    encoder.add(timestampMs, key, value, headers)
    this.bufferedBytes += encoder.bytes - before
  }

  async flush(): Promise<void> {
    for (const target of this.#targets) {
      for (const [slot, encoder] of target.encoders.entries()) {
        if (encoder !== undefined && encoder.count > 0) this.#close(target, slot, encoder)
      }
    }
    if (this.#encoders > encodersKeptMax) {
      for (const target of this.#targets) target.encoders = []
      this.#encoders = 0
    }
    this.bufferedBytes = 0
    const before = this.#storing
    this.#storing = before.then(() => Promise.all(this.#lanes.map((lane) => this.#store(lane))))
    // Its failure is thrown by whoever waits for it next.
    this.#storing.catch(() => undefined)
    await before
  }

  async seal(): Promise<StagedPart[]> {
    await this.flush()
    await this.#storing
    this.#sealed = true
    return this.#lanes
      .filter((lane) => lane.rows > 0)
      .map((lane) => ({
        lane: lane.lane,
        rows: lane.rows,
        bytes: lane.bytes,
        objects: lane.objects,
        handle: this.#handle(lane),
      }))
  }

  #handle(lane: OpenLane): StagedHandle {
    const topics = this.#targets.map(({ topic, topicId, partitions }) => ({ topic, topicId, partitions }))
    return { version: 1, topics, objects: lane.indexes }
  }

  #encoder(target: OpenTarget, slot: number): RecordBatchEncoder {
    const encoder = new RecordBatchEncoder({ recordBytesMax: target.messageBytesMax })
    target.encoders[slot] = encoder
    this.#encoders++
    return encoder
  }

  #makeRoom(target: OpenTarget, slot: number, encoder: RecordBatchEncoder, bytes: number): void {
    if (batchHeaderBytes + bytes > target.messageBytesMax)
      throw new PawlError(
        'RECORD_TOO_LARGE',
        `${bytes} bytes for topic ${target.topic}, whose max.message.bytes is ${target.messageBytesMax}`,
        { bytes, bytesMax: target.messageBytesMax },
      )
    if (encoder.count > 0 && encoder.bytes + bytes > target.batchBytesMax) this.#close(target, slot, encoder)
  }

  #close(target: OpenTarget, slot: number, encoder: RecordBatchEncoder): void {
    const batch = encoder.seal({ transactional: true, into: lend(encoder.bytes) })
    const open = this.#lanes[Math.floor(slot / target.partitions)]
    open.chunks.push(batch)
    open.batches.push([target.index, slot % target.partitions, batch.length, encoder.count])
    open.bytes += batch.length
    encoder.reset()
  }

  async #store(lane: OpenLane): Promise<void> {
    if (lane.chunks.length === 0) return
    const { chunks, batches } = lane
    lane.chunks = []
    lane.batches = []
    const name = stagedName(this.#context, `lane-${lane.lane}-${lane.objects.length}`)
    lane.objects.push(await createStaged(this.#context.store, name, chunks))
    lane.indexes.push(batches)
  }

  /** The positive hash of Java's partitioner. */
  #hash(key: string | Uint8Array): number {
    if (typeof key !== 'string') return murmur2(key) & 0x7fffffff
    if (3 * key.length > this.#scratch.length) this.#scratch = Buffer.allocUnsafe(6 * key.length)
    const scratch = this.#scratch
    let at = 0
    for (; at < key.length && at < 64; at++) {
      const unit = key.charCodeAt(at)
      if (unit > 0x7f) break
      scratch[at] = unit
    }
    const bytes = at === key.length ? at : scratch.write(key)
    return murmur2(scratch, 0, bytes) & 0x7fffffff
  }
}

function checkAccepted(target: StagingTarget, key: Content, timestampMs: number): void {
  if (key === null && target.keyRequired)
    throw new PawlError('ENCODE_FAILED', `topic ${target.topic} is compacted and takes no row without a key`)
  if (timestampMs === -1 || (timestampMs >= target.timestampMinMs && timestampMs <= target.timestampMaxMs)) return
  throw new PawlError('ENCODE_FAILED', `topic ${target.topic} refuses the timestamp ${timestampMs}`, {
    timestampMinMs: target.timestampMinMs,
    timestampMaxMs: target.timestampMaxMs,
  })
}

function lengthOf(content: Content): number {
  return content === null ? 0 : content.length
}

/** An upper bound that is exact but for a few varints. */
function recordBytes(key: Content, value: Content, headers: readonly Header[] | undefined): number {
  let bytes = recordOverheadMax + bytesOf(key) + bytesOf(value)
  for (const [name, content] of headers ?? []) bytes += Buffer.byteLength(name) + bytesOf(content) + 10
  return bytes
}

function bytesOf(content: Content): number {
  if (content === null) return 0
  return typeof content === 'string' ? Buffer.byteLength(content) : content.length
}
