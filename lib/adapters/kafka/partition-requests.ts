/**
 * The requests that read a control partition: where it ends, what it holds, who writes to it.
 *
 * Format: https://kafka.apache.org/protocol#protocol_messages
 */
import type { AbortedTransaction } from '../../model/record-decode.ts'
import { flexibleLength, flexibleReader, flexibleString } from './flexible.ts'
import { WireReader, type WireRequest, WireWriter } from './wire.ts'

/** Which end of a partition; the last stable offset is where the oldest open transaction begins. */
export type OffsetKind = 'earliest' | 'high-watermark' | 'last-stable'

/** One offset of one partition. */
export function listOffset(
  topic: string,
  partition: number,
  kind: OffsetKind,
): WireRequest<{ readonly error: number; readonly offset: bigint }> {
  const body = new WireWriter()
    .int32(-1)
    .int8(kind === 'last-stable' ? 1 : 0)
    .int32(1)
    .string(topic)
    .int32(1)
    .int32(partition)
    .int32(-1)
    .int64(kind === 'earliest' ? -2n : -1n)
  return {
    apiKey: 2,
    apiVersion: 5,
    apiName: 'ListOffsets',
    body: [body.take()],
    decode: (answer) => {
      const reader = new WireReader(answer)
      reader.int32()
      return reader.array(() => {
        reader.string()
        return reader.array(() => {
          reader.int32()
          const error = reader.int16()
          reader.int64()
          const offset = reader.int64()
          reader.int32()
          return { error, offset }
        })[0]
      })[0]
    },
  }
}

/** Record batches from one partition, as the broker keeps them. */
export interface FetchAnswer {
  readonly error: number
  readonly lastStable: bigint
  readonly aborted: readonly AbortedTransaction[]
  readonly records: Buffer
}

/** Committed records from `offset` on; at least one whole batch when there is one. Does not wait. */
export function fetchCommitted(
  topic: string,
  partition: number,
  offset: bigint,
  bytesMax: number,
): WireRequest<FetchAnswer> {
  const body = new WireWriter().int32(-1).int32(0).int32(1).int32(bytesMax).int8(1).int32(0).int32(-1)
  body.int32(1).string(topic).int32(1).int32(partition).int32(-1).int64(offset).int64(-1n).int32(bytesMax)
  return {
    apiKey: 1,
    apiVersion: 11,
    apiName: 'Fetch',
    body: [body.int32(0).string('').take()],
    decode: decodeFetch,
  }
}

function decodeFetch(answer: Buffer): FetchAnswer {
  const reader = new WireReader(answer)
  reader.int32()
  const error = reader.int16()
  reader.int32()
  const [partition] = reader.array(() => {
    reader.string()
    return reader.array((): FetchAnswer => {
      reader.int32()
      const partitionError = reader.int16()
      reader.int64()
      const lastStable = reader.int64()
      reader.int64()
      const aborted = reader.array(() => ({ producerId: reader.int64(), firstOffset: reader.int64() }))
      reader.int32()
      return { error: partitionError, lastStable, aborted, records: reader.bytes() }
    })[0]
  })
  return partition ?? { error, lastStable: -1n, aborted: [], records: Buffer.alloc(0) }
}

/** What a partition's leader knows of a producer that wrote to it. */
export interface PartitionProducer {
  readonly producerId: bigint
  /** Where its transaction begins that has no end in the partition; -1 when there is none. */
  readonly openSince: bigint
}

/** The producers of one partition. A flexible request, there is no other version. */
export function describeProducers(
  topic: string,
  partition: number,
): WireRequest<{ readonly error: number; readonly producers: readonly PartitionProducer[] }> {
  const index = Buffer.alloc(4)
  index.writeInt32BE(partition)
  const tags = Buffer.alloc(1)
  const topics = [flexibleLength(2), flexibleString(topic), flexibleLength(2), index, tags]
  return {
    apiKey: 61,
    apiVersion: 0,
    apiName: 'DescribeProducers',
    body: [tags, ...topics, tags],
    decode: decodeProducers,
  }
}

function decodeProducers(answer: Buffer): { error: number; producers: PartitionProducer[] } {
  const reader = flexibleReader(answer)
  reader.tags()
  reader.int32()
  return reader.array(() => {
    reader.string()
    return reader.array(() => {
      reader.int32()
      const error = reader.int16()
      reader.string()
      const producers = reader.array((): PartitionProducer => {
        const producerId = reader.int64()
        // Epoch, last sequence, last timestamp, epoch of the coordinator.
        reader.bytes(4 + 4 + 8 + 4)
        const openSince = reader.int64()
        reader.tags()
        return { producerId, openSince }
      })
      reader.tags()
      return { error, producers }
    })[0]
  })[0]
}
