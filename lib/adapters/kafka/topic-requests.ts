/**
 * The requests by which the control topic is made, grown and checked, and limits of topics and brokers are read.
 *
 * Format: https://kafka.apache.org/protocol#protocol_messages
 */
import { WireReader, type WireRequest, WireWriter } from './wire.ts'

/** What became of one topic or resource. */
export interface TopicAnswer {
  readonly error: number
  readonly message: string | null
}

/** Creates one topic with the broker's default replication. */
export function createTopic(
  topic: string,
  partitions: number,
  configs: Readonly<Record<string, string>>,
  timeoutMs: number,
): WireRequest<TopicAnswer> {
  const body = new WireWriter().int32(1).string(topic).int32(partitions).int16(-1).int32(0)
  body.array(Object.entries(configs), ([name, value]) => body.string(name).string(value))
  return {
    apiKey: 19,
    apiVersion: 4,
    apiName: 'CreateTopics',
    body: [body.int32(timeoutMs).boolean(false).take()],
    decode: decodeTopic,
  }
}

/** Grows one topic to `partitions`. */
export function createPartitions(topic: string, partitions: number, timeoutMs: number): WireRequest<TopicAnswer> {
  const body = new WireWriter().int32(1).string(topic).int32(partitions).int32(-1).int32(timeoutMs).boolean(false)
  return { apiKey: 37, apiVersion: 1, apiName: 'CreatePartitions', body: [body.take()], decode: decodeTopic }
}

function decodeTopic(answer: Buffer): TopicAnswer {
  const reader = new WireReader(answer)
  reader.int32()
  return reader.array(() => {
    reader.string()
    return { error: reader.int16(), message: reader.string() }
  })[0]
}

/** Settings of a topic or of one broker; keys that the broker does not know are absent. */
export interface ConfigAnswer extends TopicAnswer {
  readonly configs: ReadonlyMap<string, string | null>
}

/** Reads settings. A broker's are asked of that broker itself. */
export function describeConfigs(
  resource: 'topic' | 'broker',
  name: string,
  keys: readonly string[],
): WireRequest<ConfigAnswer> {
  const body = new WireWriter()
    .int32(1)
    .int8(resource === 'topic' ? 2 : 4)
    .string(name)
  body.array(keys, (key) => body.string(key)).boolean(false)
  return { apiKey: 32, apiVersion: 1, apiName: 'DescribeConfigs', body: [body.take()], decode: decodeConfigs }
}

function decodeConfigs(answer: Buffer): ConfigAnswer {
  const reader = new WireReader(answer)
  reader.int32()
  return reader.array(() => {
    const error = reader.int16()
    const message = reader.string()
    reader.int8()
    reader.string()
    const configs = reader.array((): [string, string | null] => {
      const entry: [string, string | null] = [reader.string()!, reader.string()]
      reader.boolean()
      reader.int8()
      reader.boolean()
      reader.array(() => [reader.string(), reader.string(), reader.int8()])
      return entry
    })
    return { error, message, configs: new Map(configs) }
  })[0]
}
