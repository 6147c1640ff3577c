/**
 * A call of a user's function that ends in time, whatever the function does.
 *
 * When the time is over its signal aborts. It gets a moment to stop before the call is given up: a function that
 * heeds its signal never runs beside its own repetition.
 */

const graceMs = 1000

/** Runs `deed`, for its answer; rejects with what it throws, or when it takes longer than `timeoutMs` and that moment. */
export async function boundedCall<T>(timeoutMs: number, deed: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const abort = new AbortController()
  const overdue = new Error(`no answer in ${timeoutMs} ms`)
  const timers: NodeJS.Timeout[] = []
  const limit = new Promise<never>((_, reject) => {
    timers.push(setTimeout(() => abort.abort(overdue), timeoutMs))
    timers.push(setTimeout(() => reject(overdue), timeoutMs + graceMs))
  })
  try {
    return await Promise.race([deed(abort.signal), limit])
  } finally {
    for (const timer of timers) clearTimeout(timer)
  }
}
