/**
 * Cause: what a caught error says, whether it was thrown here or handed over by Step Functions.
 *
 * Reads:  an error. Writes: nothing. Step Functions passes `{Error, Cause}`, where Error is the kind and Cause the
 * message; `States.Timeout` is a step that took too long. Pure.
 */
import { type ErrorCode, type ErrorDetails, type ErrorKind, errorRegistry, isPawlError } from '../model/errors.ts'
import type { SourceOffset } from '../model/head.ts'

export interface Cause {
  readonly code: string
  readonly kind: ErrorKind
  readonly message: string
  /** The record at fault, when the error names one. */
  readonly record: SourceOffset | null
  readonly operator: string | null
}

const fault = (code: ErrorCode, message: string): Cause => ({
  code,
  kind: errorRegistry[code].kind,
  message,
  record: null,
  operator: null,
})

/** Before the details in a message that travels through Step Functions, which hands over nothing but the text. */
const detailsMark = '\ndetails: '

/** The error as a step must throw it: named by kind, with its details in the text. */
export function carry(error: unknown): Error {
  const { kind, message } = causeOf(error)
  const details = isPawlError(error) ? error.details : {}
  const carried = new Error(`${message}${detailsMark}${JSON.stringify(details)}`, { cause: error })
  carried.name = kind
  return carried
}

/** Understands a `PawlError`, what Step Functions made of one, a timeout, and anything else. */
export function causeOf(error: unknown): Cause {
  if (isPawlError(error))
    return { code: error.code, kind: error.kind, message: error.message, ...recordOf(error.details) }
  const caught = error as { Error?: unknown; Cause?: unknown } | null | undefined
  if (caught && typeof caught === 'object' && typeof caught.Error === 'string')
    return fromCaught(caught.Error, caught.Cause)
  return fault('ASSERTION_FAILED', error instanceof Error ? `${error.name}: ${error.message}` : String(error))
}

function fromCaught(name: string, cause: unknown): Cause {
  if (isPawlError(cause)) return causeOf(cause)
  if (name === 'States.Timeout' || name === 'StatesTimeoutError' || name === 'Sandbox.Timedout')
    return fault('EPOCH_TIMEOUT', 'EPOCH_TIMEOUT: a step took longer than the checkpoint timeout')
  const text = typeof cause === 'string' ? cause : JSON.stringify(cause ?? name)
  const carried = parse(text)?.errorMessage ?? text
  const at = carried.indexOf(detailsMark)
  const message = at < 0 ? carried : carried.slice(0, at)
  const details = at < 0 ? {} : (parse(carried.slice(at + detailsMark.length)) as ErrorDetails)
  const code = /^([A-Z_]+): /.exec(message)?.[1]
  if (code && code in errorRegistry) {
    const known = errorRegistry[code as ErrorCode]
    return { code, kind: known.kind, message, ...recordOf(details ?? {}) }
  }
  return fromPlatform(name, message)
}

/** A function that died without an error of its own, and what AWS says when it could not call one. */
function fromPlatform(name: string, message: string): Cause {
  if (/Task timed out after/.test(message))
    return fault('EPOCH_TIMEOUT', 'EPOCH_TIMEOUT: a function took longer than it may')
  if (name.startsWith('Runtime.') || name === 'Lambda.Unknown') {
    return fault('EPOCH_CRASHED', `EPOCH_CRASHED: a function died: ${message}`)
  }
  if (name.startsWith('Lambda.')) return fault('FUNCTION_UNAVAILABLE', `FUNCTION_UNAVAILABLE: ${name}: ${message}`)
  return fault('ASSERTION_FAILED', `${name}: ${message}`)
}

function parse(text: string): { errorMessage?: string } | null {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function recordOf(details: ErrorDetails): Pick<Cause, 'record' | 'operator'> {
  const { source, partition, offset, operator } = details
  const named = typeof source === 'string' && typeof partition === 'number' && typeof offset === 'string'
  return {
    record: named ? { source, partition, offset } : null,
    operator: typeof operator === 'string' ? operator : null,
  }
}
