/**
 * Claim: a run becomes the holder, in a new generation.
 *
 * Reads:  the head that `decide` saw. Writes: the head: run, generation + 1, `open` cleared.
 * Safe to repeat because: it applies only to the revision on which the claim was judged. An attempt that was open
 * died with its owner and counts as a failure: a record that kills the process never gets to abort. What the dead
 * attempt wrote is left to `collect`; only an owner may discard.
 */
import type { FailureReason, Head } from '../model/head.ts'
import type { RunKey } from '../model/steps.ts'
import { amend } from './amend.ts'
import { holds, type Job } from './job.ts'
import { judgeFailure } from './restart.ts'

export async function claim(job: Job, run: RunKey, seen: Head, reason: string): Promise<void> {
  const nowMs = job.place.clock.nowMs()
  const { pipeline } = seen
  const amended = await amend(job, (head) => (head.revision === seen.revision ? claimed(job, run, head, nowMs) : null))
  if (amended.result !== 'applied') return
  const { generation } = amended.head
  job.place.telemetry.emit({ event: 'taken-over', pipeline, generation, from: `${seen.run.id} (${reason})` })
  if (amended.head.parked !== null && seen.parked === null) {
    job.place.telemetry.emit({
      event: 'parked',
      pipeline,
      kind: 'failure',
      code: amended.head.parked.code,
      message: amended.head.parked.message,
    })
  }
}

/** Clears what a dead step of this run left open. */
export async function clear(job: Job, run: RunKey, seen: Head): Promise<void> {
  const nowMs = job.place.clock.nowMs()
  await amend(job, (head) =>
    head.revision === seen.revision && holds(head, run) ? { ...head, ...afterDeath(job, head, nowMs) } : null,
  )
}

function claimed(job: Job, run: RunKey, head: Head, nowMs: number): Head {
  return {
    ...head,
    ...afterDeath(job, head, nowMs),
    generation: head.generation + 1,
    run: {
      sequence: run.sequence,
      id: run.id,
      open: true,
      place: run.place,
      leaseMs: job.compiled.settings.leaseMs,
      renewedAtMs: nowMs,
      epochs: 0,
    },
  }
}

/** The head after the death of whoever had an attempt open; unchanged when nothing was open. */
function afterDeath(job: Job, head: Head, nowMs: number): Pick<Head, 'open' | 'failures' | 'parked'> {
  const { open, failures, parked } = head
  if (open === null) return { open, failures, parked }
  const reason: FailureReason = {
    code: 'EPOCH_CRASHED',
    message: `attempt ${open.attempt} of epoch ${open.epoch} died without a word`,
    attempt: open.attempt,
    atMs: nowMs,
    record: null,
    operator: null,
  }
  const verdict = judgeFailure(failures, reason, open, job.compiled.settings)
  return { open: null, failures: verdict.failures, parked: verdict.parked && { ...verdict.parked, build: open.build } }
}
