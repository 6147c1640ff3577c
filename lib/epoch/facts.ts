/**
 * Facts: what a run can observe before it decides. States are derived from these, never stored beside them.
 *
 * Reads:  the head, the holder's place. Writes: nothing.
 * Safe to repeat because: it only reads.
 */
import type { Head } from '../model/head.ts'
import type { Settings } from '../model/settings.ts'
import type { PlanInput, RunKey } from '../model/steps.ts'
import type { Job } from './job.ts'

export interface Facts {
  readonly run: RunKey
  readonly head: Head | null
  readonly nowMs: number
  readonly build: string
  readonly settings: Settings
  /** Whether another run that holds the pipeline is gone, as far as its launcher knows. */
  readonly holderGone: boolean
  /** The run is to end after what is under way. */
  readonly stopping: boolean
  /** How long this run has seen the head at its revision. */
  readonly unchangedMs: number
  /** Lanes of the pipeline file: sink ids and how many lanes each has. */
  readonly sinks: readonly { readonly sink: string; readonly lanes: number }[]
}

export async function gatherFacts(job: Job, input: PlanInput): Promise<Facts> {
  const { ledger, clock, launcher } = job.place
  const head = await ledger.read(job.compiled.topology.pipeline)
  const nowMs = clock.nowMs()
  const other = head?.run.open && head.run.id !== input.run.id ? head.run : null
  const watched = input.watch && head !== null && input.watch.revision === head.revision
  return {
    run: input.run,
    head,
    nowMs,
    build: job.compiled.build,
    settings: job.compiled.settings,
    stopping: job.stopping?.() ?? false,
    holderGone: other !== null && (await launcher.status(other.place)) === 'gone',
    unchangedMs: watched ? nowMs - input.watch.sinceMs : 0,
    sinks: Object.entries(job.compiled.sinks).map(([sink, spec]) => ({ sink, lanes: spec.lanes })),
  }
}
