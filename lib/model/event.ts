/**
 * What a pipeline tells about itself while it runs.
 *
 * One sum type feeds the console, the simulator's trace and, deployed, the metrics. Plain data.
 */
import type { Counts } from './manifest.ts'

export type ProgressEvent =
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
  | {
      readonly event: 'lag'
      readonly pipeline: string
      readonly lag: readonly { readonly source: string; readonly partition: number; readonly records: string }[]
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
  | { readonly event: 'left'; readonly pipeline: string; readonly run: string; readonly reason: string }
