/**
 * What PostgreSQL's refusals mean for a sink, by SQLSTATE.
 *
 * Source: PostgreSQL documentation, appendix A "Error Codes". What a row or a table is to blame for parks the
 * pipeline until somebody mends it; everything unknown is taken for a database that will be well again.
 */
import { isPawlError, PawlError } from '../../model/errors.ts'
import type { PgServerError } from './driver.ts'

const codesByClass: readonly (readonly [
  start: string,
  code: 'AUTHENTICATION_FAILED' | 'AUTHORIZATION_FAILED' | 'ROWS_REFUSED' | 'SINK_SCHEMA_INVALID' | 'SINK_UNAVAILABLE',
])[] = [
  ['42501', 'AUTHORIZATION_FAILED'],
  // A statement that waited for a lock, or was cancelled: nobody's fault for long.
  ['55P03', 'SINK_UNAVAILABLE'],
  ['28', 'AUTHENTICATION_FAILED'],
  ['3D', 'SINK_SCHEMA_INVALID'],
  ['3F', 'SINK_SCHEMA_INVALID'],
  ['42', 'SINK_SCHEMA_INVALID'],
  ['0A', 'SINK_SCHEMA_INVALID'],
  ['22', 'ROWS_REFUSED'],
  ['23', 'ROWS_REFUSED'],
  ['44', 'ROWS_REFUSED'],
  ['P0', 'ROWS_REFUSED'],
  ['54', 'ROWS_REFUSED'],
]

/** An error of `pg` as one of ours, with its cause. */
export function translated(error: unknown, sink: string): PawlError {
  if (isPawlError(error)) return error
  if (error instanceof Error && error.message.startsWith('SASL')) {
    return new PawlError('AUTHENTICATION_FAILED', `PostgreSQL of sink ${sink}: ${error.message}`, { sink }, error)
  }
  if (!isServerError(error)) {
    return new PawlError(
      'SINK_UNAVAILABLE',
      `PostgreSQL of sink ${sink}: ${messageOf(error)}`,
      { sink, lost: true },
      error,
    )
  }
  const code = codesByClass.find(([start]) => error.code.startsWith(start))?.[1] ?? 'SINK_UNAVAILABLE'
  const reason = error.message
  // A server that goes down ends the connection with its answer.
  const lost = error.severity === 'FATAL' && code === 'SINK_UNAVAILABLE'
  const details = { sink, sqlState: error.code, reason, lost }
  if (code !== 'ROWS_REFUSED' && code !== 'SINK_SCHEMA_INVALID') {
    return new PawlError(code, `PostgreSQL of sink ${sink}: ${reason}`, details, error)
  }
  const { column, row, constraint } = placeOf(error)
  return new PawlError(code, `PostgreSQL of sink ${sink}: ${reason}`, { ...details, column, row, constraint }, error)
}

/** True when the server itself answered, so that it is known what became of the statement. */
export function isServerError(error: unknown): error is PgServerError {
  return error instanceof Error && 'severity' in error && 'code' in error && typeof error.code === 'string'
}

/** Column and row as far as the server names them; COPY says `COPY t, line 3, column n: "x"`. */
function placeOf(error: PgServerError) {
  const copied = /^COPY .*?, line (\d+)(?:, column ([^:\n]+))?/m.exec(error.where ?? '')
  const missing = /column "([^"]+)"/.exec(error.message)
  return {
    column: error.column ?? copied?.[2] ?? missing?.[1] ?? null,
    row: copied?.[1] === undefined ? null : Number(copied[1]) - 1,
    constraint: error.constraint ?? null,
  }
}

function messageOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join('; ')
  return error instanceof Error ? error.message : String(error)
}
