/**
 * What travels between the steps of the epoch machine: pointers, never payloads.
 *
 * Each output carries `next`, by which the machine routes, and everything that the next step needs. All of it is
 * JSON of well under a kilobyte a task or lane.
 */
import type { ObjectRef, SinkLane } from './head.ts'

/** The run that a step belongs to. */
export interface RunKey {
  readonly pipeline: string
  /** Random id of the run. */
  readonly id: string
  readonly sequence: number
  /** Where the run is, as the launcher names it. */
  readonly place: string
  /** How long the run stays when there is nothing to do. */
  readonly lingerMs: number
  /** A person asked to go on although the pipeline is parked. */
  readonly resume: boolean
  readonly startedAtMs: number
  /** Of an execution that may be one of two with the same input: its own id, which becomes the run's. */
  readonly execution?: { readonly id: string }
  /** Events that the execution may have by now, as an upper estimate; absent at its start. */
  readonly events?: number
  /** The last epoch that it opened left input behind: more than an epoch may take. Only saves a wait. */
  readonly behind?: boolean
}

/** Input of plan: the run, and what it has watched. */
export interface PlanInput {
  readonly run: RunKey
  /** Since when another holder's head has not changed, by this run's clock. */
  readonly watch?: { readonly revision: number; readonly sinceMs: number } | null
}

/** Identifies the attempt that a step works on. */
export interface AttemptKey {
  readonly attempt: string
  readonly epoch: number
  readonly generation: number
  readonly incarnation: string
}

/** One task of a stage, as the operate Map hands it out. */
export interface TaskInput {
  readonly run: RunKey
  readonly key: AttemptKey
  readonly stage: number
  readonly task: number
  /** Tasks of the stage. */
  readonly of: number
  /** What the earlier stages left: the gathered results. Null in stage 0. */
  readonly gathered: ObjectRef | null
}

/** What a task answers: where its result lies. */
export interface TaskOutput {
  readonly stage: number
  readonly task: number
  readonly result: ObjectRef
}

/** One lane to promote, as the promote Map hands it out. */
export interface LaneInput {
  readonly run: RunKey
  readonly generation: number
  readonly epoch: number
  readonly sink: string
  readonly lane: number
  /** The attempt that was committed; for those who read logs. */
  readonly attempt?: string
}

/** What each step answers: what comes next, and what that needs. */
export type StepOutput =
  | { readonly next: 'plan'; readonly run: RunKey }
  | {
      readonly next: 'wait'
      readonly run: RunKey
      readonly waitMs: number
      readonly waitSeconds: number
      readonly watch: PlanInput['watch']
    }
  | {
      readonly next: 'operate'
      readonly run: RunKey
      readonly key: AttemptKey
      readonly stage: number
      readonly gathered: ObjectRef | null
      readonly tasks: readonly TaskInput[]
    }
  | { readonly next: 'commit'; readonly run: RunKey; readonly key: AttemptKey; readonly manifest: ObjectRef }
  | {
      readonly next: 'promote'
      readonly run: RunKey
      readonly epoch: number
      readonly hash: string
      readonly generation: number
      readonly attempt?: string
      readonly lanes: readonly LaneInput[]
    }
  | { readonly next: 'leave'; readonly run: RunKey; readonly reason: string; readonly code: string | null }

/** Output of the operate Map: the state input with the results added. */
export interface PrecommitInput {
  readonly run: RunKey
  readonly key: AttemptKey
  readonly stage: number
  readonly gathered: ObjectRef | null
  readonly results: readonly TaskOutput[]
}

/** Input of commit: the attempt and its sealed manifest. */
export interface CommitInput {
  readonly run: RunKey
  readonly key: AttemptKey
  readonly manifest: ObjectRef
}

/** As Step Functions hands over a caught error. */
export interface CaughtError {
  readonly Error: string
  readonly Cause?: unknown
}

/** What promote answers for a lane. */
export interface LaneOutput {
  /** Names the lane. */
  readonly promoted: string
  /** The lane, when its sink holds refused rows. */
  readonly refusing?: SinkLane
  /** The epoch carries refused rows, which finalize makes their sinks forget. */
  readonly carries?: true
}

/** Input of finalize: the promoted epoch, or the error that stopped its promotion. */
export interface FinalizeInput {
  readonly run: RunKey
  readonly epoch: number
  /** SHA-256 of the manifest whose lanes were promoted. */
  readonly hash: string
  readonly generation: number
  readonly promoted?: readonly LaneOutput[]
  /** The attempt that was committed; for those who read logs. */
  readonly attempt?: string
  readonly error?: CaughtError
}

/** Input of abort: the attempt, if it is known, and what went wrong. */
export interface AbortInput {
  readonly run: RunKey
  readonly key?: AttemptKey
  readonly error?: CaughtError
}

/** What the inputs of all steps have in common. */
export interface AnyInput {
  readonly run: RunKey
  readonly key?: AttemptKey
  readonly generation?: number
  readonly epoch?: number
  readonly attempt?: string
  readonly stage?: number
  readonly task?: number
  readonly sink?: string
  readonly lane?: number
}
