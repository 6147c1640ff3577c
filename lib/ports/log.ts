/**
 * A log source: a topic that can be read again by offset range.
 *
 * Obligations: `read` delivers each visible record of `[start, end)` once, in offset order, and then ends, also
 * when the range holds none (control batches, aborted records, holes). Under read_committed `bounds` never
 * reports an end past the last stable offset. Refusals: `LOG_OFFSET_LOST` when start lies below the log's start,
 * `TOPIC_MISSING`, `BATCH_DAMAGED`.
 */
import type { LogBatch, LogRecord } from '../model/records.ts'

/** One topic, opened for reading by offset range. */
export interface LogSource {
  /** Where the log stands now. */
  bounds(): Promise<LogBounds>
  /** Start offsets by partition for a position; partitions as of now. Throws `START_POSITION_INVALID`. */
  resolve(position: StartPosition): Promise<ReadonlyMap<number, bigint>>
  /**
   * With `topicId`, a topic that was created again since the range was planned is refused (`TOPIC_RECREATED`).
   * `bytesMax` is a hint: how much to fetch at once for a reader that will not come far.
   */
  read(range: {
    readonly partition: number
    readonly start: bigint
    readonly end: bigint
    readonly topicId?: string
    readonly bytesMax?: number
  }): AsyncIterable<LogBatch>
  /**
   * Resolves when records may have come at or behind these offsets, by partition, after about `waitMs` at the latest, or
   * earlier for any reason; rejects when the log cannot be reached. Saves looks, and tells nothing.
   */
  arrival?(offsets: ReadonlyMap<number, bigint>, waitMs: number): Promise<void>
  /** Tells monitoring tools how far the pipeline is (group offsets). Never read back as truth. */
  publish?(group: string, offsets: ReadonlyMap<number, bigint>): Promise<void>
  /**
   * Deletes what lies wholly below these offsets, by partition; nobody asks for it again. Only of logs that the pipeline
   * keeps itself. Safe to repeat, and to interrupt.
   */
  retain?(from: ReadonlyMap<number, bigint>): Promise<void>
  close(): Promise<void>
}

/** Where each partition starts and ends, for readers of the given isolation. */
export interface LogBounds {
  /** Changes when the topic is deleted and created again. */
  readonly topicId: string
  /** Sorted by partition, without gaps from 0. */
  readonly partitions: readonly {
    readonly partition: number
    readonly start: bigint
    readonly end: bigint
    /** Beyond `end`: offsets that are known and cannot be read yet, since something before them is missing. */
    readonly known?: bigint
  }[]
}

/** Where a pipeline begins to read; resolved once and pinned by the genesis manifest. */
export type StartPosition =
  | { readonly at: 'earliest' }
  | { readonly at: 'latest' }
  | { readonly at: 'timestamp'; readonly timestampMs: number }
  | { readonly at: 'offsets'; readonly offsets: Readonly<Record<number, string>> }
  | { readonly at: 'group'; readonly group: string }

/** A log that can be appended to, for tools and tests. */
export interface LogAppender {
  append(partition: number, records: readonly LogRecord[]): Promise<{ readonly baseOffset: bigint }>
  close(): Promise<void>
}
