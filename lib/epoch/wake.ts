/**
 * Wake: what the trigger of a deployed pipeline does with an event.
 *
 * Reads:  the head, the last manifest, for a tick the bounds of the logs. Writes: the wake counter, then starts a run
 * if none holds the pipeline.
 * Safe to repeat because: a ring is. Hints only ever save a ring: what an event names and the pipeline has committed
 * needs no run. A hint that is wrong costs a run that finds nothing, or is made good by the next tick.
 */
import { PawlError } from '../model/errors.ts'
import type { Head } from '../model/head.ts'
import type { HintedEnds, Wake } from '../model/wake.ts'
import { isPaused } from './decide.ts'
import { type Job, readManifest } from './job.ts'
import { look, parkedIsDue } from './look.ts'
import { reportHealth } from './report-health.ts'
import { ring } from './ring.ts'

/** What became of an event; `reason` says why nothing was rung. */
export type Woken =
  | { readonly rung: true; readonly run: 'started' | 'absorbed' }
  | { readonly rung: false; readonly reason: 'committed' | 'parked' | 'paused' | 'at-rest' | 'other-run' }

/** Handles one event. Throws what ledger and launcher throw; whoever sent the event tries again. */
export async function wake(job: Job, event: Wake): Promise<Woken> {
  const { ledger, telemetry } = job.place
  const { pipeline } = job.compiled.topology
  switch (event.wake) {
    case 'ring':
      return rung(job, event.resume)
    case 'tick': {
      const seen = await look(job)
      // A look at a log that does not answer takes long: the ring does not wait for it.
      const ringing = seen.due ? rung(job) : Promise.resolve({ rung: false, reason: 'at-rest' } as const)
      ringing.catch(() => undefined)
      for (const { source, partition, offset } of seen.awaited) {
        const { code, message } = new PawlError('INTAKE_GAP', `offset ${offset} of ${source}/${partition}`)
        telemetry.emit({ event: 'waiting', pipeline, code, message })
      }
      telemetry.emit(await reportHealth(job, seen.head))
      return ringing
    }
    case 'death': {
      const head = await ledger.read(pipeline)
      if (!head?.run.open || head.run.place !== event.place) return { rung: false, reason: 'other-run' }
      telemetry.emit({ event: 'died', pipeline, run: head.run.id, place: event.place })
      return rung(job)
    }
    case 'records': {
      const head = await ledger.read(pipeline)
      if (head === null) return rung(job)
      if (head.parked !== null && !parkedIsDue(job, head)) return { rung: false, reason: 'parked' }
      if (isPaused(head) && head.open === null && head.promotedThrough === head.committed.epoch)
        return { rung: false, reason: 'paused' }
      return (await isCommitted(job, head, event.ends)) ? { rung: false, reason: 'committed' } : rung(job, false, true)
    }
  }
}

async function rung(job: Job, resume = false, often = false): Promise<Woken> {
  return { rung: true, run: await ring(job.place, job.compiled.topology.pipeline, resume, often) }
}

/** True when every offset that the event names lies below what is committed. A topic that is not read says nothing. */
async function isCommitted(job: Job, head: Head, ends: HintedEnds): Promise<boolean> {
  try {
    const { progress } = await readManifest(job, head.committed.manifest)
    return [...ends.values()].every(({ topic, partition, end }) =>
      Object.entries(job.compiled.sources)
        .filter(([, spec]) => spec.topic === topic)
        .every(([source]) =>
          progress.some((at) => at.source === source && at.partition === partition && BigInt(at.end) >= end),
        ),
    )
  } catch {
    // What is wrong with the manifest is for a run to find out.
    return false
  }
}
