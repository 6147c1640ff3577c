/**
 * The requests of a reader: records, offsets of a log, offsets of a group.
 *
 * Fetch is used in version 13 (Kafka 3.1), the first that names the topic by its id: a topic that was created again
 * under the same name cannot answer for the old one. Errors come back as numbers and are judged by the caller.
 * Format: https://kafka.apache.org/protocol#protocol_messages
 */
import type { AbortedTransaction } from '../../model/record-decode.ts'
import { flexibleLength, flexibleReader } from './flexible.ts'
import { WireReader, type WireRequest, WireWriter } from './wire.ts'

/** Whether a reader sees records of transactions that are open or aborted. */
export type Isolation = 'read_committed' | 'read_uncommitted'

const level = (isolation: Isolation) => (isolation === 'read_committed' ? 1 : 0)

/** What to fetch: records of one partition from an offset. */
export interface FetchRequest {
  /** 32 hex digits. */
  readonly topicId: string
  readonly partition: number
  readonly offset: bigint
  readonly isolation: Isolation
  readonly bytesMax: number
  /** How long the broker may wait for the first record. */
  readonly waitMs: number
}

/** What a leader answered; after an error there are no records. */
export interface FetchAnswer {
  readonly error: number
  readonly highWatermark: bigint
  readonly lastStableOffset: bigint
  readonly aborted: readonly AbortedTransaction[]
  /** Record batches, the last perhaps partial. */
  readonly records: Buffer
}

/** Records of one partition. */
export function fetch(request: FetchRequest): WireRequest<FetchAnswer> {
  const body = Buffer.alloc(96)
  // Tags of the header; replica -1, wait, at least 1 byte, at most bytesMax, isolation, no session.
  let at = body.writeInt32BE(-1, 1)
  at = body.writeInt32BE(request.waitMs, at)
  at = body.writeInt32BE(1, at)
  at = body.writeInt32BE(request.bytesMax, at)
  at = body.writeInt8(level(request.isolation), at)
  at = body.writeInt32BE(0, at)
  at = body.writeInt32BE(-1, at)
  // One topic, one partition: epochs unknown, offset, log start unknown, bytes, tags of both.
  at = body.writeInt8(2, at)
  at += body.write(request.topicId, at, 'hex')
  at = body.writeInt8(2, at)
  at = body.writeInt32BE(request.partition, at)
  at = body.writeInt32BE(-1, at)
  at = body.writeBigInt64BE(request.offset, at)
  at = body.writeInt32BE(-1, at)
  at = body.writeBigInt64BE(-1n, at)
  at = body.writeInt32BE(request.bytesMax, at) + 2
  // Nothing forgotten, no rack, tags.
  at = body.writeInt8(1, at)
  at = body.writeInt8(1, at) + 1
  return { apiKey: 1, apiVersion: 13, apiName: 'Fetch', body: [body.subarray(0, at)], decode: decodeFetch }
}

/**
 * Answered when one of these partitions has a record at its offset that the isolation lets through, and after `waitMs` at
 * the latest; also when the broker is not to be asked. What is in the answer does not matter.
 */
export function awaitRecords(
  request: Pick<FetchRequest, 'topicId' | 'isolation' | 'waitMs'>,
  offsets: readonly (readonly [partition: number, offset: bigint])[],
): WireRequest<void> {
  const { topicId, isolation, waitMs } = request
  const body = new WireWriter()
    .int8(0)
    .int32(-1)
    .int32(waitMs)
    .int32(1)
    .int32(1)
    .int8(level(isolation))
    .int32(0)
    .int32(-1)
  const parts = [body.take(), Buffer.of(2), Buffer.from(topicId, 'hex'), flexibleLength(offsets.length + 1)]
  for (const [partition, offset] of offsets) {
    // Epochs and log start unknown; as little as there is.
    const one = new WireWriter().int32(partition).int32(-1).int64(offset).int32(-1).int64(-1n).int32(1).int8(0)
    parts.push(one.take())
  }
  // Tags of the topic, nothing forgotten, no rack, tags.
  parts.push(Buffer.of(0, 1, 1, 0))
  return { apiKey: 1, apiVersion: 13, apiName: 'Fetch', body: parts, decode: () => undefined, slow: true }
}

function decodeFetch(answer: Buffer): FetchAnswer {
  const reader = flexibleReader(answer)
  reader.tags()
  reader.int32()
  const error = reader.int16()
  reader.int32()
  const [partition] = reader.array(() => {
    reader.bytes(16)
    const partitions = reader.array(() => {
      reader.int32()
      const found = {
        error: reader.int16(),
        highWatermark: reader.int64(),
        lastStableOffset: reader.int64(),
        logStart: reader.int64(),
        aborted: reader.array(() => {
          const transaction = { producerId: reader.int64(), firstOffset: reader.int64() }
          reader.tags()
          return transaction
        }),
      }
      reader.int32()
      const records = reader.compactBytes()
      reader.tags()
      return { ...found, records }
    })
    reader.tags()
    return partitions[0]
  })
  if (partition !== undefined && error === 0) return partition
  return { error, highWatermark: -1n, lastStableOffset: -1n, aborted: [], records: Buffer.alloc(0) }
}

