/**
 * A clock that only sleeping moves.
 *
 * Rule: time stands still while anything can still run. When the event loop has nothing left but sleepers, the
 * earliest one wakes and the clock jumps to its time; one sleeper a turn, ties in the order of falling asleep.
 * So a sleep never hangs, an hour costs nothing, and the order of wakings depends on the durations alone.
 * `setImmediate` is how the clock learns that the turn is over: work that waits for real input or output may see
 * time jump while it waits.
 */
import type { Clock } from '../../ports/system.ts'

export interface VirtualClock extends Clock {
  /** Moves time on by `ms`; whoever is due wakes in order of time. Never moves back. */
  advance(ms: number): void
}

interface Sleeper {
  readonly wakeMs: number
  readonly wake: () => void
}

/** A clock that begins at `startMs`, milliseconds since the Unix epoch. */
export function virtualClock(options: { readonly startMs: number }): VirtualClock {
  let now = options.startMs
  let turnBooked = false
  const sleepers: Sleeper[] = []

  const wakeFirst = () => {
    const first = sleepers.shift()
    if (first === undefined) return
    now = Math.max(now, first.wakeMs)
    first.wake()
  }
  const bookTurn = () => {
    if (turnBooked) return
    turnBooked = true
    setImmediate(() => {
      turnBooked = false
      wakeFirst()
      if (sleepers.length > 0) bookTurn()
    })
  }
  const add = (sleeper: Sleeper) => {
    const at = sleepers.findIndex((other) => other.wakeMs > sleeper.wakeMs)
    sleepers.splice(at < 0 ? sleepers.length : at, 0, sleeper)
    bookTurn()
  }
  const remove = (sleeper: Sleeper) => {
    const at = sleepers.indexOf(sleeper)
    if (at >= 0) sleepers.splice(at, 1)
  }

  return {
    nowMs: () => now,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve()
        const end = () => {
          remove(sleeper)
          signal?.removeEventListener('abort', end)
          resolve()
        }
        const sleeper = { wakeMs: now + Math.max(0, ms), wake: end }
        signal?.addEventListener('abort', end)
        add(sleeper)
      }),
    advance(ms) {
      const target = now + Math.max(0, ms)
      while (sleepers.length > 0 && sleepers[0]!.wakeMs <= target) wakeFirst()
      now = target
    },
  }
}

/** Resolves when everything that can run without waiting has run. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
