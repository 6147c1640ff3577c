/**
 * Rest: how a pipeline waits that has nothing to do.
 *
 * Asking brokers for their ends again and again is most of what an idle process does. Where all sources can wait for
 * records themselves, it waits there, and looks only at the ledger meanwhile; the logs are looked at when something came, and
 * every few seconds all the same, for what nobody tells (a new partition, a topic created again). Waiting decides nothing:
 * whatever ends it, a look follows.
 */
import type { Job } from '../epoch/job.ts'
import { openSource } from '../epoch/job.ts'
import type { Look } from '../epoch/look.ts'
import type { LogSource } from '../ports/log.ts'

/** Longest wait between two looks at the logs. */
const restMs = 5000

/** Waits once; `pauseMs` is how long the ledger is left alone. */
export type Rest = (seen: Look, pauseMs: number, signal: AbortSignal | undefined) => Promise<void>

/** The rests of one run of a process. */
export function rests(job: Job): Rest {
  let called = false
  return async (seen, pauseMs, signal) => {
    const { clock } = job.place
    const waits = called ? null : await waitsOf(job, seen)
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
      if (head?.revision !== seen.head?.revision) break
    }
    signal?.removeEventListener('abort', end)
    end()
  }
}

/** How each source waits for records behind what was seen; null when not all can, or something is there already. */
async function waitsOf(job: Job, { head, ranges }: Look): Promise<(() => Promise<void>)[] | null> {
  if (head === null || ranges === null || ranges.some(({ start, end, caughtUp }) => start !== end || !caughtUp))
    return null
  if (timeMatters(job)) return null
  const waits: (() => Promise<void>)[] = []
  for (const source of Object.keys(job.compiled.sources)) {
    const log = await openSource(job, source, head.incarnation)
    if (log.arrival === undefined) return null
    const mine = ranges.filter((range) => range.source === source)
    waits.push(() => arrival(log, new Map(mine.map(({ partition, end }) => [partition, BigInt(end)]))))
  }
  return waits
}

function arrival(log: LogSource, offsets: ReadonlyMap<number, bigint>): Promise<void> {
  return log.arrival!(offsets, restMs)
}

/** Windows fire by the clock when partitions may become idle. */
function timeMatters({ compiled }: Job): boolean {
  return (
    compiled.stateful.some(({ stateKind }) => stateKind === 'window') &&
    compiled.topology.nodes.some((node) => node.kind === 'source' && node.idleAfterMs !== null)
  )
}
