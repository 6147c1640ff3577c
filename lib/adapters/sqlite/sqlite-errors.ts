/**
 * Translates what SQLite throws into what Pawl throws.
 *
 * Source of the numbers: https://sqlite.org/rescode.html; the low byte is the primary code. An input or output
 * error while writing leaves the outcome open (a commit frame whose fsync failed may still be replayed), so it
 * is an unknown result and not a refusal.
 */
import { PawlError } from '../../model/errors.ts'

/** A statement that does not fit the schema: our statements never change, so the schema did. */
const logicError = 1
const busy = 5
const locked = 6
const ioError = 10
const corrupt = 11
const full = 13
const notADatabase = 26
/** The shared-memory file could not grow: how a full disk shows itself to a reader. */
const sharedMemorySize = 4874

function resultCode(error: unknown): number | null {
  const code = error instanceof Error && 'errcode' in error ? error.errcode : null
  return typeof code === 'number' ? code : null
}

/** True when another connection holds a lock: nothing was written, trying again is right. */
export function isBusy(error: unknown): boolean {
  const code = resultCode(error)
  return code !== null && ((code & 0xff) === busy || (code & 0xff) === locked)
}

/** The error to throw for an error of SQLite on `file`; anything else, ours too, comes back as it is. */
export function ledgerError(error: unknown, deed: 'read' | 'write', file: string): unknown {
  const code = resultCode(error)
  if (code === null) return error
  const details = { file, sqlite: code }
  const fault = `${file} (SQLite ${code}: ${(error as Error).message})`
  switch (code & 0xff) {
    case busy:
    case locked:
      return new PawlError('LEDGER_BUSY', fault, details, error)
    case logicError:
    case corrupt:
    case notADatabase:
      return new PawlError('LEDGER_DAMAGED', fault, details, error)
    case full:
      return new PawlError('DISK_FULL', fault, details, error)
    case ioError:
      if (code === sharedMemorySize) return new PawlError('DISK_FULL', fault, details, error)
      return new PawlError(deed === 'write' ? 'UNKNOWN_RESULT' : 'LEDGER_UNAVAILABLE', fault, details, error)
    default:
      return new PawlError('LEDGER_UNAVAILABLE', fault, details, error)
  }
}
