/**
 * Leave: a run closes itself, so that no ring is lost and no two runs overlap.
 *
 * Reads:  the wake counter, before it looked for work. Writes: the head: run closed.
 * Safe to repeat because: it closes only its own run. With `wakes` the close is refused when a ring came in since;
 * the run then looks again; so it does when a person has lifted what it leaves for. A hand-over releases first and starts the next run afterwards: a run started before the
 * release would find the pipeline held, and nobody would be left.
 */
import type { Head } from '../model/head.ts'
import type { RunKey, StepOutput } from '../model/steps.ts'
import { amend } from './amend.ts'
import { holds, type Job } from './job.ts'
import { ring } from './ring.ts'

/** Closes the run. False when it must look again. */
export async function leave(job: Job, run: RunKey, head: Head, wakes?: number): Promise<boolean> {
  const amended = await amend(
    job,
    (now) =>
      holds(now, run, head.generation) && now.open === null && isWanted(now, head)
        ? { ...now, run: { ...now.run, open: false }, ...(wakes === undefined ? {} : { hurry: null }) }
        : null,
    wakes === undefined ? {} : { wakes },
  )
  return amended.result === 'applied' || !holds(amended.head, run, head.generation)
}

/** Whoever lifts a pause or a park, or hurries, while a run is about to leave has rung at a run that was open. */
function isWanted(now: Head, seen: Head): boolean {
  const asPaused = now.paused?.id === seen.paused?.id && now.hurry?.id === seen.hurry?.id
  return (
    asPaused && (now.parked === null) === (seen.parked === null) && now.parked?.retryAtMs === seen.parked?.retryAtMs
  )
}

/** Releases, then starts the next run. */
export async function handOver(job: Job, run: RunKey, head: Head): Promise<boolean> {
  if (!(await leave(job, run, head))) return false
  await ring(job.place, head.pipeline)
  return true
}

/** The output by which the machine ends. */
export function left(job: Job, run: RunKey, reason: string, code: string | null): StepOutput {
  job.place.telemetry.emit({ event: 'left', pipeline: run.pipeline, run: run.id, reason })
  return { next: 'leave', run, reason, code }
}
