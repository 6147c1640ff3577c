/**
 * What refusals of MySQL and MariaDB mean for a sink, by number and SQLSTATE.
 *
 * Sources: MySQL 8.4 "Server Error Message Reference", MariaDB "MariaDB Error Codes". What a row or a table is to
 * blame for parks the pipeline until somebody mends it; everything unknown is taken for a database that will be
 * well again. The vendor's errors carry whole statements: causes keep code, number and message only.
 */
import { isPawlError, PawlError } from '../../model/errors.ts'
import type { MySqlError } from './driver.ts'

type Refusal =
  | 'AUTHENTICATION_FAILED'
  | 'AUTHORIZATION_FAILED'
  | 'ROWS_REFUSED'
  | 'SINK_SCHEMA_INVALID'
  | 'SINK_UNAVAILABLE'

const numbers: Readonly<Record<Refusal, readonly number[]>> = {
  AUTHENTICATION_FAILED: [1045, 1251, 1698, 1862, 3118],
  AUTHORIZATION_FAILED: [1044, 1142, 1143, 1227, 1370],
  // No default (1364), generated columns (1906, 3105), packet (1153), CHECK (3819, 4025), triggers (1644), JSON.
  ROWS_REFUSED: [1048, 1062, 1153, 1264, 1265, 1292, 1364, 1366, 1406, 1416, 1451, 1452, 1644, 3140, 3819, 4025],
  SINK_SCHEMA_INVALID: [1049, 1054, 1064, 1072, 1136, 1146, 1210, 1305, 1906, 3105],
  // Waits, deadlocks, kills, full disks and tables, read-only replicas.
  SINK_UNAVAILABLE: [1021, 1040, 1041, 1053, 1114, 1205, 1213, 1290, 1317, 1792, 1836, 1927, 1969, 3024],
}
const states: readonly (readonly [start: string, code: Refusal])[] = [
  ['22', 'ROWS_REFUSED'],
  ['23', 'ROWS_REFUSED'],
  ['45', 'ROWS_REFUSED'],
  ['28', 'AUTHENTICATION_FAILED'],
  ['42', 'SINK_SCHEMA_INVALID'],
]

/** An error of `mysql2` as one of ours. */
export function translated(error: unknown, sink: string): PawlError {
  if (isPawlError(error)) return error
  const { code, errno, sqlState, sqlMessage, message } = error as MySqlError
  const reason = sqlMessage ?? message
  const cause = Object.assign(new Error(reason), { code, errno, sqlState })
  if (!isServerError(error)) {
    return new PawlError('SINK_UNAVAILABLE', `MySQL of sink ${sink}: ${reason || code}`, { sink, lost: true }, cause)
  }
  const refusal = refusalOf(error)
  const details = { sink, errno: errno ?? null, sqlState: sqlState ?? null, reason, lost: errno === 1053 }
  if (refusal !== 'ROWS_REFUSED' && refusal !== 'SINK_SCHEMA_INVALID')
    return new PawlError(refusal, `MySQL of sink ${sink}: ${reason}`, details, cause)
  const column = columnOf(reason)
  return new PawlError(refusal, `MySQL of sink ${sink}: ${reason}`, { ...details, column }, cause)
}

/** True when the server itself answered. */
export function isServerError(error: unknown): error is MySqlError {
  return error instanceof Error && typeof (error as MySqlError).sqlState === 'string'
}

function refusalOf({ errno, sqlState }: MySqlError): Refusal {
  for (const [code, listed] of Object.entries(numbers)) if (listed.includes(errno ?? 0)) return code as Refusal
  return states.find(([start]) => sqlState?.startsWith(start))?.[1] ?? 'SINK_UNAVAILABLE'
}

/** `column 'n'`, or in MariaDB `` column `db`.`t`.`n` ``; a missing default names its field. */
function columnOf(message: string): string | null {
  const quoted = /(?:column|field) '([^']+)'/i.exec(message)?.[1]
  const path = /column ((?:`[^`]+`\.?)+)/i.exec(message)?.[1]
  return quoted?.split('.').at(-1) ?? path?.split('.').at(-1)?.replaceAll('`', '') ?? null
}
