/**
 * The requests of one transaction: coordinator, producer id, partitions, records, end.
 *
 * Each function gives a request in one fixed version with the decoder of its answer; error codes come back as
 * numbers and are judged by the caller. Version 2 of AddPartitionsToTxn and EndTxn tells PRODUCER_FENCED from
 * INVALID_PRODUCER_EPOCH. Format: https://kafka.apache.org/protocol#protocol_messages
 */
import { flexibleLength, flexibleReader, flexibleString } from './flexible.ts'
import { WireReader, type WireRequest, WireWriter } from './wire.ts'

/** Who writes: as InitProducerId answered. */
export interface Producer {
  readonly transactionalId: string
  readonly producerId: bigint
  readonly epoch: number
}

/** Partitions of one topic. */
export interface TopicPartitions {
  readonly topic: string
  readonly partitions: readonly number[]
}

/** One error code of a topic's partition; `message` only where the broker explains itself. */
export interface PartitionAnswer {
  readonly topic: string
  readonly partition: number
  readonly error: number
  readonly message: string | null
  /** The first record that the broker names, by its index in the batch. */
  readonly row: number | null
}

/** Which broker coordinates the transactional id. */
export function findCoordinator(transactionalId: string): WireRequest<{
  readonly error: number
  readonly message: string | null
  readonly node: number
}> {
  return {
    apiKey: 10,
    apiVersion: 2,
    apiName: 'FindCoordinator',
    body: [new WireWriter().string(transactionalId).int8(1).take()],
    decode: (answer) => {
      const reader = new WireReader(answer)
      reader.int32()
      return { error: reader.int16(), message: reader.string(), node: reader.int32() }
    },
  }
}

/** What the coordinator remembers of an id: the state of its last transaction, by Kafka's name, and its producer. */
export interface TransactionAnswer {
  readonly error: number
  readonly state: string
  readonly producerId: bigint
  readonly epoch: number
}

/** Asks the coordinator of one id; changes nothing. A flexible request, there is no other version. */
export function describeTransaction(transactionalId: string): WireRequest<TransactionAnswer> {
  return {
    apiKey: 65,
    apiVersion: 0,
    apiName: 'DescribeTransactions',
    body: [Buffer.of(0), flexibleLength(2), flexibleString(transactionalId), Buffer.of(0)],
    decode: (answer) => {
      const reader = flexibleReader(answer)
      reader.tags()
      reader.int32()
      return reader.array((): TransactionAnswer => {
        const error = reader.int16()
        reader.string()
        const state = reader.string() ?? ''
        reader.int32()
        reader.int64()
        return { error, state, producerId: reader.int64(), epoch: reader.int16() }
      })[0]
    },
  }
}

/** Takes the transactional id over: fences every earlier producer and aborts what it left open. */
export function initProducerId(
  transactionalId: string,
  timeoutMs: number,
): WireRequest<{ readonly error: number; readonly producerId: bigint; readonly epoch: number }> {
  return {
    apiKey: 22,
    apiVersion: 1,
    apiName: 'InitProducerId',
    body: [new WireWriter().string(transactionalId).int32(timeoutMs).take()],
    decode: (answer) => {
      const reader = new WireReader(answer)
      reader.int32()
      return { error: reader.int16(), producerId: reader.int64(), epoch: reader.int16() }
    },
  }
}

/** Opens the transaction on partitions. */
export function addPartitionsToTxn(
  producer: Producer,
  targets: readonly TopicPartitions[],
): WireRequest<PartitionAnswer[]> {
  const body = new WireWriter().string(producer.transactionalId).int64(producer.producerId).int16(producer.epoch)
  body.array(targets, ({ topic, partitions }) => {
    body.string(topic).array(partitions, (partition) => body.int32(partition))
  })
  return {
    apiKey: 24,
    apiVersion: 2,
    apiName: 'AddPartitionsToTxn',
    body: [body.take()],
    decode: (answer) => {
      const reader = new WireReader(answer)
      reader.int32()
      return byPartition(reader, () => ({ partition: reader.int32(), error: reader.int16(), message: null, row: null }))
    },
  }
}

/** The decision: commit, or abort. */
export function endTxn(producer: Producer, commit: boolean): WireRequest<{ readonly error: number }> {
  const body = new WireWriter().string(producer.transactionalId).int64(producer.producerId).int16(producer.epoch)
  return {
    apiKey: 26,
    apiVersion: 2,
    apiName: 'EndTxn',
    body: [body.boolean(commit).take()],
    decode: (answer) => {
      const reader = new WireReader(answer)
      reader.int32()
      return { error: reader.int16() }
    },
  }
}

/** One sealed batch for a partition. */
export interface OutgoingBatch {
  readonly partition: number
  readonly batch: Buffer
}

/** Records, at most one batch a partition and request (the broker insists); answered by all in-sync replicas. */
export function produce(
  transactionalId: string,
  topics: readonly { readonly topic: string; readonly batches: readonly OutgoingBatch[] }[],
  timeoutMs: number,
): WireRequest<PartitionAnswer[]> {
  const writer = new WireWriter().string(transactionalId).int16(-1).int32(timeoutMs).int32(topics.length)
  const body: Buffer[] = []
  for (const { topic, batches } of topics) {
    writer.string(topic).int32(batches.length)
    for (const { partition, batch } of batches) {
      body.push(writer.int32(partition).int32(batch.length).take(), batch)
    }
  }
  return { apiKey: 0, apiVersion: 8, apiName: 'Produce', body, decode: decodeProduce }
}

function decodeProduce(answer: Buffer): PartitionAnswer[] {
  const reader = new WireReader(answer)
  return byPartition(reader, () => {
    const partition = reader.int32()
    const error = reader.int16()
    reader.int64()
    reader.int64()
    reader.int64()
    const records = reader.array(() => ({ index: reader.int32(), message: reader.string() }))
    const [first] = records
    return { partition, error, message: reader.string() ?? first?.message ?? null, row: first?.index ?? null }
  })
}

function byPartition(reader: WireReader, read: () => Omit<PartitionAnswer, 'topic'>): PartitionAnswer[] {
  const answers: PartitionAnswer[] = []
  reader.array(() => {
    const topic = reader.string()!
    reader.array(() => answers.push({ topic, ...read() }))
  })
  return answers
}
