/**
 * What every kind of keyed state has in common, as `epoch/operate` sees it.
 *
 * The kinds differ in how they are read and changed (keys, windows); making them from snapshot files and writing
 * them back is the same for all, so that the epoch knows none of them.
 */
import type { Snapshot } from '../model/manifest.ts'

/** What `OperatorState.encode` gives: one file, to be stored as the concatenation of its chunks. */
export interface EncodedSnapshot {
  /** A `delta` is added after files of the parent, a `base` takes their place. */
  readonly file: 'base' | 'delta'
  /**
   * How many of the parent's files stay before this one: 0 for a base, all for a delta, fewer for a delta that also
   * carries what the last deltas said. The new list is `[...parent.files.slice(0, keep), file]`.
   */
  readonly keep: number
  readonly entries: number
  readonly chunks: readonly Buffer[]
}

/**
 * State of one operator in one shard, in memory. Made from snapshot files, changed by the program, written back as a
 * delta of what was touched (or a new base when deltas outweigh it).
 */
export interface OperatorState {
  readonly operator: string
  readonly stateKind: string
  readonly stateVersion: number
  readonly keyGroups: readonly [from: number, to: number]
  /** How many entries it holds. */
  readonly entries: number
  /**
   * The file to add to those of the parent or to put in their place; null when nothing was touched. Changes nothing,
   * so that it can be repeated. Throws `ENCODE_FAILED` naming operator and key.
   */
  encode(parent: Snapshot | null): EncodedSnapshot | null
  /** Forget what was touched: the epoch is committed and this is the new parent state. */
  settle(): void
}
