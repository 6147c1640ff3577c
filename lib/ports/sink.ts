/**
 * A sink: where output becomes visible, once an epoch, once only.
 *
 * `stage` writes what nobody sees, under names of its own; `promote` makes it visible and moves the lane's marker
 * in one atomic step of the sink. Obligations of `promote`: it compares the marker with `committable.prev`
 * **inside** that step and writes nothing when they differ, but answers with what it found; who is right is
 * judged by the caller. So it can be repeated, run twice at once, or arrive late. A lost answer is thrown as
 * `UNKNOWN_RESULT` or `SINK_UNAVAILABLE`.
 */
import type { CommitPermit, Committable, Marker, RefusedRow, StagedPart } from '../model/manifest.ts'
import type { Store } from './store.ts'

/**
 * What a sink can promise about the effects of repeated promotion. `exactly-once`: by its marker, or because a repeat
 * changes nothing. `at-least-once`: a repeat may show rows again; one call of `promote` shows each row at most once.
 */
export type Guarantee = 'exactly-once' | 'at-least-once'

/** What becomes of a row that the sink refuses: the pipeline parks, or the row goes to the dead letters. */
export type RejectPolicy = 'park' | 'dead-letter'

export interface Sink {
  /** Resolved target, e.g. `kafka:topic`; goes into committables. */
  readonly target: string
  readonly limits: SinkLimits
  /** A writer for one invocation of one task. */
  stage(context: StageContext): Promise<StageWriter>
  /** In precommit: the parts of one lane, in task order, become one committable. Default: the parts as they are. */
  assemble?(parts: readonly StagedPart[], context: StageContext): Promise<readonly StagedPart[]>
  /** Writes the base marker unless the lane has a marker; answers with the marker that the lane has then. */
  base(lane: number, marker: Marker): Promise<Marker>
  /** `healing` tells that the sink lost epochs: absent staging is then an error, not a sign of success. */
  promote(
    committable: Committable,
    permit: CommitPermit,
    options?: { readonly healing?: boolean },
  ): Promise<PromoteResult>
  marker(lane: number): Promise<Marker | null>
  /**
   * Makes what markers need in the sink (a table, a control topic), unless it is there, and answers with what it sends
   * for that, as a person would: SQL, requests. With `dryRun` it sends nothing. Absent: nothing is needed.
   */
  prepare?(options: { readonly dryRun: boolean }): Promise<readonly string[]>
  /**
   * For a person's decision, never called by a run: replaces the lane's marker by `to` (null: by none) if it is
   * exactly `from` (null: there is none), in one atomic step. Rows stay as they are. Answers with the marker that
   * the lane has then; a lost answer is thrown as `UNKNOWN_RESULT` or `SINK_UNAVAILABLE`.
   */
  reassign?(lane: number, from: Marker | null, to: Marker | null): Promise<Marker | null>
  /**
   * Refused rows that promotions of the lane recorded, in the atomic step that moved the marker, and that were not
   * forgotten; by epoch and row, at most so many, ending once they have so many bytes.
   */
  refused?(lane: number, max: { readonly rows: number; readonly bytes: number }): Promise<readonly RefusedRow[]>
  /** Drops recorded refusals by id; an id that is not there is no error. */
  forget?(lane: number, ids: readonly string[]): Promise<void>
  /** Drops staged parts that will never be promoted. Objects of the store are deleted by the caller. */
  discard?(parts: readonly StagedPart[]): Promise<void>
  /** Names of staging that lives in the sink itself, for `sweep`. Listed before the head is read. */
  staged?(): Promise<readonly string[]>
  /** Drops those of the listed names that no part handle in `kept` refers to. Called only while no attempt is open. */
  sweep?(listed: readonly string[], kept: readonly unknown[]): Promise<void>
  close(): Promise<void>
}

/** What promote did (with how many rows it refused and recorded), or what it found in place of the expected marker. */
export type PromoteResult =
  | { readonly result: 'promoted'; readonly refused?: number }
  /** Nothing was written: the marker is not `prev`. Null: there is no marker. */
  | { readonly result: 'refused'; readonly found: Marker | null }

/** How much one promotion can carry; precommit refuses attempts that come near. */
export interface SinkLimits {
  /** What one promote may carry a lane. */
  readonly laneRowsMax: number
  readonly laneBytesMax: number
}

/** Where, and for which epoch, an invocation stages. */
export interface StageContext {
  readonly store: Store
  /** Names below this prefix belong to this invocation and sink alone. */
  readonly prefix: string
  readonly incarnation: string
  readonly epoch: number
  /** Lanes that the plan registered for this sink. */
  readonly lanes: number
}

/** Takes the rows of one invocation, in order, and hands them to the store. */
export interface StageWriter {
  /**
   * Adds one row; synchronous, no allocation expected. `partition` is the source partition, by which rows
   * without a key choose their lane. Throws what the serde throws, before anything of the row is kept.
   */
  add(key: unknown, value: unknown, timestampMs: number, partition: number): void
  /** Bytes buffered and not yet handed to the store. */
  readonly bufferedBytes: number
  /** Hands what is buffered to the store, for long epochs; called between batches. */
  flush(): Promise<void>
  /** Makes everything durable. One part for each lane that has rows. */
  seal(): Promise<StagedPart[]>
}
