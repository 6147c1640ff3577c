/**
 * Restart: what follows a failure. Pure.
 *
 * Reads:  the failures in the head, the settings. Writes: nothing.
 * Two questions are answered together: when the next attempt may open (the restart strategy), and how large it may
 * be (bisection). An error that names its record needs no bisection; one that comes again on the same record parks.
 * A death without a word halves the next attempt from the second time on, until one record is left, which is
 * convicted by repeated failure alone.
 */
import { type ErrorCode, errorRegistry } from '../model/errors.ts'
import type { FailureReason, Failures, Head, OpenAttempt, Parked, SourceOffset } from '../model/head.ts'
import { limits } from '../model/limits.ts'
import type { RestartStrategy, Settings } from '../model/settings.ts'

/** What a failure leads to: the failures as the head keeps them, and whether the pipeline parks. */
export interface Verdict {
  readonly failures: Failures
  /** Null: try again at `failures.notBeforeMs`. */
  readonly parked: Omit<Parked, 'build'> | null
}

/** The failures of an epoch that has none. */
export const noFailures: Failures = Object.freeze({
  count: 0,
  atMs: [],
  last: null,
  notBeforeMs: 0,
  spanMax: null,
  suspect: null,
  convicted: [],
})

/** Codes that say nothing about a record: the attempt died, or was too large. */
const halvesAtOnce: ReadonlySet<string> = new Set(['EPOCH_TIMEOUT', 'EPOCH_TOO_LARGE'])
const halvesAgain: ReadonlySet<string> = new Set(['EPOCH_CRASHED', 'WORKER_DIED'])
/** Codes of kind Invalid that another try may yet pass: the record may be read or judged differently. */
const worthRetrying: ReadonlySet<string> = new Set([
  'OPERATOR_FAILED',
  'DECODE_FAILED',
  'ENCODE_FAILED',
  'RECORD_TOO_LARGE',
])

/** Judges one more failure of the epoch that is next. `open` is the attempt that failed, if one was open. */
export function judgeFailure(
  before: Failures,
  reason: FailureReason,
  open: OpenAttempt | null,
  settings: Settings,
): Verdict {
  const count = before.count + 1
  const atMs = [...before.atMs, reason.atMs].slice(-limits.failureTimesMax)
  const bisected = bisect(before, reason, open, count, settings)
  const failures: Failures = { ...before, ...bisected, count, atMs, last: reason }
  const parked = (message: string): Verdict => ({
    failures: { ...failures, notBeforeMs: reason.atMs },
    parked: { kind: 'failure', code: reason.code, message, sinceMs: reason.atMs, retryAtMs: null, retries: 0 },
  })
  if (isHopeless(before, reason, settings)) return parked(reason.message)
  if (guilty(bisected, settings)) return parked(convictionOf(bisected.convicted, reason))
  if (count <= settings.checkpoint.tolerableFailures)
    return { failures: { ...failures, notBeforeMs: reason.atMs }, parked: null }
  const delayMs = delayOf(settings.restart, count - settings.checkpoint.tolerableFailures, atMs, reason.atMs)
  if (delayMs === null)
    return parked(`${reason.message} (restart strategy ${settings.restart.strategy} gives up after ${count})`)
  return { failures: { ...failures, notBeforeMs: reason.atMs + delayMs }, parked: null }
}

/** What a commit makes of the failures: forgotten, and the next epoch may be twice as large. */
export function forgiveFailures(before: Failures, spanFull: number): Failures {
  const spanMax = before.spanMax === null || before.spanMax * 2 >= spanFull ? null : before.spanMax * 2
  return { ...noFailures, atMs: before.atMs, last: before.last, spanMax }
}

/** The head without its park, as if nothing had failed; what failed last stays readable. */
export function unparked(head: Head): Head {
  return { ...head, parked: null, failures: { ...noFailures, last: head.failures.last } }
}

/** Milliseconds until the next try, or null to give up. `nth` counts from 1. */
export function delayOf(strategy: RestartStrategy, nth: number, atMs: readonly number[], nowMs: number): number | null {
  switch (strategy.strategy) {
    case 'none':
      return null
    case 'fixed-delay':
      return nth > strategy.attempts ? null : strategy.delayMs
    case 'exponential-delay':
      if (strategy.attempts !== null && nth > strategy.attempts) return null
      return Math.min(strategy.maxMs, strategy.initialMs * strategy.multiplier ** Math.min(nth - 1, 64))
    case 'failure-rate':
      return atMs.filter((at) => at > nowMs - strategy.intervalMs).length > strategy.failures ? null : strategy.delayMs
  }
}

/** True when repeating is no use: wrong by configuration, contradicted by what is stored, or the same record again. */
function isHopeless(before: Failures, reason: FailureReason, settings: Settings): boolean {
  const kind = reason.code in errorRegistry ? errorRegistry[reason.code as ErrorCode].kind : 'Bug'
  if (reason.record !== null) {
    const again = before.last !== null && sameOffset(before.last.record, reason.record) && before.count > 0
    return again && before.count + 1 >= settings.epoch.convictAfter && worthRetrying.has(reason.code)
  }
  return (kind === 'Invalid' || kind === 'Corrupt') && !worthRetrying.has(reason.code)
}

type Bisected = Pick<Failures, 'spanMax' | 'suspect' | 'convicted'>

function bisect(
  before: Failures,
  reason: FailureReason,
  open: OpenAttempt | null,
  count: number,
  settings: Settings,
): Bisected {
  const { spanMax, suspect, convicted } = before
  const halves = halvesAtOnce.has(reason.code) || (halvesAgain.has(reason.code) && count > 1)
  if (open === null || reason.record !== null || !halves) return { spanMax, suspect, convicted }
  if (open.suspect === null) return { spanMax: Math.max(1, Math.floor(open.span / 2)), suspect: null, convicted }
  const times = (sameOffset(suspect, open.suspect) ? (suspect?.times ?? 0) : 0) + 1
  if (times < settings.epoch.convictAfter) return { spanMax: 1, suspect: { ...open.suspect, times }, convicted }
  return { spanMax: 1, suspect: { ...open.suspect, times }, convicted: [...convicted, open.suspect] }
}

/** A convicted record that may not be rejected parks the pipeline. */
function guilty(bisected: Bisected, settings: Settings): boolean {
  return settings.onError === 'fail' && bisected.convicted.length > 0
}

function convictionOf(convicted: readonly SourceOffset[], reason: FailureReason): string {
  const record = convicted.map((at) => `${at.source}/${at.partition} offset ${at.offset}`).join(', ')
  return `record ${record} kills each epoch that reads it (${reason.message})`
}

function sameOffset(a: SourceOffset | null, b: SourceOffset | null): boolean {
  return a !== null && b !== null && a.source === b.source && a.partition === b.partition && a.offset === b.offset
}
