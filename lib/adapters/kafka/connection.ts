/**
 * One connection to a cluster: which brokers there are, a socket to each, and requests over them.
 *
 * A socket that failed is never used again, and a socket is opened once however many ask for it at once. Fetches
 * have sockets of their own, so that a large answer does not hold up small ones, and so has what waits for records. Nothing is repeated here: whether
 * that is safe is for the caller to know. Errors leave as `PawlError`, and none holds a credential.
 */
import { PawlError } from '../../model/errors.ts'
import type { Security } from './auth.ts'
import { answerLost, connectFailed } from './connection-errors.ts'
import { type KafkaJsChannel, kafkaJsChannel } from './kafkajs.ts'
import type { BrokerChoice, KafkaLink, TopicLayout } from './link.ts'
import { type ClusterMetadata, metadata, type TopicMetadata } from './metadata.ts'
import type { WireRequest } from './wire.ts'

/** Where a cluster is, and how to reach it. */
export interface ConnectionOptions {
  /** host:port of some brokers; the others are learnt from them. */
  readonly brokers: readonly string[]
  readonly clientId: string
  /** Asked once for each socket. */
  readonly security: () => Promise<Security>
  readonly connectTimeoutMs?: number | undefined
  readonly requestTimeoutMs?: number | undefined
}

const fetchKey = 1
const defaultTimeouts = { connectTimeoutMs: 5000, requestTimeoutMs: 30_000 }

export class KafkaConnection implements KafkaLink {
  readonly #options: ConnectionOptions & typeof defaultTimeouts
  /** By address and purpose; a promise, so that all who ask share one socket. */
  readonly #channels = new Map<string, Promise<KafkaJsChannel>>()
  #addresses: ReadonlyMap<number, string> = new Map()
  #controller = -1
  #seed = 0
  #closed = false

