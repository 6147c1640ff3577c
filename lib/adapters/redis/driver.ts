/**
 * The parts of `ioredis` that the sink stands on, loaded when the first connection opens.
 *
 * A client of ours never reconnects and never sends again by itself: whoever uses it decides what a lost answer
 * means. In a cluster it only follows a command to the node that has its key, which no node carried out before. What is
 * used of the package is typed here, so that our declarations do not need its own.
 */
import { PawlError } from '../../model/errors.ts'
import type { DatabaseAddress } from '../shared/database-address.ts'

/** A client, of one server or of a cluster. */
export interface RedisClient {
  connect(): Promise<void>
  call(command: string, args: readonly (string | Buffer | number)[]): Promise<unknown>
  quit(): Promise<unknown>
  /** Cuts the connection; what waits for an answer is rejected. */
  disconnect(reconnect?: boolean): void
  on(event: 'error' | 'end', listener: (error?: unknown) => void): this
}

interface Driver {
  new (options: object): RedisClient
  readonly Cluster: new (nodes: readonly object[], options: object) => RedisClient
}

let driver: Promise<Driver> | null = null

/** A client that is not yet connected. Throws `PACKAGE_MISSING`. */
export async function newClient(
  { host, port, user, password, database, tls }: DatabaseAddress,
  { cluster, connectTimeoutMs }: { readonly cluster: boolean; readonly connectTimeoutMs: number },
): Promise<RedisClient> {
  driver ??= load()
  const Redis = await driver
  const credentials = { username: user, password, ...(tls === null ? {} : { tls }) }
  const behaviour = {
    lazyConnect: true,
    connectTimeout: connectTimeoutMs,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    connectionName: 'pawl',
  }
  if (!cluster) return new Redis({ host, port, ...credentials, db: Number(database ?? 0), ...behaviour })
  return new Redis.Cluster([{ host, port }], {
    lazyConnect: true,
    clusterRetryStrategy: () => null,
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    redisOptions: { ...credentials, ...behaviour, lazyConnect: false },
  })
}

async function load(): Promise<Driver> {
  try {
    // Named here: otherwise a bundle of functions would lack it.
    const module = (await import('ioredis' as string)) as { readonly default: Driver }
    return module.default
  } catch (error) {
    throw new PawlError('PACKAGE_MISSING', 'ioredis', { package: 'ioredis' }, error)
  }
}
