/**
 * What a pipeline tells about itself while it runs.
 *
 * One sum type feeds the console, the simulator's trace and, deployed, log lines and metrics. Plain data. Fields are
 * only ever added: programs read `pawl run --json`, and saved queries read the log lines.
 */
import type { Counts } from './manifest.ts'
import type { Usage } from './usage.ts'

/** A thing that happened, with where in the work it did. */
export type ProgressEvent = Happening & Partial<Origin>

/**
 * Where in the work an event arose. Null: there is no such thing there, or it is not known yet.
 *
 * Whatever is told during a step carries all of it, so that one query finds everything of a run, an epoch or an
 * attempt.
 */
export interface Origin {
  /** Name of the step, as in `operate`. */
  readonly step: string | null
  /** Random id of the run. */
  readonly run: string | null
  readonly epoch: number | null
  readonly attempt: string | null
  readonly stage: number | null
  readonly task: number | null
}

/** What waits in one partition. */
export interface PartitionLag {
  readonly source: string
  readonly topic: string
  readonly partition: number
  /** Offsets beyond the last committed epoch, as text. */
  readonly records: string
  /** Age of the oldest record that waits; only in `health`, and null where its timestamp says nothing. */
  readonly ageMs?: number | null
}

type Happening =
  | { readonly event: 'created'; readonly pipeline: string; readonly incarnation: string }
  | { readonly event: 'taken-over'; readonly pipeline: string; readonly generation: number; readonly from: string }
  | {
      readonly event: 'opened'
      readonly pipeline: string
      readonly epoch: number
      readonly attempt: string
      readonly span: number
      readonly tasks: number
    }
  | {
      readonly event: 'committed'
      readonly pipeline: string
      readonly epoch: number
      readonly attempt: string
      readonly counts: Counts
      readonly watermarkMs: number | null
      readonly atMs: number
      readonly openedAtMs: number
      /** Attempts that the epoch took, this one included. */
      readonly attempts?: number
      /** Bytes of all snapshot files, by stateful operator. */
      readonly stateBytes?: Readonly<Record<string, number>>
      /** Offsets that the logs had lost and that a policy let go, as text. */
      readonly lost?: string
    }
  | {
      readonly event: 'promoted'
      readonly pipeline: string
      readonly epoch: number
      readonly sink: string
      readonly lane: number
      readonly rows: number
    }
  | { readonly event: 'finalized'; readonly pipeline: string; readonly epoch: number; readonly atMs: number }
  | {
      readonly event: 'aborted'
      readonly pipeline: string
      readonly epoch: number
      readonly attempt: string
      readonly code: string
      readonly message: string
    }
  | {
      readonly event: 'parked'
      readonly pipeline: string
      readonly kind: string
      readonly code: string
      readonly message: string
    }
  | {
      readonly event: 'healed'
      readonly pipeline: string
      readonly sink: string
      readonly lane: number
      readonly fromEpoch: number
      readonly toEpoch: number
    }
  /** At most once: the promotion was begun, its end is not known, and it will not be tried again. */
  | {
      readonly event: 'unconfirmed'
      readonly pipeline: string
      readonly epoch: number
      readonly sink: string
      readonly lane: number
      readonly rows: number
      readonly code: string
    }
  /** A sink refused rows of its lane and has recorded them; the next epoch carries them to the dead letters. */
  | {
      readonly event: 'refused'
      readonly pipeline: string
      readonly epoch: number
      readonly sink: string
      readonly lane: number
    }
  | { readonly event: 'lag'; readonly pipeline: string; readonly lag: readonly PartitionLag[] }
  /** The pulse: told now and then by whoever looks from outside, whether or not any run is alive. */
  | {
      readonly event: 'health'
      readonly pipeline: string
      readonly promotedThrough: number
      /** Null: the logs or the last manifest could not be read. */
      readonly lag: readonly PartitionLag[] | null
      /**
       * How long records have waited without a commit. 0 while nothing waits, and while the pipeline waits for
       * something else that is told below; null while nobody knows.
       */
      readonly stalledMs: number | null
      /** How long the last committed epoch has not been visible everywhere; 0 when it is. */
      readonly unpromotedMs: number
      /** Why the pipeline is parked; null when it is not. */
      readonly parked: { readonly kind: string; readonly code: string; readonly message: string } | null
      /** What whoever looks has used since it last told; absent where nothing is counted. */
      readonly usage?: Usage
    }
  /** The last words of a step: how long it took, what it used, and what follows or what went wrong. */
  | {
      readonly event: 'step'
      readonly pipeline: string
      readonly step: string
      readonly ms: number
      /** What comes next; null after an error. */
      readonly next: string | null
      readonly sink: string | null
      readonly lane: number | null
      /** Of the error; null when there was none. */
      readonly code: string | null
      readonly message: string | null
      /** State transitions that the step stands for. */
      readonly transitions: number
      /** What the place counted of its calls; absent where nothing is counted. */
      readonly usage?: Usage
    }
  | {
      readonly event: 'offsets-unpublished'
      readonly pipeline: string
      readonly epoch: number
      readonly source: string
      readonly code: string
      readonly message: string
    }
  /** The place itself does not work for the moment; tried again until it does. */
  | { readonly event: 'waiting'; readonly pipeline: string; readonly code: string; readonly message: string }
  /** The run that held the pipeline ended other than by its own will. */
  | { readonly event: 'died'; readonly pipeline: string; readonly run: string; readonly place: string }
  | { readonly event: 'left'; readonly pipeline: string; readonly run: string; readonly reason: string }
