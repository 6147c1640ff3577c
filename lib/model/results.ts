/**
 * What tasks leave in the store for the next step: results and gathered results.
 *
 * JSON, sealed under the invocation that wrote it. Version 1.
 */
import type { ObjectRef } from './head.ts'
import type { Counts, PartitionProgress, Snapshot, StagedPart } from './manifest.ts'
import type { RangeText } from './offsets.ts'

/** Version of results and gathered results that this code writes. */
export const resultVersion = 1

/** What one invocation of one task did. */
export interface TaskResult {
  readonly version: number
  readonly stage: number
  readonly task: number
  readonly build: string
  /** Ranges that were read to their end. */
  readonly ranges: readonly RangeText[]
  readonly eventTimes: readonly {
    readonly source: string
    readonly partition: number
    readonly maxTimestampMs: number
  }[]
  readonly staged: readonly { readonly sink: string; readonly parts: readonly StagedPart[] }[]
  readonly snapshots: readonly Snapshot[]
  readonly segments: readonly (ObjectRef & { readonly stage: number; readonly shard: number })[]
  readonly counts: Counts
  readonly rejected: ObjectRef | null
  /** Fused tasks move the watermark themselves. */
  readonly watermark: Watermark | null
  /** How long the task took; absent in results of older builds. */
  readonly tookMs?: number
}

/** Where event time stands after an epoch, by partition and over all. */
export interface Watermark {
  readonly watermarkMs: number | null
  readonly progress: readonly PartitionProgress[]
}

/** The results of all stages so far. */
export interface Gathered {
  readonly version: number
  readonly results: readonly TaskResult[]
  readonly watermark: Watermark
}
