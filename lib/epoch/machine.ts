/**
 * The epoch machine: Amazon States Language, built by one function.
 *
 * Reads:  resources and settings. Writes: nothing. Deployed, interpreted on one machine and simulated alike; there
 * is no second orchestration. Ten states, no business logic: each step says in `next` what follows.
 * Safe to repeat because: every step is. Errors are matched by kind, which is the name of a `PawlError`.
 */

import { limits } from '../model/limits.ts'
import type { Settings } from '../model/settings.ts'
import type { RunKey } from '../model/steps.ts'

/** Names of the steps that the machine calls; each is a function deployed, a handler on one machine. */
export const stepNames = ['plan', 'operate', 'precommit', 'commit', 'promote', 'finalize', 'abort'] as const
/** One step of the machine. */
export type StepName = (typeof stepNames)[number]

/** What the document depends on. */
export interface MachineOptions {
  /** Resource of each step: a function's ARN; on one machine any ARN, since the handler is local. */
  readonly resources: Readonly<Record<StepName, string>>
  readonly settings: Settings
  /** `express`: an execution may start twice, so that each gives itself an id. Standard when absent. */
  readonly workflow?: 'standard' | 'express'
}

/** States Language as far as the machine uses it: plain JSON. */
export type StatesLanguage = Readonly<Record<string, unknown>>

/** Names of the Task states, by step: what local handlers are keyed by. */
export const taskStates: Readonly<Record<StepName, string>> = Object.freeze({
  plan: 'Plan',
  operate: 'OperateTask',
  precommit: 'Precommit',
  commit: 'Commit',
  promote: 'PromoteLane',
  finalize: 'Finalize',
  abort: 'Abort',
})

export function machine({ resources, settings, workflow = 'standard' }: MachineOptions): StatesLanguage {
  const stepSeconds = stepTimeoutSeconds(settings)
  const operateSeconds = Math.max(1, Math.ceil(settings.checkpoint.timeoutMs / 1000))
  const left = { ErrorEquals: ['Fenced'], Next: 'Left', ResultPath: '$.error' }
  const failed = (next: string) => [left, { ErrorEquals: ['States.ALL'], Next: next, ResultPath: '$.error' }]
  const step = (name: StepName, next: string, caught: string, attempts: number) => ({
    Type: 'Task',
    Resource: resources[name],
    TimeoutSeconds: stepSeconds,
    Retry: again(attempts),
    Catch: failed(caught),
    Next: next,
  })
  return {
    Comment: 'Pawl: one checkpoint epoch after another',
    StartAt: workflow === 'express' ? 'Identify' : 'Plan',
    States: {
      ...(workflow === 'express' ? { Identify: identify } : {}),
      Plan: step('plan', 'Route', 'Abort', 3),
      Route: route(),
      Operate: map(
        '$.tasks',
        '$.results',
        task('operate', resources.operate, operateSeconds, 2),
        failed('Abort'),
        'Precommit',
      ),
      Precommit: step('precommit', 'Route', 'Abort', 3),
      Commit: step('commit', 'Promote', 'Abort', 5),
      Promote: map(
        '$.lanes',
        '$.promoted',
        task('promote', resources.promote, stepSeconds, 3),
        failed('Finalize'),
        'Finalize',
      ),
      // Nothing but a plan follows: a choice would cost a transition.
      Finalize: step('finalize', 'Plan', 'Left', 5),
      Abort: step('abort', 'Route', 'Left', 5),
      Wait: { Type: 'Wait', SecondsPath: '$.waitSeconds', Next: 'Plan' },
      Left: { Type: 'Succeed' },
    },
  }
}

const identify = {
  Type: 'Pass',
  Parameters: { 'id.$': 'States.UUID()' },
  ResultPath: '$.run.execution',
  Next: 'Plan',
}

/** Events of one pass through plan, with its choice and a wait. */
export const planEvents = 9

/** Events of an abort, with the plan that may have failed before it. */
export const abortEvents = 16

/** Events of an epoch, from its tasks by stage and the lanes to promote; a Task state counts for five. */
export function epochEvents(stageTasks: readonly number[], lanes: number): number {
  const operate = stageTasks.reduce((sum, tasks) => sum + mapEvents(tasks) + 7, 0)
  return operate + 5 + mapEvents(lanes) + 7 + 5
}

/** Events of a Map state with so many iterations of one Task. */
export function mapEvents(iterations: number): number {
  return 4 + 7 * iterations
}

/** Counts what an execution spends, so that it ends long before its limit. */
export function spend(run: RunKey, events: number): RunKey {
  return { ...run, events: (run.events ?? 0) + events }
}

/**
 * State transitions that a step stands for: its own state, the choice behind it, and the Map, Wait or end that it leads
 * to. What Step Functions bills a Standard execution for; a retry is a step of its own. `next` is null after an error.
 */
export function transitionsOf(step: StepName, next: string | null): number {
  const routed = next !== null && (step === 'plan' || step === 'precommit' || step === 'abort') ? 1 : 0
  const led = next !== null && ['operate', 'promote', 'wait', 'leave'].includes(next) ? 1 : 0
  return 1 + routed + led
}

/** Every step but operate: far below half the lease, and below what a function may take. */
export function stepTimeoutSeconds(settings: Settings): number {
  return Math.max(1, Math.min(Math.floor(settings.leaseMs / 2000) - 1, Math.floor(limits.functionMs / 1000)))
}

/** What is repeated: our own errors that another try may mend, and answers of AWS that say "not now". */
function again(attempts: number) {
  return [
    {
      ErrorEquals: [
        'Retryable',
        'Lambda.AWSLambdaException',
        'Lambda.ClientExecutionTimeoutException',
        'Lambda.SdkClientException',
        'Lambda.ServiceException',
      ],
      IntervalSeconds: 1,
      MaxAttempts: attempts,
      BackoffRate: 2,
    },
    // Throttled, or a function whose network AWS took away while it rested: two minutes bring it back.
    {
      ErrorEquals: [
        'Lambda.EC2ThrottledException',
        'Lambda.ENILimitReachedException',
        'Lambda.ENINotReadyException',
        'Lambda.ResourceConflictException',
        'Lambda.ResourceNotReadyException',
        'Lambda.SubnetIPAddressLimitReachedException',
        'Lambda.TooManyRequestsException',
      ],
      IntervalSeconds: 5,
      MaxAttempts: 24,
      BackoffRate: 1,
    },
  ]
}

function task(name: StepName, resource: string, seconds: number, attempts: number) {
  const state = { Type: 'Task', Resource: resource, TimeoutSeconds: seconds, Retry: again(attempts), End: true }
  return { StartAt: taskStates[name], States: { [taskStates[name]]: state } }
}

function map(items: string, results: string, iterator: unknown, caught: unknown, next: string) {
  return {
    Type: 'Map',
    ItemsPath: items,
    MaxConcurrency: limits.mapConcurrencyMax,
    ItemProcessor: iterator,
    ResultPath: results,
    Catch: caught,
    Next: next,
  }
}

function route() {
  const to = (next: string, state: string) => ({ Variable: '$.next', StringEquals: next, Next: state })
  return {
    Type: 'Choice',
    Choices: [
      to('operate', 'Operate'),
      to('commit', 'Commit'),
      to('promote', 'Promote'),
      to('plan', 'Plan'),
      to('wait', 'Wait'),
    ],
    Default: 'Left',
  }
}
