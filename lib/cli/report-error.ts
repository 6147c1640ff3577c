/**
 * How a command ends badly: one sentence with its code and the next step, and an exit code.
 *
 * No stack traces, unless `PAWL_DEBUG=1` asks for them. Under `--json` the error is a document on stdout as well.
 */
import { errorRegistry, isPawlError, PawlError } from '../model/errors.ts'
import type { Output } from './write-output.ts'

/** What each exit code means; the same list stands in `pawl --help`. */
export const exitCodes = Object.freeze({ success: 0, failure: 1, misuse: 2, parked: 3, paused: 4, interrupted: 130 })

/** Writes the error and answers with the exit code. */
export function reportError(error: unknown, output: Output, debug: boolean): number {
  const known = asPawlError(error)
  const { code, kind, details } = known
  const { action } = errorRegistry[code]
  output.record({ error: { code, kind, message: known.message, next: action, details } })
  output.remark(known.message)
  if (debug) output.remark(stackOf(error))
  return exitCodeOf(known)
}

function exitCodeOf({ code }: PawlError): number {
  if (code === 'COMMAND_INVALID') return exitCodes.misuse
  if (code === 'PIPELINE_PAUSED') return exitCodes.paused
  return code === 'PIPELINE_PARKED' ? exitCodes.parked : exitCodes.failure
}

function asPawlError(error: unknown): PawlError {
  if (isPawlError(error)) return error
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return new PawlError('ASSERTION_FAILED', text, {}, error)
}

function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const cause = error.cause === undefined ? '' : `\ncaused by ${stackOf(error.cause)}`
  return `${error.stack ?? error.message}${cause}`
}
