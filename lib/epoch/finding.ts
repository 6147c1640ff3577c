/**
 * A finding of the doctor, and the patient: what all checks share.
 *
 * Reads:  nothing. Writes: nothing; pure. Safe to repeat because: it only makes values.
 */
import { type ErrorCode, errorRegistry } from '../model/errors.ts'
import type { ClusterSpec } from '../ports/spec.ts'
import type { Surroundings } from '../ports/surroundings.ts'
import { causeOf } from './cause.ts'
import type { Job } from './job.ts'

/** What one check found. */
export interface Finding {
  /** What was looked at, as in `source lines`. */
  readonly check: string
  readonly level: 'ok' | 'warn' | 'fail'
  /** One sentence. */
  readonly text: string
  /** What the person does; null when all is well. */
  readonly mend: string | null
  readonly code: ErrorCode | null
}

/** The pipeline, and what is around it. */
export interface Patient {
  readonly job: Job
  /** Where topics live that name no cluster of their own; null: in the directory. */
  readonly cluster: ClusterSpec | null
  readonly stage: string
  /** Null on one machine. */
  readonly surroundings: Surroundings | null
}

/** The finding of a check that came through. */
export const well = (check: string, text: string): Finding => ({ check, level: 'ok', text, mend: null, code: null })

/** The finding of something that will or may go wrong. */
export function ill(
  check: string,
  level: 'warn' | 'fail',
  text: string,
  mend: string,
  code: ErrorCode | null = null,
): Finding {
  return { check, level, text, mend, code }
}

/** What a check threw, with the next step of its code. */
export function broken(check: string, error: unknown): Finding {
  const { code, message } = causeOf(error)
  const known = code in errorRegistry ? (code as ErrorCode) : null
  const mend = known === null ? 'see the message' : errorRegistry[known].action
  return ill(check, 'fail', message.replace(/\.? Next: .*$/s, ''), mend, known)
}
