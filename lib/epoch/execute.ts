/**
 * Execute: the steps by state name, as one machine calls them.
 *
 * Reads and writes: what the steps do. Safe to repeat because: every step is. Composition roots hand these to the
 * interpreter; deployed, each is a function of its own.
 */
import type {
  AbortInput,
  CommitInput,
  FinalizeInput,
  LaneInput,
  PlanInput,
  PrecommitInput,
  TaskInput,
} from '../model/steps.ts'
import type { Invoker } from '../ports/system.ts'
import { abort } from './abort.ts'
import { carry } from './cause.ts'
import { commit } from './commit.ts'
import { finalize } from './finalize.ts'
import type { Job } from './job.ts'
import { taskStates } from './machine.ts'
import { operate } from './operate.ts'
import { plan } from './plan.ts'
import { precommit } from './precommit.ts'
import { promote } from './promote.ts'

/** The steps as the machine calls them, by the name of their Task state. */
export type StepCalls = Readonly<Record<string, (input: never) => Promise<unknown>>>

/** Handlers by Task state. With an invoker, the tasks of an epoch that has several run where it puts them. */
export function stepCalls(job: Job, invoker: Invoker | null = null): StepCalls {
  return carrying({
    [taskStates.plan]: (input: PlanInput) => plan(job, input),
    [taskStates.operate]: (input: TaskInput) =>
      invoker === null || input.of === 1 ? operate(job, input) : invoker.operate(input),
    [taskStates.precommit]: (input: PrecommitInput) => precommit(job, input),
    [taskStates.commit]: (input: CommitInput) => commit(job, input),
    [taskStates.promote]: (input: LaneInput) => promote(job, input),
    [taskStates.finalize]: (input: FinalizeInput) => finalize(job, input),
    [taskStates.abort]: (input: AbortInput) => abort(job, input),
  })
}

function carrying(steps: StepCalls): StepCalls {
  const wrap = (step: (input: never) => Promise<unknown>) => async (input: never) => {
    try {
      return await step(input)
    } catch (error) {
      throw carry(error)
    }
  }
  return Object.fromEntries(Object.entries(steps).map(([name, step]) => [name, wrap(step)]))
}