  constructor(options: ConnectionOptions) {
    if (options.brokers.length === 0) throw new PawlError('PIPELINE_INVALID', 'kafka: brokers is empty')
    this.#options = {
      ...options,
      connectTimeoutMs: options.connectTimeoutMs ?? defaultTimeouts.connectTimeoutMs,
      requestTimeoutMs: options.requestTimeoutMs ?? defaultTimeouts.requestTimeoutMs,
    }
  }

  async send<T>(broker: BrokerChoice, request: WireRequest<T>, timeoutMs?: number): Promise<T> {
    const purpose = request.slow ? 'wait' : request.apiKey === fetchKey ? 'fetch' : 'request'
    const channel = broker === 'any' ? await this.#anyChannel() : await this.#channelOf(broker, purpose)
    const payload = await this.#exchange(channel, request, timeoutMs ?? 0)
    try {
      return request.decode(payload)
    } catch (error) {
      throw new PawlError('UNKNOWN_RESULT', `the answer to ${request.apiName} is not understood`, {}, error)
    }
  }

  async topics(names: readonly string[]): Promise<ReadonlyMap<string, TopicLayout>> {
    const answer = await this.describe(names)
    const layouts = new Map<string, TopicLayout>()
    for (const { topic, error, topicId, partitions } of answer.topics) {
      if (error === 0) layouts.set(topic, { topicId, leaders: partitions.map(({ leader }) => leader) })
      else if (error !== 3) throw topicRefused(topic, error)
    }
    return layouts
  }

  /** The cluster as it is now, with these topics. Errors of topics are left to the caller. */
  async describe(topics: readonly string[]): Promise<ClusterMetadata> {
    const answer = await this.send('any', metadata(topics))
    this.#addresses = new Map(answer.brokers.map(({ node, host, port }) => [node, `${host}:${port}`]))
    this.#controller = answer.controller
    return answer
  }

  /** Closes all sockets; requests under way fail. */
  async close(): Promise<void> {
    this.#closed = true
    const channels = [...this.#channels.values()]
    this.#channels.clear()
    await Promise.all(channels.map((channel) => channel.then(discard, () => undefined)))
  }

  async #channelOf(broker: number | 'controller', purpose: string): Promise<KafkaJsChannel> {
    const node = () => (broker === 'controller' ? this.#controller : broker)
    if (!this.#addresses.has(node())) await this.describe([])
    const address = this.#addresses.get(node())
    if (address === undefined) throw new PawlError('BROKER_UNREACHABLE', `broker ${broker} is not in the cluster`)
    return this.#channel(address, purpose)
  }

  /** A socket to a broker that answers, an open one first; else every address that is known, in turn. */
  async #anyChannel(): Promise<KafkaJsChannel> {
    const known = [...new Set([...this.#addresses.values(), ...this.#options.brokers])]
    const open = known.find((address) => this.#channels.has(`${address}/request`))
    if (open !== undefined) known.unshift(open)
    else for (let turn = this.#seed++ % known.length; turn > 0; turn--) known.push(known.shift()!)
    let failure: unknown
    for (const address of known) {
      try {
        return await this.#channel(address, 'request')
      } catch (error) {
        if (!(error instanceof PawlError) || error.code !== 'BROKER_UNREACHABLE') throw error
        failure = error
      }
    }
    throw failure
  }

  async #channel(address: string, purpose: string): Promise<KafkaJsChannel> {
    if (this.#closed) throw new PawlError('BROKER_UNREACHABLE', 'the connection was closed')
    const key = `${address}/${purpose}`
    const known = this.#channels.get(key)
    if (known !== undefined) {
      const channel = await known
      if (channel.connection.isConnected()) return channel
      this.#forget(key, known)
      return this.#channel(address, purpose)
    }
    const opening = this.#open(address)
    this.#channels.set(key, opening)
    try {
      return await opening
    } catch (error) {
      this.#forget(key, opening)
      throw error
    }
  }

  async #open(address: string): Promise<KafkaJsChannel> {
    const { clientId, connectTimeoutMs, requestTimeoutMs, security } = this.#options
    const colon = address.lastIndexOf(':')
    let secured: Security
    try {
      secured = await security()
    } catch (error) {
      throw connectFailed(`credentials for ${address}`, error)
    }
    const channel = await kafkaJsChannel({
      host: address.slice(0, colon).replace(/^\[(.*)\]$/, '$1'),
      port: Number(address.slice(colon + 1)),
      clientId,
      ...secured,
      connectionTimeoutMs: connectTimeoutMs,
      requestTimeoutMs,
    })
    // kafkajs bounds the time to connect, but not what follows.
    const late = () => channel.connection.rejectRequests(new Error(`no answer within ${2 * connectTimeoutMs} ms`))
    const timer = setTimeout(late, 2 * connectTimeoutMs)
    try {
      await channel.open()
    } catch (error) {
      await discard(channel)
      throw connectFailed(address, error)
    } finally {
      clearTimeout(timer)
    }
    const versions = { Fetch: [fetchKey, 13], Metadata: [3, 10] } as const
    for (const [name, [key, version]] of Object.entries(versions)) {
      if ((channel.versionMax(key) ?? -1) >= version) continue
      await discard(channel)
      throw new PawlError('BROKER_TOO_OLD', `${address} lacks version ${version} of ${name}`)
    }
    return channel
  }

  #forget(key: string, channel: Promise<KafkaJsChannel>): void {
    if (this.#channels.get(key) !== channel) return
    this.#channels.delete(key)
    channel.then(discard, () => undefined)
  }

  /** Writes the request as it is, without the copies that kafkajs would make, and waits for its answer. */
  async #exchange<T>(channel: KafkaJsChannel, request: WireRequest<T>, timeoutMs: number): Promise<Buffer> {
    const { connection } = channel
    const { apiKey, apiName, apiVersion } = request
    try {
      if (!connection.isAuthenticated()) await connection.authenticate()
    } catch (error) {
      await discard(channel)
      throw connectFailed(apiName, error)
    }
    const { socket } = connection
    if (socket === undefined || !connection.isConnected())
      throw new PawlError('BROKER_UNREACHABLE', `the connection closed before ${apiName}`)
    const correlationId = connection.nextCorrelationId()
    const header = requestHeader(request, correlationId, this.#options.clientId)
    try {
      const answer = await new Promise<{ readonly payload: Buffer }>((resolve, reject) => {
        connection.requestQueue.push({
          entry: { apiKey, apiName, apiVersion, correlationId, resolve, reject },
          expectResponse: true,
          requestTimeout: timeoutMs,
          sendRequest: () => {
            socket.cork()
            socket.write(header)
            for (const part of request.body) socket.write(part)
            socket.uncork()
          },
        })
      })
      return answer.payload
    } catch (error) {
      await discard(channel)
      throw answerLost(apiName, error)
    }
  }
}

/** Closes a socket at once; what waits on it fails. */
async function discard(channel: KafkaJsChannel): Promise<void> {
  const { connection } = channel
  connection.rejectRequests(new Error('the connection was closed'))
  await connection.disconnect()
  connection.socket?.destroy()
}

function requestHeader(request: WireRequest<unknown>, correlationId: number, clientId: string): Buffer {
  const name = Buffer.from(clientId)
  const header = Buffer.alloc(14 + name.length)
  let bytes = header.length - 4
  for (const part of request.body) bytes += part.length
  header.writeInt32BE(bytes, 0)
  header.writeInt16BE(request.apiKey, 4)
  header.writeInt16BE(request.apiVersion, 6)
  header.writeInt32BE(correlationId, 8)
  header.writeInt16BE(name.length, 12)
  name.copy(header, 14)
  return header
}

function topicRefused(topic: TopicMetadata['topic'], error: number): PawlError {
  const denied = error === 29
  const code = denied ? 'AUTHORIZATION_FAILED' : error === 17 ? 'TOPIC_MISSING' : 'LOG_UNAVAILABLE'
  return new PawlError(code, `topic ${topic} (Kafka error ${error})`, { topic, kafka: error })
}
