/**
 * `redis({...})`: a hash, set, sorted set, stream or many strings of Redis as an exactly-once sink.
 *
 * Rows wait in the store; one script tests the lane's marker, writes the rows and moves the marker. What Redis
 * loses with its last second (`appendfsync everysec`) or with a failover is lost with its marker, and promoted
 * again from the retained epochs. Credentials stay in a closure, so that a spec can be printed.
 */
import type { ConnectionOptions as TlsOptions } from 'node:tls'
import { PawlError } from '../../model/errors.ts'
import type { Marker } from '../../model/manifest.ts'
import { json, type Serde, text } from '../../model/serde.ts'
import type { RejectPolicy, Sink } from '../../ports/sink.ts'
import type { CustomSinkSpec, OpenContext } from '../../ports/spec.ts'
import { addressOf, type DatabaseAddress } from '../shared/database-address.ts'
import { revealed, type Secret, secretsIn } from '../shared/secret.ts'
import { type SessionPool, sessionPool } from '../shared/session-pool.ts'
import { newClient } from './driver.ts'
import { assertKey, markerKey, markerText, parseMarker, refusedKey } from './keys.ts'
import { type Promotion, promoteRows, refusedRows } from './promote.ts'
import { type RedisType, reassignScript } from './script.ts'
import { type RedisSession, redisSession } from './session.ts'
import { type RedisForm, type RedisMaker, readScriptRows, redisStageWriter } from './staging.ts'

/** `redis://user:password@host:6379/0` (`rediss:` for TLS), a function that gives it, or its parts. */
export type RedisConnection =
  | Secret
  | {
      readonly host: string
      readonly port?: number
      readonly username?: string
      readonly password?: Secret
      readonly database?: number
      readonly tls?: boolean | TlsOptions
    }

/** What is written where. */
export interface RedisOptions<K, V> {
  readonly connection: RedisConnection
  /** The connection leads to one of the nodes of a cluster. */
  readonly cluster?: boolean
  /**
   * `hash` has a field a key, `string` a Redis key a key, `set` and `sorted-set` a member a key: a null value removes
   * it. `stream` appends an entry a row, with the fields `timestampMs`, `key` and `value`.
   */
  readonly type: RedisType
  /** The key in Redis; for `string` what all keys begin with, in a cluster with a hash tag: `{totals}:`. */
  readonly key: string
  /** Field, end of the key, or member; the key of the stream by default. */
  readonly member?: (value: NonNullable<V>, key: K) => string
  /** Score of a `sorted-set`; the value itself by default. */
  readonly score?: (value: NonNullable<V>, key: K) => number
  /** How keys of the stream become members; text by default. */
  readonly keys?: Serde<K>
  /** JSON by default. */
  readonly value?: Serde<V>
  /**
   * What becomes of a row of type `string` whose key holds something else than text: `park` (default) stops the pipeline
   * there; `dead-letter` writes the others and sends it to the pipeline's dead letters. Other types have one key, and
   * always park.
   */
  readonly onReject?: RejectPolicy
  /** Promotion strands; Redis runs one script at a time, so more than 1 gains little. A `stream` has one. */
  readonly lanes?: number
  readonly connectTimeoutMs?: number
  /** How long one promotion may take; 30 s by default. */
  readonly timeoutMs?: number
}

/** One script stops the server for as long as it runs: about a second for this many rows. */
const limits = Object.freeze({ laneRowsMax: 200_000, laneBytesMax: 64 * 1024 * 1024 })

