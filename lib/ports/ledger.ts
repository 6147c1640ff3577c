/**
 * The ledger: one register and one counter a pipeline, and the history of its commits.
 *
 * Obligations: every method is linearizable for one pipeline and durable before it returns. `swap` is the only
 * way to change a head. A lost answer is thrown as `UNKNOWN_RESULT`; the write may have happened, or may still
 * happen later: callers read back. No tokens, no clocks.
 */
import type { Head, HistoryItem } from '../model/head.ts'

export interface Ledger {
  read(pipeline: string): Promise<Head | null>
  /** Creates the head at the given revision unless the pipeline has one. The history item is epoch 0. */
  create(head: Head, history: HistoryItem): Promise<'created' | 'exists'>
  /**
   * Replaces the head if its revision is `expected`. In the same atomic write: with `seen` the head must still be the
   * one of that write, `history` is added (an epoch that is there already refuses the write), and with `wakes` the wake
   * counter must still have that value.
   */
  swap(expected: number, head: Head, options?: SwapOptions): Promise<'swapped' | 'moved'>
  /** The committed epoch, or null. */
  history(pipeline: string, epoch: number): Promise<HistoryItem | null>
  /** Committed epochs in `[from, to)`, in order. */
  histories(pipeline: string, from: number, to: number): Promise<HistoryItem[]>
  /** Adds one to the wake counter, which lives apart from the head; returns the new value. May count twice. */
  ring(pipeline: string): Promise<number>
  /** The wake counter; 0 before the first ring. */
  wakes(pipeline: string): Promise<number>
  pipelines(): Promise<string[]>
  close(): Promise<void>
}

/** What else must happen, or hold, in the same atomic write. */
export interface SwapOptions {
  /** Id of the write that made the head which was read: a ledger put back to a backup counts revisions anew. */
  readonly seen?: string
  readonly history?: HistoryItem
  readonly wakes?: number
}
