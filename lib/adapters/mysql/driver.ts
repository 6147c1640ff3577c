/**
 * The parts of `mysql2` 3 that the sink stands on, loaded when the first connection opens.
 *
 * What is used of it is typed here, so that the declarations of this package need its own as little as its code.
 * LOCAL INFILE is switched off: a server must not be able to ask for files of ours.
 */
import { PawlError } from '../../model/errors.ts'
import type { DatabaseAddress } from '../shared/database-address.ts'

/** Rows of a SELECT; something else for other statements. */
export type MySqlAnswer = readonly Readonly<Record<string, unknown>>[]

/** A connection of `mysql2/promise`. */
export interface MySqlConnection {
  /** With values, each `?` outside of quotes is replaced by an escaped one. */
  query(options: {
    readonly sql: string
    readonly values?: readonly unknown[]
    readonly timeout?: number
  }): Promise<[MySqlAnswer, unknown]>
  end(): Promise<void>
  destroy(): void
  readonly connection: { on(event: 'error' | 'end', listener: () => void): unknown }
}

/** An error of the server has a number and an SQLSTATE; one of the connection has only a code. */
export interface MySqlError extends Error {
  readonly code?: string
  readonly errno?: number
  readonly sqlState?: string
  readonly sqlMessage?: string
}

interface Driver {
  createConnection(config: object): Promise<MySqlConnection>
}

let driver: Promise<Driver> | null = null

/** Loads the package once. Throws `PACKAGE_MISSING`. */
export async function loadDriver(): Promise<Driver> {
  driver ??= load()
  return driver
}

async function load(): Promise<Driver> {
  try {
    // Named here: otherwise a bundle of functions would lack it.
    const module = (await import('mysql2/promise' as string)) as { readonly default: Driver }
    return module.default
  } catch (error) {
    throw new PawlError('PACKAGE_MISSING', 'mysql2', { package: 'mysql2' }, error)
  }
}

/** What `createConnection` takes. */
export function connectionConfig(address: DatabaseAddress, connectTimeoutMs: number): object {
  const { host, port, user, password, database, tls } = address
  return {
    ...(host.startsWith('/') ? { socketPath: host } : { host, port }),
    user,
    password,
    database,
    ...(tls === null ? {} : { ssl: tls }),
    charset: 'utf8mb4',
    timezone: 'Z',
    connectTimeout: connectTimeoutMs,
    flags: ['-LOCAL_FILES'],
    enableKeepAlive: true,
  }
}
