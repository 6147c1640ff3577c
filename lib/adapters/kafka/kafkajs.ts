/**
 * The parts of kafkajs 2.2 that the connection stands on: sockets, TLS, SASL and the queue of requests.
 *
 * Only its internals are used, because its public consumer and producer cannot do what is needed here. They are
 * loaded when the first connection is opened. What is used of them is typed below, nothing else may be relied on.
 */
import type { Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { PawlError } from '../../model/errors.ts'
import { answerSocket } from './answer-socket.ts'

/** What kafkajs wants to know for SASL; made by `auth.ts`. */
export type KafkaJsSasl =
  | {
      readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'
      readonly username: string
      readonly password: string
    }
  | { readonly mechanism: 'oauthbearer'; readonly oauthBearerProvider: () => Promise<{ readonly value: string }> }

/** One socket to be: where to, as whom, how long at most. */
export interface KafkaJsConnectionOptions {
  readonly host: string
  readonly port: number
  readonly clientId: string
  readonly ssl: ConnectionOptions | null
  readonly sasl: KafkaJsSasl | null
  readonly connectionTimeoutMs: number
  readonly requestTimeoutMs: number
}

/** kafkajs's `Connection`: one socket. */
export interface KafkaJsConnection {
  readonly socket?: Socket
  readonly requestQueue: KafkaJsRequestQueue
  isConnected(): boolean
  isAuthenticated(): boolean
  /** Authenticates again when the session is about to end; a no-op without SASL. */
  authenticate(): Promise<void>
  nextCorrelationId(): number
  rejectRequests(error: Error): void
  /** Pieces of an answer that is not complete, and how much they hold. */
  readonly chunks: Buffer[]
  readonly bytesBuffered: number
  processData(piece: Buffer): void
  disconnect(): Promise<unknown>
}

/** kafkajs's queue of the requests on one socket, which matches answers and times requests out. */
export interface KafkaJsRequestQueue {
  readonly pending: readonly unknown[]
  readonly throttledUntil: number
  scheduleCheckPendingRequests(): void
  readonly inflight: ReadonlyMap<number, KafkaJsSentRequest>
  requestTimeoutIntervalId: NodeJS.Timeout | null
  /** Called when the socket is open. */
  scheduleRequestTimeoutCheck(): void
  isConnected(): boolean
  /** Clears the interval. */
  destroy(): void
  push(request: {
    readonly entry: {
      readonly apiKey: number
      readonly apiName: string
      readonly apiVersion: number
      readonly correlationId: number
      readonly resolve: (answer: { readonly payload: Buffer }) => void
      readonly reject: (error: unknown) => void
    }
    readonly expectResponse: boolean
    readonly requestTimeout: number
    readonly sendRequest: () => void
  }): void
}

/** A request that waits for its answer. */
interface KafkaJsSentRequest {
  readonly sentAt: number
  readonly requestTimeout: number
  timeoutRequest(): void
}

/** A connection with what the broker speaks, not yet open. */
export interface KafkaJsChannel {
  readonly connection: KafkaJsConnection
  /** Connects, asks for the API versions, authenticates. */
  open(): Promise<void>
  /** Newest version of an API at the broker; null when it has none. Only when open. */
  versionMax(apiKey: number): number | null
}

interface Internals {
  readonly Broker: new (
    options: object,
  ) => {
    readonly versions: Readonly<Record<number, { readonly minVersion: number; readonly maxVersion: number }>> | null
    connect(): Promise<void>
  }
  readonly ConnectionPool: new (options: object) => { readonly pool: readonly KafkaJsConnection[] }
  readonly logger: unknown
  readonly socketFactory: unknown
}

let internals: Internals | null = null

/** Makes a channel to one address. Throws `PACKAGE_MISSING` when kafkajs is not installed. */
export async function kafkaJsChannel(options: KafkaJsConnectionOptions): Promise<KafkaJsChannel> {
  internals ??= await load()
  const { Broker, ConnectionPool, logger, socketFactory } = internals
  const pool = new ConnectionPool({
    host: options.host,
    port: options.port,
    clientId: options.clientId,
    ssl: options.ssl,
    // kafkajs keeps its authenticator in this object.
    sasl: options.sasl === null ? null : { ...options.sasl },
    logger,
    socketFactory: options.ssl === null ? answerSocket : socketFactory,
    connectionTimeout: options.connectionTimeoutMs,
    requestTimeout: options.requestTimeoutMs,
    enforceRequestTimeout: true,
    maxInFlightRequests: null,
  })
  const broker = new Broker({ connectionPool: pool, logger, allowAutoTopicCreation: false })
  const [connection] = pool.pool
  quieten(connection.requestQueue)
  checkSeldom(connection.requestQueue, options.requestTimeoutMs)
  keepWhole(connection)
  return {
    connection,
    open: () => broker.connect(),
    versionMax: (apiKey) => broker.versions?.[apiKey]?.maxVersion ?? null,
  }
}

/** Literal paths, so that a bundler packs them; not typed by kafkajs, hence the assertions. */
async function load(): Promise<Internals> {
  try {
    const [loggers, broker, pool, socketFactory] = await Promise.all([
      import('kafkajs/src/loggers/index.js' as string),
      import('kafkajs/src/broker/index.js' as string),
      import('kafkajs/src/network/connectionPool.js' as string),
      import('kafkajs/src/network/socketFactory.js' as string),
    ])
    return {
      Broker: broker.default,
      ConnectionPool: pool.default,
      logger: loggers.default.createLogger({ level: 0, logCreator: () => () => {} }),
      socketFactory: socketFactory.default(),
    }
  } catch (error) {
    throw new PawlError('PACKAGE_MISSING', 'kafkajs 2.2', { package: 'kafkajs' }, error)
  }
}

/** kafkajs keeps the empty rest of the last answer, and would copy the next one only to put it behind that. */
function keepWhole(connection: KafkaJsConnection): void {
  const take = connection.processData.bind(connection)
  connection.processData = (piece) => {
    if (connection.bytesBuffered === 0) connection.chunks.length = 0
    take(piece)
  }
}

/** kafkajs looks for requests without an answer ten times a second, however long they may take: most of an idle socket's cost. */
function checkSeldom(queue: KafkaJsRequestQueue, requestTimeoutMs: number): void {
  queue.scheduleRequestTimeoutCheck = () => {
    queue.destroy()
    const check = () => {
      for (const request of queue.inflight.values())
        if (Date.now() - request.sentAt > request.requestTimeout) request.timeoutRequest()
      if (!queue.isConnected()) queue.destroy()
    }
    queue.requestTimeoutIntervalId = setInterval(check, Math.min(Math.max(requestTimeoutMs / 10, 100), 5000))
  }
}

/** kafkajs sets a timer of negative length after every answer, of which Node warns; it is needed only to wait. */
function quieten(queue: KafkaJsRequestQueue): void {
  const schedule = queue.scheduleCheckPendingRequests.bind(queue)
  queue.scheduleCheckPendingRequests = () => {
    if (queue.pending.length > 0 || queue.throttledUntil > Date.now()) schedule()
  }
}
