/**
 * A program: the executable form of one task, as `epoch/operate` sees it.
 *
 * The task owns no I/O. It is fed batches (stage 0) or shuffle segments (later stages), pushes values through the
 * fused operator chain synchronously, changes its state tables and adds rows to the stage writers; `operate`
 * reads, flushes and stores around it. One program serves one invocation.
 */

import type { SourceOffset } from '../model/head.ts'
import type { Counts, RejectedRecord } from '../model/manifest.ts'
import type { LogBatch } from '../model/records.ts'
import type { StageWriter } from '../ports/sink.ts'
import type { OperatorState } from '../state/operator-state.ts'

export type { OperatorState } from '../state/operator-state.ts'

/** What a task is given. */
export interface ProgramOptions {
  /** `'fused'` runs every stage in one task. */
  readonly stage: number | 'fused'
  /** Shards of the epoch, and the one that this task owns in a keyed stage (fused: all). */
  readonly shards: number
  readonly shard: number
  readonly processingTimeMs: number
  /** With which the epoch began; null before the first. */
  readonly watermarkMs: number | null
  /** By sink id, including the dead-letter sink. */
  readonly writers: Readonly<Record<string, StageWriter>>
  /** State as of the parent, one for each stateful operator and owned shard. */
  readonly states: readonly OperatorState[]
  readonly convicted: readonly SourceOffset[]
}

export interface Program {
  /** Stage 0 and fused. Throws `OPERATOR_FAILED` and friends under onError: fail, naming the record. */
  consume(source: string, batch: LogBatch): void
  /** Stage 0 and fused: a dead letter of an earlier epoch. */
  carry(letter: RejectedRecord): void
  /** Stage ≥ 1: one whole shuffle segment, in (stage, task) order of its writers. */
  consumeSegment(segment: Buffer): void
  /** Fires what the new watermark completes and emits what is emitted once an epoch. After all input. */
  finish(watermarkMs: number | null): void
  /** Largest event time by source and partition, of what was consumed. */
  eventTimes(): readonly { readonly source: string; readonly partition: number; readonly maxTimestampMs: number }[]
  /** Shuffle output that waits to be stored; called between batches and at the end. */
  takeSegments(): readonly ShuffleSegment[]
  readonly bufferedShuffleBytes: number
  counts(): Counts
  rejected(): readonly RejectedRecord[]
}

/** Output of one task for one shard of a later stage, as bytes of `segment.ts`. */
export interface ShuffleSegment {
  /** Stage and shard that will consume it. */
  readonly stage: number
  readonly shard: number
  readonly chunks: readonly Buffer[]
}
