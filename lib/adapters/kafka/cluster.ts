/**
 * `kafka({...})`: a cluster as a pipeline file names it.
 *
 * A plain description without a connection. The first source or sink that is opened connects, all share that
 * connection, and the last that closes ends it. Credentials stay in a closure, so that a spec can be printed.
 */
import { PawlError } from '../../model/errors.ts'
import type { LogAppender, LogSource } from '../../ports/log.ts'
import type { Sink } from '../../ports/sink.ts'
import type { ClusterSpec } from '../../ports/spec.ts'
import { KafkaAppender } from './appender.ts'
import { type SaslOptions, type SslOptions, securityOf } from './auth.ts'
import { KafkaConnection } from './connection.ts'
import { makeTopic } from './control.ts'
import { inspectTopics } from './inspect.ts'
import { controlTopic } from './names.ts'
import { openKafkaSink } from './sink.ts'
import { KafkaSource } from './source.ts'

/** A cluster as a user describes it; only the brokers are needed. */
export interface KafkaOptions {
  /** host:port of some brokers; the others are learnt from them. */
  readonly brokers: string | readonly string[]
  readonly clientId?: string
  readonly ssl?: SslOptions
  readonly sasl?: SaslOptions
  /** Start of the names of control topics; `pawl-control` by default. */
  readonly controlTopicPrefix?: string
  /** After which the broker aborts a transaction of the sink; 60 s by default. */
  readonly transactionTimeoutMs?: number
  /** How long to put up with brokers that are gone, before an error; 30 s by default. */
  readonly patienceMs?: number
  readonly connectTimeoutMs?: number
  readonly requestTimeoutMs?: number
  /** Bytes of one fetch; two may be held for each partition that is read. 2 MiB by default. */
  readonly fetchBytesMax?: number
}

/** A cluster that names itself, and nothing secret, when it is printed. */
export interface KafkaClusterSpec extends ClusterSpec {
  readonly kind: 'kafka'
  readonly brokers: readonly string[]
  /** For tools: appends to a topic that exists. */
  openAppender(topic: string): Promise<LogAppender>
  /** For tools: makes a topic with the brokers' replication, unless it is there. Throws what the brokers refuse. */
  createTopic(topic: string, partitions: number): Promise<void>
}

/** Describes a Kafka cluster. Throws `PIPELINE_INVALID` for addresses that are not host:port. */
export function kafka(options: KafkaOptions): KafkaClusterSpec {
  const brokers = addresses(options.brokers)
  const { connectTimeoutMs, requestTimeoutMs, patienceMs, fetchBytesMax } = options
  const shared = sharedConnection(
    () =>
      new KafkaConnection({
        brokers,
        clientId: options.clientId ?? 'pawl',
        security: securityOf(options),
        connectTimeoutMs,
        requestTimeoutMs,
      }),
  )
  return Object.freeze<KafkaClusterSpec>({
    kind: 'kafka',
    brokers,
    async openSource({ topic, isolation, key, value }): Promise<LogSource> {
      const { connection, release } = shared.acquire()
      const reuse = key.copies === true && value.copies === true
      return new KafkaSource(connection, { topic, isolation, patienceMs, fetchBytesMax, reuse, release })
    },
    async openAppender(topic): Promise<LogAppender> {
      const { connection, release } = shared.acquire()
      return new KafkaAppender(connection, { topic, patienceMs, release })
    },
    async inspect(topics) {
      const { connection, release } = shared.acquire()
      try {
        return await inspectTopics(connection, topics)
      } finally {
        await release()
      }
    },
    async createTopic(topic, partitions) {
      const { connection, release } = shared.acquire()
      try {
        await makeTopic(connection, topic, partitions, {})
      } finally {
        await release()
      }
    },
    controlTopic: (sink, { stage, pipeline }) => controlTopic({ stage, pipeline, sink }, options.controlTopicPrefix),
    async openSink(spec, sink, { pipeline, stage, store }): Promise<Sink> {
      const { connection, release } = shared.acquire()
      const identity = { stage, pipeline, sink }
      const { transactionTimeoutMs, controlTopicPrefix } = options
      try {
        const opened = await openKafkaSink(connection, {
          spec,
          identity,
          store,
          transactionTimeoutMs,
          controlTopicPrefix,
          patienceMs,
        })
        return releasedOnClose(opened, release)
      } catch (error) {
        await release()
        throw error
      }
    },
  })
}

/** The sink, which gives its connection back when it is closed. */
function releasedOnClose(sink: Sink, release: () => Promise<void>): Sink {
  const close = sink.close.bind(sink)
  sink.close = async () => {
    await close()
    await release()
  }
  return sink
}

function addresses(brokers: string | readonly string[]): readonly string[] {
  const list = (typeof brokers === 'string' ? brokers.split(',') : [...brokers]).map((broker) => broker.trim())
  for (const broker of list) {
    const port = Number(/^(?:\[[^\]]+\]|[^:\s]+):(\d{1,5})$/.exec(broker)?.[1])
    if (!(port > 0 && port < 65_536))
      throw new PawlError('PIPELINE_INVALID', `kafka: broker ${JSON.stringify(broker)} is not host:port`)
  }
  if (list.length === 0) throw new PawlError('PIPELINE_INVALID', 'kafka: brokers is empty')
  return Object.freeze(list)
}

/** One connection for all who hold it. */
function sharedConnection(connect: () => KafkaConnection) {
  let connection: KafkaConnection | null = null
  let holders = 0
  return {
    acquire() {
      connection ??= connect()
      holders++
      const held = connection
      let released = false
      const release = async () => {
        if (released) return
        released = true
        if (--holders > 0) return
        connection = null
        await held.close()
      }
      return { connection: held, release }
    },
  }
}
