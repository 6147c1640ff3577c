/**
 * Where a database is and who we are there, from a connection string or an object.
 *
 * Parsed here and not by the vendors' libraries, whose errors may carry the whole string: an error of ours names
 * the sink and what is wrong, never what was given. Unknown parameters are refused, so that a misspelt `sslmode`
 * does not connect in the clear.
 */
import type { ConnectionOptions as TlsOptions } from 'node:tls'
import { PawlError } from '../../model/errors.ts'
import { revealed, type Secret } from './secret.ts'

/** A connection string (`postgres://user:password@host:5432/database?sslmode=verify-full`), or its parts. */
export type DatabaseConnection = Secret | DatabaseParts

/** The parts of a connection. */
export interface DatabaseParts {
  /** A name, an address, or for PostgreSQL and MySQL the path of a socket. */
  readonly host: string
  readonly port?: number
  readonly user: string
  readonly password?: Secret
  readonly database: string
  /** True for TLS with the system's authorities; else what `node:tls` takes. */
  readonly ssl?: boolean | TlsOptions
}

/** A connection with its secret; lives only while a connection is opened. */
export interface DatabaseAddress {
  readonly host: string
  readonly port: number
  readonly user: string | undefined
  readonly password: string | undefined
  readonly database: string | undefined
  readonly tls: TlsOptions | null
}

/** What a kind of database takes for granted. */
export interface AddressForm {
  readonly sink: string
  /** With the colon: `postgres:`. */
  readonly protocols: readonly string[]
  readonly port: number
}

/** The address that a connection leads to now. Throws `PIPELINE_INVALID`, without anything of the string in it. */
export async function addressOf(connection: DatabaseConnection, form: AddressForm): Promise<DatabaseAddress> {
  if (typeof connection === 'string' || typeof connection === 'function') {
    return parsedAddress(await revealed(connection), form)
  }
  const { host, port = form.port, user, database, ssl = false } = connection
  const password = connection.password === undefined ? undefined : await revealed(connection.password)
  return { host, port, user, password, database, tls: ssl === true ? {} : ssl === false ? null : ssl }
}

function parsedAddress(text: string, form: AddressForm): DatabaseAddress {
  const refusal = (fault: string) =>
    new PawlError('PIPELINE_INVALID', `the connection string of sink ${form.sink} ${fault}`, { sink: form.sink })
  const url = URL.parse(text)
  if (url === null) throw refusal('is no URL')
  if (!form.protocols.includes(url.protocol)) throw refusal(`begins with none of ${form.protocols.join(', ')}`)
  let tls: TlsOptions | null = null
  let host = decoded(url.hostname).replace(/^\[(.*)\]$/, '$1')
  for (const [name, value] of url.searchParams) {
    if (name === 'host') host = value
    else if (name === 'sslmode' || name === 'ssl-mode') tls = tlsOf(value) ?? null
    else throw refusal(`has a parameter ${JSON.stringify(name)}, known are host and sslmode`)
    if (name !== 'host' && tlsOf(value) === undefined) throw refusal(`has an unknown ${name}`)
  }
  const part = (value: string) => (value === '' ? undefined : decoded(value))
  return {
    host: host === '' ? 'localhost' : host,
    port: url.port === '' ? form.port : Number(url.port),
    user: part(url.username),
    password: part(url.password),
    database: part(url.pathname.slice(1)),
    tls,
  }
}

/** Every mode that asks for TLS verifies the server, but for `no-verify`. */
function tlsOf(mode: string): TlsOptions | null | undefined {
  switch (mode.toLowerCase()) {
    case 'disable':
    case 'disabled':
      return null
    case 'require':
    case 'required':
    case 'verify-ca':
    case 'verify-full':
      return {}
    case 'no-verify':
      return { rejectUnauthorized: false }
    default:
      return undefined
  }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
