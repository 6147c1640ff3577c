/**
 * The real clock. Nothing relies on it but comfort: leases are judged by watching, never by a foreign clock.
 */
import type { Clock } from '../../ports/system.ts'

/** Longest timer that Node keeps; a longer one would fire at once. */
const timerMsMax = 2 ** 31 - 1

function timer(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(handle)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const handle = setTimeout(end, ms)
    signal?.addEventListener('abort', end)
  })
}

/** The clock of this machine. */
export function systemClock(): Clock {
  return {
    nowMs: () => Date.now(),
    async sleep(ms, signal) {
      for (let left = Math.max(0, ms); !signal?.aborted; left -= timerMsMax) {
        await timer(Math.min(left, timerMsMax), signal)
        if (left <= timerMsMax) return
      }
    },
  }
}
