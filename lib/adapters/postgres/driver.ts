/**
 * The parts of `pg` 8 and `pg-copy-streams` 7 that the sink stands on, loaded when the first connection opens.
 *
 * What is used of them is typed here, so that the declarations of this package need theirs as little as its code.
 */
import type { Writable } from 'node:stream'
import { PawlError } from '../../model/errors.ts'
import type { DatabaseAddress } from '../shared/database-address.ts'

/** An answer to a statement. */
export interface PgResult {
  readonly command: string
  readonly rows: readonly Readonly<Record<string, unknown>>[]
}

/** A connection of `pg`. */
export interface PgClient {
  connect(): Promise<unknown>
  /** Without values: the simple protocol, several statements allowed; the last answer or a list of them. */
  query(text: string, values?: readonly unknown[]): Promise<PgResult>
  query<T extends Writable>(submittable: T): T
  end(): Promise<void>
  on(event: 'error' | 'end', listener: (error?: unknown) => void): this
  readonly connection: { readonly stream: { destroy(): unknown } }
}

/** An error of the server: fields of its ErrorResponse. */
export interface PgServerError extends Error {
  readonly severity: string
  /** SQLSTATE. */
  readonly code: string
  readonly where?: string
  readonly column?: string
  readonly constraint?: string
  /** Of the constraint's table. */
  readonly schema?: string
  readonly table?: string
  readonly detail?: string
}

interface Driver {
  readonly Client: new (config: object) => PgClient
  readonly copyFrom: (statement: string) => Writable
}

let driver: Promise<Driver> | null = null

/** Loads the packages once. Throws `PACKAGE_MISSING`. */
export async function loadDriver(): Promise<Driver> {
  driver ??= load()
  return driver
}

async function load(): Promise<Driver> {
  const { Client } = (await loadPg()) as { readonly Client: Driver['Client'] }
  const { from } = (await loadCopyStreams()) as { readonly from: Driver['copyFrom'] }
  return { Client, copyFrom: from }
}

// Each package is named where it is imported: otherwise a bundle of functions would lack it.

async function loadPg(): Promise<unknown> {
  try {
    return (await import('pg' as string)).default
  } catch (error) {
    throw missing('pg', error)
  }
}

async function loadCopyStreams(): Promise<unknown> {
  try {
    return (await import('pg-copy-streams' as string)).default
  } catch (error) {
    throw missing('pg-copy-streams', error)
  }
}

function missing(name: string, cause: unknown): PawlError {
  return new PawlError('PACKAGE_MISSING', name, { package: name }, cause)
}

/** What `Client` takes. */
export function clientConfig(address: DatabaseAddress, connectTimeoutMs: number): object {
  const { host, port, user, password, database, tls } = address
  return {
    host,
    port,
    user,
    password,
    database,
    ssl: tls === null ? false : tls,
    application_name: 'pawl',
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
  }
}
