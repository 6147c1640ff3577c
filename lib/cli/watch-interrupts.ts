/**
 * Ctrl-C: once to finish the epoch, twice to abandon it.
 *
 * A second signal ends the process at once; the ledger then shows a run of a process that is gone, which the next
 * run takes over without waiting. `npm run`, `timeout` and others send one Ctrl-C to the process and to its group:
 * what follows at once is the same signal.
 */
import { exitCodes } from './report-error.ts'

/** A second signal within this time is the first one, sent twice. */
const echoMs = 250

/** Signals of one command. */
export interface Interrupts {
  /** Aborted by the first signal. */
  readonly signal: AbortSignal
  /** Which signal came first. */
  by(): 'SIGINT' | 'SIGTERM' | null
  onFirst(call: () => void): void
  onSecond(call: () => void): void
  close(): void
}

/** Takes over SIGINT and SIGTERM until it is closed. */
export function watchInterrupts(): Interrupts {
  const controller = new AbortController()
  let first: 'SIGINT' | 'SIGTERM' | null = null
  let firstAtMs = 0
  const calls = { first: () => {}, second: () => {} }
  const take = (name: 'SIGINT' | 'SIGTERM') => {
    if (first === null) {
      first = name
      firstAtMs = performance.now()
      controller.abort()
      calls.first()
      return
    }
    if (performance.now() - firstAtMs < echoMs) return
    calls.second()
    process.exit(exitCodes.interrupted)
  }
  process.on('SIGINT', take)
  process.on('SIGTERM', take)
  return {
    signal: controller.signal,
    by: () => first,
    onFirst(call) {
      calls.first = call
    },
    onSecond(call) {
      calls.second = call
    },
    close() {
      process.off('SIGINT', take)
      process.off('SIGTERM', take)
    },
  }
}
