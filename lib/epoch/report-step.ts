/**
 * Report a step: everything that is told while a step runs says where it belongs, and the step has the last word.
 *
 * Reads:  the step's input and output, the clock. Writes: telemetry only.
 * Safe to repeat because: nothing decides by it. A step that is killed never gets to report; what it used is then
 * told by whoever uses the same place next, or by nobody.
 */
import { isPawlError } from '../model/errors.ts'
import type { Origin } from '../model/event.ts'
import type { AnyInput, StepOutput } from '../model/steps.ts'
import type { Job } from './job.ts'
import { type StepName, transitionsOf } from './machine.ts'

/** A step that is reported. */
export interface StepReport {
  /** The job as the step gets it: what it tells carries where it belongs. */
  readonly job: Job
  ended(output: unknown): void
  failed(error: unknown): void
}

/** Begins the report. */
export function reportStep(step: StepName, job: Job, input: AnyInput): StepReport {
  const { telemetry, clock } = job.place
  const { pipeline } = job.compiled.topology
  const origin = originOf(step, input)
  const startMs = clock.nowMs()
  // The name stays the first member, by which programs that read lines know events.
  const emit: Job['place']['telemetry']['emit'] = (told) =>
    telemetry.emit(Object.assign({ event: told.event }, origin, told))
  const last = (
    outcome: { next: string | null; code: string | null; message: string | null },
    found: Partial<Origin>,
  ) => {
    const usage = job.place.usage?.()
    telemetry.emit({
      event: 'step',
      pipeline,
      ...origin,
      ...found,
      step,
      ms: clock.nowMs() - startMs,
      ...outcome,
      sink: input.sink ?? null,
      lane: input.lane ?? null,
      transitions: transitionsOf(step, outcome.next),
      ...(usage === undefined ? {} : { usage }),
    })
  }
  return {
    job: { ...job, place: { ...job.place, telemetry: { emit } } },
    ended(output) {
      const { next = null } = (output ?? {}) as Partial<StepOutput>
      last({ next, code: null, message: null }, foundIn(output))
    },
    failed(error) {
      const { name, message } = error instanceof Error ? error : { name: 'Error', message: String(error) }
      last({ next: null, code: isPawlError(error) ? error.code : name, message }, {})
    },
  }
}

function originOf(step: StepName, { run, key, epoch, attempt, stage, task }: AnyInput): Origin {
  return {
    step,
    run: run.id,
    epoch: key?.epoch ?? epoch ?? null,
    attempt: key?.attempt ?? attempt ?? null,
    stage: stage ?? null,
    task: task ?? null,
  }
}

/** The attempt that a plan opened, or the epoch that it goes on with, is known only at its end. */
function foundIn(output: unknown): Partial<Origin> {
  const { key, epoch, attempt } = (output ?? {}) as Partial<Pick<AnyInput, 'key' | 'epoch' | 'attempt'>>
  if (key !== undefined) return { epoch: key.epoch, attempt: key.attempt }
  return { ...(epoch === undefined ? {} : { epoch }), ...(attempt === undefined ? {} : { attempt }) }
}