/** Timestamps that ListOffsets takes for the ends of a log. */
export const logEnds = Object.freeze({ earliest: -2n, latest: -1n })

/** An offset of one partition, or why there is none. */
export interface OffsetAnswer {
  readonly partition: number
  readonly error: number
  /** -1 when no record is that young. */
  readonly offset: bigint
}

/**
 * For each partition the first offset whose timestamp is not smaller, or an end of the log: under read_committed
 * `latest` is the last stable offset. Only the leader answers.
 */
export function listOffsets(
  topic: string,
  partitions: readonly number[],
  timestamp: bigint,
  isolation: Isolation,
): WireRequest<OffsetAnswer[]> {
  const body = new WireWriter().int32(-1).int8(level(isolation)).int32(1).string(topic)
  body.array(partitions, (partition) => body.int32(partition).int64(timestamp))
  return {
    apiKey: 2,
    apiVersion: 2,
    apiName: 'ListOffsets',
    body: [body.take()],
    decode: (answer) => {
      const reader = new WireReader(answer)
      reader.int32()
      const topics = reader.array(() => {
        reader.string()
        return reader.array(() => {
          const [partition, error] = [reader.int32(), reader.int16()]
          reader.int64()
          return { partition, error, offset: reader.int64() }
        })
      })
      return topics.flat()
    },
  }
}

/** Where a batch was written, or why not. */
export interface AppendAnswer {
  readonly error: number
  readonly baseOffset: bigint
}

/** One sealed batch, outside any transaction, acknowledged by all in-sync replicas. */
export function appendBatch(topic: string, partition: number, batch: Buffer): WireRequest<AppendAnswer> {
  const head = new WireWriter().string(null).int16(-1).int32(30_000).int32(1).string(topic).int32(1)
  return {
    apiKey: 0,
    apiVersion: 7,
    apiName: 'Produce',
    body: [head.int32(partition).int32(batch.length).take(), batch],
    decode: (answer) => {
      const reader = new WireReader(answer)
      const topics = reader.array(() => {
        reader.string()
        return reader.array(() => {
          reader.int32()
          const written = { error: reader.int16(), baseOffset: reader.int64() }
          reader.int64()
          reader.int64()
          return written
        })
      })
      return topics[0][0]
    },
  }
}

/** Which broker coordinates a consumer group. */
export function findGroup(group: string): WireRequest<{ readonly error: number; readonly node: number }> {
  return {
    apiKey: 10,
    apiVersion: 2,
    apiName: 'FindCoordinator',
    body: [new WireWriter().string(group).int8(0).take()],
    decode: (answer) => {
      const reader = new WireReader(answer)
      reader.int32()
      const error = reader.int16()
      reader.string()
      return { error, node: reader.int32() }
    },
  }
}

/** The offsets of a consumer group, or why they are not told. */
export interface GroupOffsets {
  readonly error: number
  readonly partitions: readonly OffsetAnswer[]
}

/** What a group has committed; -1 where nothing. */
export function fetchGroup(group: string, topic: string, partitions: readonly number[]): WireRequest<GroupOffsets> {
  const body = new WireWriter().string(group).int32(1).string(topic)
  body.array(partitions, (partition) => body.int32(partition))
  return {
    apiKey: 9,
    apiVersion: 3,
    apiName: 'OffsetFetch',
    body: [body.take()],
    decode: (answer) => {
      const reader = new WireReader(answer)
      reader.int32()
      const topics = reader.array(() => {
        reader.string()
        return reader.array(() => {
          const [partition, offset] = [reader.int32(), reader.int64()]
          reader.string()
          return { partition, offset, error: reader.int16() }
        })
      })
      return { partitions: topics.flat(), error: reader.int16() }
    },
  }
}

/** Commits offsets for a group that has no members. */
export function commitGroup(
  group: string,
  topic: string,
  offsets: ReadonlyMap<number, bigint>,
): WireRequest<{ readonly errors: readonly number[] }> {
  const body = new WireWriter().string(group).int32(-1).string('').int64(-1n).int32(1).string(topic)
  body.array([...offsets], ([partition, offset]) => body.int32(partition).int64(offset).string(''))
  return {
    apiKey: 8,
    apiVersion: 2,
    apiName: 'OffsetCommit',
    body: [body.take()],
    decode: (answer) => {
      const reader = new WireReader(answer)
      const topics = reader.array(() => {
        reader.string()
        return reader.array(() => {
          reader.int32()
          return reader.int16()
        })
      })
      return { errors: topics.flat() }
    },
  }
}
