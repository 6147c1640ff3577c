/**
 * Assertions that stay on in production.
 *
 * They state what the protocol relies on; a broken one stops the step before it writes anything.
 */
import { PawlError } from './errors.ts'

/** Throws `ASSERTION_FAILED` unless `condition` holds. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new PawlError('ASSERTION_FAILED', message)
}

/** For the default branch of an exhaustive `switch`. */
export function unreachable(value: never): never {
  throw new PawlError('ASSERTION_FAILED', `unexpected variant ${JSON.stringify(value)}`)
}
