/**
 * Rest: how a pipeline waits that has nothing to do.
 *
 * Asking brokers for their ends again and again is most of what an idle process does. Where all sources can wait for
 * records themselves, it waits there, and looks only at the ledger meanwhile; the logs are looked at when something came, and
 * every few seconds all the same, for what nobody tells (a new partition, a topic created again). The longer nothing
 * happens, the rarer both looks become; records are heard of at once. Waiting decides nothing: whatever ends it, a look
 * follows.
 */
import type { Job } from '../epoch/job.ts'
import { openSource } from '../epoch/job.ts'
import type { Look } from '../epoch/look.ts'

/** Between two looks at the logs, at first and after a quiet minute; below what a request to a broker may take. */
const restMsMin = 5000
const restMsMax = 15_000
/** Between two looks at the ledger, after a long quiet: a person's wish is noticed within it. */
const pauseMsMax = 5000

/** Waits once; `pauseMs` is how long the ledger is left alone. */
export type Rest = (seen: Look, pauseMs: number, signal: AbortSignal | undefined) => Promise<void>

/** The rests of one run of a process. */
export function rests(job: Job): Rest {
  let called = false
  let quiet = { revision: -1, sinceMs: 0 }
  return async (seen, pauseMsMin, signal) => {
    const { clock } = job.place
    const revision = seen.head?.revision ?? -1
    if (called || quiet.revision !== revision) quiet = { revision, sinceMs: clock.nowMs() }
    const quietMs = clock.nowMs() - quiet.sinceMs
    const restMs = Math.min(restMsMax, Math.max(restMsMin, quietMs / 4))
    const pauseMs = Math.max(pauseMsMin, Math.min(pauseMsMax, quietMs / 10))
    const waits = called ? null : await waitsOf(job, seen, restMs)
    // Called for nothing, or by what no look sees: the next rest goes by the clock alone.
    called = false
    if (waits === null || signal?.aborted) return clock.sleep(pauseMs, signal)
    const over = new AbortController()
    const end = () => over.abort()
    signal?.addEventListener('abort', end)
    const ring = () => {
      called = true
      end()
    }
    for (const wait of waits) wait().then(ring, () => undefined)
    const untilMs = clock.nowMs() + restMs
    while (!over.signal.aborted && clock.nowMs() < untilMs) {
      await clock.sleep(pauseMs, over.signal)
      const head = await job.place.ledger.read(job.compiled.topology.pipeline)
      if ((head?.revision ?? -1) !== revision) break
    }
    signal?.removeEventListener('abort', end)
    end()
  }
}

/** How each source waits for records behind what was seen; null when not all can, or something is there already. */
async function waitsOf(job: Job, { head, ranges }: Look, restMs: number): Promise<(() => Promise<void>)[] | null> {
  if (head === null || ranges === null || ranges.some(({ start, end, caughtUp }) => start !== end || !caughtUp))
    return null
  if (timeMatters(job)) return null
  const waits: (() => Promise<void>)[] = []
  for (const source of Object.keys(job.compiled.sources)) {
    const log = await openSource(job, source, head.incarnation)
    if (log.arrival === undefined) return null
    const mine = ranges.filter((range) => range.source === source)
    const ends = new Map(mine.map(({ partition, end }) => [partition, BigInt(end)]))
    waits.push(() => log.arrival!(ends, restMs))
  }
  return waits
}

/** Windows fire by the clock when partitions may become idle. */
function timeMatters({ compiled }: Job): boolean {
  return (
    compiled.stateful.some(({ stateKind }) => stateKind === 'window') &&
    compiled.topology.nodes.some((node) => node.kind === 'source' && node.idleAfterMs !== null)
  )
}
