/**
 * The head: the one register that decides what is true of a pipeline.
 *
 * Written only by compare-and-set on `revision`. Everything here is small; what is large (plans, manifests)
 * is named with its hash. Version 1.
 */
import type { RangeText } from './offsets.ts'

/** An object of the store with the SHA-256 of its bytes, in hex. */
export interface ObjectRef {
  readonly name: string
  readonly bytes: number
  readonly sha256: string
}

/** Version of the head as it is stored. */
export const headVersion = 1

export interface Head {
  readonly version: number
  readonly pipeline: string
  /** Random id of this life of the pipeline. */
  readonly incarnation: string
  /** Counts every write. */
  readonly revision: number
  /** Random id of the write itself, by which a lost reply is read back. */
  readonly write: string
  /** Fencing token: grows with each run that takes the pipeline over. */
  readonly generation: number
  readonly run: RunState
  readonly open: OpenAttempt | null
  readonly committed: CommittedEpoch
  readonly promotedThrough: number
  /** Lanes that have a base marker in their sink, ever; sorted by sink, lane. */
  readonly lanes: readonly RegisteredLane[]
  /** Oldest epoch whose manifest, snapshots and staging are kept. */
  readonly retainedFrom: number
  readonly savepoints: readonly Savepoint[]
  readonly failures: Failures
  readonly parked: Parked | null
  /** A person has paused the pipeline. Absent in heads of before commands could. */
  readonly paused?: Paused | null
  /** A person wants the next epoch at once. Absent in heads of before commands could. */
  readonly hurry?: Hurry | null
  /** At most once: promotions of the committed epoch that were begun. Absent: none. Cleared by finalize. */
  readonly begun?: readonly BegunPromotion[]
  /** At most once: output whose promotion has no known end. Absent: there never was any. */
  readonly unconfirmed?: UnconfirmedTally
  /** Lanes whose sink holds refused rows that no epoch has carried to the dead letters. Absent: none. */
  readonly refusing?: readonly SinkLane[]
}

/** A lane by its sink. */
export interface SinkLane {
  readonly sink: string
  readonly lane: number
}

/** A promotion that is tried once and never again: written before it is tried, and when its end is known. */
export interface BegunPromotion extends SinkLane {
  /** Random id of the one invocation that may promote. */
  readonly invocation: string
  readonly state: 'begun' | 'done' | 'unknown'
  readonly rows: number
  /** Why the end is unknown. */
  readonly code: string | null
}

/** Output of one lane and epoch that was shown in whole, in part or not at all, and will not be shown again. */
export interface UnconfirmedOutput extends SinkLane {
  readonly epoch: number
  readonly rows: number
  readonly code: string
}

/** What at-most-once has let go, ever. */
export interface UnconfirmedTally {
  readonly rows: number
  /** What no manifest names yet; the next one does. */
  readonly recent: readonly UnconfirmedOutput[]
}

/** The run that holds or held the pipeline. */
export interface RunState {
  /** Grows by one with each run started; part of execution names. */
  readonly sequence: number
  readonly id: string
  readonly open: boolean
  /** Where it runs, as the launcher names it; lets another run ask whether it is gone. */
  readonly place: string
  readonly leaseMs: number
  /** By the holder's own clock, only for the holder's use: when to renew. */
  readonly renewedAtMs: number
  /** Epochs that this run has finished, for the hand-over. */
  readonly epochs: number
}

/** The attempt that may commit: set by plan, cleared by commit, abort or takeover. */
export interface OpenAttempt {
  readonly attempt: string
  readonly epoch: number
  readonly build: string
  readonly openedAtMs: number
  /** How many offsets the plan spans; what bisection halves. */
  readonly span: number
  /** The only offset of the plan, when it has but one: the suspect. */
  readonly suspect: SourceOffset | null
}

/** One record, by where it stands in its source. The offset is text. */
export interface SourceOffset {
  readonly source: string
  readonly partition: number
  readonly offset: string
}

/** The newest epoch that is true; its manifest is the state of the pipeline. */
export interface CommittedEpoch {
  /** 0 for the genesis manifest, which pins the start positions. */
  readonly epoch: number
  readonly attempt: string
  readonly manifest: ObjectRef
  /** When the epoch was opened, for the checkpoint interval. */
  readonly openedAtMs: number
  readonly atMs: number
}

/** A lane that has a base marker in its sink: from now on its absence is corruption. */
export interface RegisteredLane {
  readonly sink: string
  readonly lane: number
  readonly target: string
}

/** A manifest that is kept under a name, whatever retention says. */
export interface Savepoint {
  readonly name: string
  readonly epoch: number
  readonly manifest: ObjectRef
}

/** What went wrong since the last commit. */
export interface Failures {
  /** Failures of the epoch that is next, in a row. */
  readonly count: number
  /** When each of the newest failures happened, for the failure-rate strategy; at most 100. */
  readonly atMs: readonly number[]
  readonly last: FailureReason | null
  /** Not before this time may the next attempt open. */
  readonly notBeforeMs: number
  /** Bisection: the next plan spans at most this many offsets; null = no bound. Doubles with each commit. */
  readonly spanMax: number | null
  /** How often the suspect alone has failed without naming a record. */
  readonly suspect: (SourceOffset & { readonly times: number }) | null
  /** Records convicted by repeated failure alone; they are rejected instead of processed. Cleared on commit. */
  readonly convicted: readonly SourceOffset[]
}

/** Why an attempt failed, and what it named as the cause. */
export interface FailureReason {
  readonly code: string
  readonly message: string
  readonly attempt: string
  readonly atMs: number
  /** The record at fault, when the failure names one. */
  readonly record: SourceOffset | null
  readonly operator: string | null
}

/** A pipeline that waits: for a person or a new build (`failure`), or for a sink to come back (`promotion`). */
export interface Parked {
  readonly kind: 'failure' | 'promotion'
  readonly code: string
  readonly message: string
  readonly sinceMs: number
  /** `promotion` parks try again at this time by themselves. */
  readonly retryAtMs: number | null
  readonly retries: number
  /** The build that failed; another build lifts a `failure` park. */
  readonly build: string
}

/** A person's wish that no epoch opens any more, until `resume`. What is open or committed goes on to its end. */
export interface Paused {
  /** Random id of the wish: who waits for it sees whether it still holds. */
  readonly id: string
  readonly sinceMs: number
  readonly by: string | null
  readonly why: string | null
  /** Input that is to become visible first; null once it is, or when the pause takes hold at once. */
  readonly drain: Drain | null
}

/** How far to read before the pause takes hold. */
export interface Drain {
  /** Ends of the logs, pinned by the first plan that sees the wish; null until then. */
  readonly ends: readonly DrainEnd[] | null
}

/** The offset at which a partition is not read on. The offset is text. */
export interface DrainEnd {
  readonly source: string
  readonly partition: number
  readonly end: string
}

/** A wish that the next epoch does not wait for the checkpoint interval; gone once granted, or once nothing is to be read. */
export interface Hurry {
  readonly id: string
  readonly atMs: number
  /** The epoch that grants it, from its first attempt on; null before. */
  readonly epoch: number | null
}

/** One committed epoch in the ledger's history, written in the transaction that commits it. */
export interface HistoryItem {
  readonly epoch: number
  readonly attempt: string
  readonly generation: number
  readonly manifest: ObjectRef
  readonly atMs: number
}

export type { RangeText }
