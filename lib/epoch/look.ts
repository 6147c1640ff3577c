/**
 * Look: whether a pipeline has anything to do, without touching it.
 *
 * Reads:  the head, the last manifest, the bounds of the logs. Writes: nothing.
 * Safe to repeat because: it only reads. What a trigger at rest does: no run is started when there is nothing to do.
 */
import type { Head } from '../model/head.ts'
import { limits } from '../model/limits.ts'
import { isPaused } from './decide.ts'
import { type Job, readManifest } from './job.ts'
import { timePasses } from './plan.ts'
import { type Survey, survey } from './survey.ts'

/** What a look at a pipeline shows. */
export interface Look {
  readonly head: Head | null
  /** A run would find something to do. */
  readonly due: boolean
  /** Records that are not committed yet, by partition; null when the logs could not be read. */
  readonly lag: Survey['lag'] | null
  /** What an epoch would read now, by partition; null like the lag. */
  readonly ranges: Survey['ranges'] | null
  /** Where logs wait for what is missing. */
  readonly awaited: Survey['awaited']
}

/** Never throws what a run would park for: it reports `due`, and the run shows the error. */
export async function look(job: Job): Promise<Look> {
  const head = await job.place.ledger.read(job.compiled.topology.pipeline)
  const nothing = { lag: null, ranges: null, awaited: [] }
  if (head === null) return { head, due: true, ...nothing }
  if (head.parked !== null && !parkedIsDue(job, head)) return { head, due: false, ...nothing }
  if (head.open !== null || head.committed.epoch > head.promotedThrough) return { head, due: true, ...nothing }
  const paused = isPaused(head)
  const asked = !paused && Boolean(head.hurry || head.paused || head.refusing?.length)
  try {
    const parent = await readManifest(job, head.committed.manifest)
    const found = await survey(job, parent, limits.epochSpanMax, false)
    const { span, lost, lag, ranges, awaited } = found
    const due = span > 0 || lost.length > 0 || timePasses(job, parent, found)
    return { head, due: asked || (due && !paused), lag, ranges, awaited }
  } catch {
    return { head, due: !paused, ...nothing }
  }
}

/** True when nothing keeps a run from trying: not parked, another build, or the time of the next retry has come. */
export function parkedIsDue(job: Job, head: Head): boolean {
  if (head.parked === null) return true
  if (head.parked.kind === 'failure') return head.parked.build !== job.compiled.build
  return head.parked.retryAtMs !== null && head.parked.retryAtMs <= job.place.clock.nowMs()
}
