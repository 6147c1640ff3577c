/**
 * Renew: shows that the run is alive, and finds out when it is not the holder any more.
 *
 * Reads:  the head. Writes: the head's lease, when a quarter of it has passed.
 * Safe to repeat because: it changes nothing but the time of renewal, by compare-and-set on the revision that it
 * read; a write by a stale reading is refused.
 */
import type { Head } from '../model/head.ts'
import type { RunKey } from '../model/steps.ts'
import { amend, readHead } from './amend.ts'
import { holds, type Job, mustHold } from './job.ts'

/** The head, if the run still holds the pipeline. Throws `FENCED`. */
export async function renew(job: Job, run: RunKey, generation: number): Promise<Head> {
  const head = await readHead(job)
  mustHold(head, run, generation)
  const nowMs = job.place.clock.nowMs()
  if (nowMs - head.run.renewedAtMs < head.run.leaseMs / 4) return head
  const amended = await amend(job, (found) =>
    holds(found, run, generation) ? { ...found, run: { ...found.run, renewedAtMs: nowMs } } : null,
  )
  mustHold(amended.head, run, generation)
  return amended.head
}
