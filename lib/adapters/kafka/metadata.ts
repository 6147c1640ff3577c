/**
 * The Metadata request, version 10: brokers, leaders and topic ids.
 *
 * Version 10 (Kafka 2.8) is the first that tells topic ids, which kafkajs does not speak. It is "flexible": compact
 * strings and arrays have a length + 1 as unsigned varint, and structures end with tagged fields.
 * Format: https://kafka.apache.org/protocol#The_Messages_Metadata
 */
import { type FlexibleReader, flexibleLength, flexibleReader, flexibleString } from './flexible.ts'
import type { WireRequest } from './wire.ts'

export interface ClusterMetadata {
  readonly brokers: readonly { readonly node: number; readonly host: string; readonly port: number }[]
  /** -1 while there is none. */
  readonly controller: number
  readonly topics: readonly TopicMetadata[]
}

export interface TopicMetadata {
  readonly topic: string
  readonly error: number
  /** UUID as 32 hex digits. */
  readonly topicId: string
  /** What the principal may do, a bit an operation; -2147483648 when it was not asked for. */
  readonly operations: number
  /** By partition; error and leader (-1: none). */
  readonly partitions: readonly { readonly partition: number; readonly error: number; readonly leader: number }[]
}

/** Asks for these topics, and creates none; with `operations` also for what the principal may do with them. */
export function metadata(topics: readonly string[], operations = false): WireRequest<ClusterMetadata> {
  const noId = Buffer.alloc(16)
  const named = topics.flatMap((topic) => [noId, flexibleString(topic), Buffer.of(0)])
  const count = topics.length + 1
  // Tags of the header; topics; no auto creation; no operations of the cluster; operations of topics; tags.
  const body = [Buffer.of(0), flexibleLength(count), ...named, Buffer.of(0, 0, operations ? 1 : 0, 0)]
  return { apiKey: 3, apiVersion: 10, apiName: 'Metadata', body, decode: decodeMetadata }
}

function decodeMetadata(answer: Buffer): ClusterMetadata {
  const reader = flexibleReader(answer)
  reader.tags()
  reader.int32()
  const brokers = reader.array(() => {
    const broker = { node: reader.int32(), host: reader.string() ?? '', port: reader.int32() }
    reader.string()
    reader.tags()
    return broker
  })
  reader.string()
  const controller = reader.int32()
  return { brokers, controller, topics: reader.array(() => decodeTopic(reader)) }
}

function decodeTopic(reader: FlexibleReader): TopicMetadata {
  const error = reader.int16()
  const topic = reader.string() ?? ''
  const topicId = reader.bytes(16).toString('hex')
  reader.int8()
  const partitions = reader.array(() => {
    const partition = { error: reader.int16(), partition: reader.int32(), leader: reader.int32() }
    reader.int32()
    for (let list = 0; list < 3; list++) reader.array(() => reader.int32())
    reader.tags()
    return partition
  })
  const operations = reader.int32()
  reader.tags()
  return { topic, error, topicId, operations, partitions: partitions.sort((a, b) => a.partition - b.partition) }
}
