/**
 * What a process holds while something runs: the heap and what hangs on it, without what is only not collected yet.
 *
 * Resident memory tells less: it has garbage in it, and what others used before. So whenever more is in use than was
 * held at the last look, everything is collected, and what is left then counts. What comes and goes within two
 * milliseconds, or one turn of the event loop, is not seen. Everything else that the process does meanwhile counts as
 * well: let servers be elsewhere.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** More than was held at the last look, before it is worth another one. */
const stepBytes = 16 * 1024 * 1024
/** Between two looks; without a rest, servers on the same machine would go short. */
const lookMs = 2

/** What came of the work, and the most that was held at any look, in bytes beyond what was held before. */
export interface Held<T> {
  readonly result: T
  readonly heldBytes: number
}

/** Runs `work` and looks at memory between its turns. Rejects as `work` does. */
export async function heldWhile<T>(work: () => Promise<T>): Promise<Held<T>> {
  const collect = collector()
  collect()
  const before = leftAfter(collect)
  let last = before
  let most = before
  let ended = false
  const working = work().finally(() => {
    ended = true
  })
  // Awaited below; until then a failure would count as unhandled.
  working.catch(() => undefined)
  while (!ended) {
    await new Promise<void>((resolve) => setTimeout(resolve, lookMs))
    if (inUse() < last + stepBytes) continue
    last = leftAfter(collect)
    // Buffers are freed behind the back of a collection, at the latest when the next one begins.
    if (last > most) last = leftAfter(collect)
    most = Math.max(most, last)
  }
  return { result: await working, heldBytes: most - before }
}

/** The engine's own, whatever flags the process was started with. */
function collector(): () => void {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as () => void
}

function leftAfter(collect: () => void): number {
  collect()
  return inUse()
}

function inUse(): number {
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
