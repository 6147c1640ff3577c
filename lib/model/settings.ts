/**
 * Settings of a pipeline, under the names that users of stream processors know.
 *
 * Pure data with every default filled in by `compile`.
 */

import { limits } from './limits.ts'

/** What follows a failed attempt. */
export type RestartStrategy =
  /** Park at the first failure. */
  | { readonly strategy: 'none' }
  | { readonly strategy: 'fixed-delay'; readonly attempts: number; readonly delayMs: number }
  | {
      readonly strategy: 'exponential-delay'
      readonly initialMs: number
      readonly maxMs: number
      readonly multiplier: number
      /** Null: for ever. */
      readonly attempts: number | null
    }
  /** Park when more than `failures` fall within `intervalMs`. */
  | {
      readonly strategy: 'failure-rate'
      readonly failures: number
      readonly intervalMs: number
      readonly delayMs: number
    }

export interface CheckpointSettings {
  /**
   * From the start of one epoch to the start of the next. 0: as fast as there is input. While there is more input than
   * an epoch may take, the next one starts at once.
   */
  readonly intervalMs: number
  /** From the end of one epoch to the start of the next, at least. */
  readonly minPauseMs: number
  /** An attempt that takes longer is aborted, and the next one is half as large. */
  readonly timeoutMs: number
  /** Failed attempts in a row that are repeated at once, before the restart strategy is asked. */
  readonly tolerableFailures: number
}

export interface EpochSettings {
  /** Offsets that one epoch may span, over all partitions. */
  readonly spanMax: number
  /** An epoch that spans no more than this runs as one fused task; 0: with several shards, none does. */
  readonly fuseSpanMax: number
  /**
   * A larger one does so, too, when one task is expected to take no longer than this, or to be faster than the shards:
   * see `epoch/split.ts`. 0: the span alone decides.
   */
  readonly fuseMs: number
  /** Failures of a suspect record alone, without a word, until it is convicted. */
  readonly convictAfter: number
}

export interface RetainSettings {
  /** Epochs behind the newest that stay restorable, with their staged output. */
  readonly epochs: number
}

/**
 * What a pipeline promises of each record's effects on sinks. `at-most-once` never repeats: a promotion whose end is
 * unknown is given up and recorded. Sinks that keep a marker are exact in every mode.
 */
export type PipelineGuarantee = 'exactly-once' | 'at-least-once' | 'at-most-once'

/** What happens to a record that does not decode, whose operator throws, or that does not encode. */
export type ErrorPolicy = 'fail' | 'skip' | 'dead-letter'

export interface Settings {
  readonly guarantee: PipelineGuarantee
  readonly checkpoint: CheckpointSettings
  readonly restart: RestartStrategy
  readonly epoch: EpochSettings
  readonly retain: RetainSettings
  readonly leaseMs: number
  /** Epochs after which a run hands over to a fresh execution. */
  readonly runEpochsMax: number
  /** Age at which a run hands over to a fresh execution; null: its events alone decide. */
  readonly runMsMax: number | null
  /** Tasks a keyed stage is split into. */
  readonly shards: number
  readonly keyGroups: number
  readonly onError: ErrorPolicy
  /** Wait before a parked promotion is tried again: doubles from the first to the second. */
  readonly promotionRetryMs: readonly [first: number, max: number]
}

export const defaultSettings: Settings = Object.freeze<Settings>({
  guarantee: 'exactly-once',
  checkpoint: { intervalMs: 1000, minPauseMs: 0, timeoutMs: 60_000, tolerableFailures: 0 },
  restart: { strategy: 'exponential-delay', initialMs: 100, maxMs: 60_000, multiplier: 2, attempts: null },
  epoch: { spanMax: 500_000, fuseSpanMax: 50_000, fuseMs: 1000, convictAfter: 2 },
  retain: { epochs: 10 },
  leaseMs: 150_000,
  runEpochsMax: limits.runEpochsMax,
  runMsMax: null,
  shards: 1,
  keyGroups: 128,
  onError: 'fail',
  promotionRetryMs: [1000, 300_000],
})

/** What is left of an Express execution for a plan, a promotion and the hand-over, beside one epoch. */
export const expressSpareMs = 30_000

/** The settings of runs that are Express executions: they hand over while one more epoch would still fit. */
export function expressSettings(settings: Settings): Settings {
  return { ...settings, runMsMax: limits.expressMs - expressSpareMs - settings.checkpoint.timeoutMs }
}