/** Describes a target in Redis. Throws `PIPELINE_INVALID` for options that contradict each other. */
export function redis<V, K = string>(options: RedisOptions<K, V>): CustomSinkSpec<K, V> {
  const { type, key, cluster = false, lanes = 1, connectTimeoutMs = 5000, timeoutMs = 30_000 } = options
  assertKey(key, type, cluster)
  if (options.score !== undefined && type !== 'sorted-set')
    throw new PawlError('PIPELINE_INVALID', `redis: key ${JSON.stringify(key)}: score belongs to type sorted-set`)
  const { onReject = 'park' } = options
  if (onReject !== 'park' && type !== 'string')
    throw new PawlError(
      'PIPELINE_INVALID',
      `redis: key ${JSON.stringify(key)}: a ${type} is one key, so no row of it is refused alone: leave out onReject`,
    )
  // Ids of entries follow from the stream, which another lane would move on.
  if (type === 'stream' && lanes !== 1)
    throw new PawlError('PIPELINE_INVALID', `redis: key ${JSON.stringify(key)}: a stream takes one lane, not ${lanes}`)
  const form: RedisForm = Object.freeze({ version: 1, type, key })
  const maker: RedisMaker = {
    keySerde: (options.keys ?? text()) as Serde<unknown>,
    valueSerde: (options.value ?? json<V>()) as Serde<unknown>,
    member: (options.member as RedisMaker['member'] | undefined) ?? null,
    score: (options.score as RedisMaker['score'] | undefined) ?? null,
  }
  return Object.freeze({
    kind: 'sink',
    type: 'redis',
    guarantee: 'exactly-once',
    onReject,
    lanes,
    resources: secretsIn(options.connection),
    async open(sink, context) {
      const open = async (): Promise<RedisSession> => {
        const client = await newClient(await redisAddress(options.connection, sink), { cluster, connectTimeoutMs })
        return redisSession(client, { sink, manyKeys: type === 'string' ? key : null })
      }
      const sessions = sessionPool({ sink, open, idleMax: lanes, timeoutMs })
      return redisSink(sink, context, { form, maker, onReject }, sessions)
    },
  } satisfies CustomSinkSpec<K, V>)
}

interface Target {
  readonly form: RedisForm
  readonly maker: RedisMaker
  readonly onReject: RejectPolicy
}

function redisSink(
  sink: string,
  { stage, pipeline, store }: OpenContext,
  { form, maker, onReject }: Target,
  sessions: SessionPool<RedisSession>,
): Sink {
  const keyOf = (lane: number) => markerKey(form.key, { stage, pipeline, sink, lane })
  const read = async (session: RedisSession, lane: number): Promise<Marker | null> => {
    const found = await session.call('GET', [keyOf(lane)])
    return found === null ? null : parseMarker(String(found))
  }
  return {
    target: `redis:${form.type}:${form.key}`,
    limits,
    async stage(context) {
      return redisStageWriter(context, form, maker)
    },
    base: (lane, marker) =>
      sessions.use(async (session) => {
        await session.call('SET', [keyOf(lane), markerText(marker), 'NX'])
        return (await read(session, lane)) ?? marker
      }),
    async promote(committable, permit, { healing = false } = {}) {
      const [staged, rows] = await readScriptRows(store, committable)
      const lane = { stage, pipeline, sink, lane: committable.lane }
      const carries = onReject === 'dead-letter'
      const promotion: Promotion = { committable, permit, form: staged, lane, healing, carries }
      return sessions.use((session) => promoteRows(session, promotion, rows))
    },
    marker: (lane) => sessions.use((session) => read(session, lane)),
    reassign: (lane, from, to) =>
      sessions.use(async (session) => {
        const texts = [from, to].map((marker) => (marker === null ? '' : markerText(marker)))
        const found = await session.call('EVAL', [reassignScript, 1, keyOf(lane), ...texts])
        return found === null ? null : parseMarker(String(found))
      }),
    ...refusedRows(sessions, (lane) => refusedKey(form.key, { stage, pipeline, sink, lane })),
    close: () => sessions.close(),
  }
}

async function redisAddress(connection: RedisConnection, sink: string): Promise<DatabaseAddress> {
  const form = { sink, protocols: ['redis:', 'rediss:'], port: 6379 }
  if (typeof connection === 'string' || typeof connection === 'function') {
    const secret = await revealed(connection)
    const address = await addressOf(secret, form)
    return secret.startsWith('rediss:') && address.tls === null ? { ...address, tls: {} } : address
  }
  const { host, port = form.port, username, database, tls = false } = connection
  const password = connection.password === undefined ? undefined : await revealed(connection.password)
  const options = tls === true ? {} : tls === false ? null : tls
  return { host, port, user: username, password, database: String(database ?? 0), tls: options }
}
