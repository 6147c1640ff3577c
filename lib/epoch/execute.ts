/**
 * Execute: the steps by state name, as one machine calls them.
 *
 * Reads and writes: what the steps do. Safe to repeat because: every step is. Composition roots hand these to the
 * interpreter; deployed, each is a function of its own.
 */
import { kindOf, PawlError } from '../model/errors.ts'
import type { Head } from '../model/head.ts'
import type {
  AbortInput,
  AnyInput,
  CommitInput,
  FinalizeInput,
  LaneInput,
  PlanInput,
  PrecommitInput,
  TaskInput,
} from '../model/steps.ts'
import type { Invoker } from '../ports/system.ts'
import { abort } from './abort.ts'
import { readHead } from './amend.ts'
import { carry } from './cause.ts'
import { commit } from './commit.ts'
import { finalize } from './finalize.ts'
import { holds, type Job } from './job.ts'
import { type StepName, taskStates } from './machine.ts'
import { operate } from './operate.ts'
import { plan } from './plan.ts'
import { precommit } from './precommit.ts'
import { promote } from './promote.ts'
import { reportStep } from './report-step.ts'

export type { AnyInput } from '../model/steps.ts'

/** The steps as the machine calls them, by the name of their Task state. */
export type StepCalls = Readonly<Record<string, (input: never) => Promise<unknown>>>

/** A step that is given its job with its input. */
export type Step<I, O> = (job: Job, input: I) => Promise<O>

/** Handlers by Task state. With an invoker, the tasks of an epoch that has several run where it puts them. */
export function stepCalls(job: Job, invoker: Invoker | null = null): StepCalls {
  const task: Step<TaskInput, unknown> = (_, input) =>
    invoker === null || input.of === 1 ? operate(job, input) : invoker.operate(input)
  return {
    [taskStates.plan]: (input: PlanInput) => call('plan', plan, job, input),
    [taskStates.operate]: (input: TaskInput) => call('operate', task, job, input),
    [taskStates.precommit]: (input: PrecommitInput) => call('precommit', precommit, job, input),
    [taskStates.commit]: (input: CommitInput) => call('commit', commit, job, input),
    [taskStates.promote]: (input: LaneInput) => call('promote', promote, job, input),
    [taskStates.finalize]: (input: FinalizeInput) => call('finalize', finalize, job, input),
    [taskStates.abort]: (input: AbortInput) => call('abort', abort, job, input),
  }
}

/**
 * Calls one step as the machine must see it: its errors are named by their kind and carry their details. The step is
 * reported, however it ends.
 */
export async function call<I extends AnyInput, O>(name: StepName, step: Step<I, O>, job: Job, given: I): Promise<O> {
  const input = identified(given)
  const report = reportStep(name, job, input)
  try {
    const output = await step(report.job, input)
    report.ended(output)
    return output
  } catch (error) {
    const judged = await judgeAgain(job, input, error)
    report.failed(judged)
    throw carry(judged)
  }
}

/** Two executions that were started as one are two runs. */
function identified<I extends AnyInput>(input: I): I {
  const { execution, ...run } = input.run
  return execution === undefined ? input : { ...input, run: { ...run, id: execution.id.replaceAll('-', '') } }
}

/**
 * Corruption is reported only by whoever still owns what looks corrupt: a step that comes late finds objects deleted
 * and markers moved on, and nothing is wrong with either.
 */
async function judgeAgain(job: Job, input: AnyInput, error: unknown): Promise<unknown> {
  if (kindOf(error) !== 'Corrupt' || owns(await readHead(job), input)) return error
  return new PawlError('FENCED', `a step of ${input.run.id} came late`, { run: input.run.id }, error)
}

function owns(head: Head, { run, key, generation = key?.generation, epoch }: AnyInput): boolean {
  if (!holds(head, run, generation)) return false
  if (key) return head.open?.attempt === key.attempt || head.committed.attempt === key.attempt
  return epoch === undefined || head.promotedThrough <= epoch
}
