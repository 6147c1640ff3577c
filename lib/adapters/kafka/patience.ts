/**
 * Waiting for a broker to get over something, for a bounded time.
 *
 * Backoff doubles from 2 ms (the end of a transaction takes a few) to 200 ms.
 */
import { setTimeout as sleep } from 'node:timers/promises'

const firstMs = 2
const maxMs = 200

/** One bounded wait. */
export interface Patience {
  /** Sleeps a little longer each time; false when the time is up. */
  wait(): Promise<boolean>
}

/** Patience that ends `limitMs` from now. */
export function patience(limitMs: number): Patience {
  const endsAt = performance.now() + limitMs
  let delayMs = firstMs
  return {
    async wait() {
      const leftMs = endsAt - performance.now()
      if (leftMs <= 0) return false
      await sleep(Math.min(delayMs, leftMs))
      delayMs = Math.min(delayMs * 2, maxMs)
      return true
    },
  }
}
