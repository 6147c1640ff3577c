/**
 * The lineage of a state: its base file, the deltas after it, and what the next file will be.
 *
 * Remembers the keys that each delta carries (not the values, which memory holds), so that deltas can be merged
 * without reading any file. Deltas are merged in tiers, as in a log-structured tree: when seven deltas of the new
 * one's size wait at the end, they become one. So a key is written again O(log) times, and a snapshot has O(log)
 * files, however long the pipeline runs. A new base is due when a delta would carry half of what is held, or when
 * the deltas outweigh half of the base.
 */
import type { Snapshot } from '../model/manifest.ts'
import type { Key } from './key-groups.ts'
import type { KeyTable } from './key-table.ts'
import type { EncodedSnapshot } from './operator-state.ts'
import { SnapshotWriter } from './snapshot-writer.ts'

/** What one file changes: groups that ended, then keys by group, then groups that fired. */
export interface Change {
  readonly dropped: ReadonlySet<number>
  readonly touched: ReadonlyMap<number, readonly Key[]>
  readonly fired: ReadonlySet<number>
}

/** A state as its lineage sees it: groups of keys. */
export interface Lined {
  readonly entries: number
  /** What was touched since the last commit; null when nothing was. */
  change(): Change | null
  table(group: number): KeyTable<unknown> | undefined
  hasFired(group: number): boolean
  groups(): Iterable<number>
}

/** Whose state it is. */
export interface StateScope {
  readonly operator: string
  readonly stateVersion: number
  /** Key groups `[from, to)` of the shard. */
  readonly keyGroups: readonly [from: number, to: number]
  /** Key groups of the pipeline. */
  readonly totalKeyGroups: number
}

/** Deltas of like size that wait to become one. */
const fan = 8
/** Files of a snapshot, whatever their sizes. */
const filesMax = 64
/** Deltas that outweigh this share of the base are due to be a new base… */
const baseShare = 0.5
/** …once they are this large, or this many files. */
const compactionBytes = 1024 * 1024
const compactionFiles = 16

export class Lineage {
  readonly #scope: StateScope
  readonly #stateKind: string
  /** What each delta of the parent changes; null when unknown. */
  #deltas: readonly Change[] | null
  /** What `#deltas` becomes with the commit of what was encoded last; undefined when nothing was. */
  #next: readonly Change[] | null | undefined
  /** True when changes were settled that no file holds. */
  #unwritten = false

  constructor(scope: StateScope, stateKind: string, deltas: readonly Change[]) {
    this.#scope = scope
    this.#stateKind = stateKind
    this.#deltas = deltas
  }

  /** The next file after `parent`; null when nothing was touched. */
  encode(parent: Snapshot | null, state: Lined): EncodedSnapshot | null {
    const change = state.change()
    const sameRange = parent === null || sameKeyGroups(parent.keyGroups, this.#scope.keyGroups)
    if (change === null && sameRange && (parent !== null || state.entries === 0)) return null
    if (change === null || parent === null || !sameRange || parent.files.length === 0) return this.#base(state)
    if (this.#unwritten || outweighed(parent)) return this.#base(state)
    const deltas = this.#deltas?.length === parent.files.length - 1 ? this.#deltas : null
    const keep = deltas === null ? parent.files.length : 1 + kept(deltas.map(weight), weight(change))
    if (keep >= filesMax) return this.#base(state)
    const merged = deltas === null ? change : mergeChanges([...deltas.slice(keep - 1), change])
    if (weight(merged) * 2 >= state.entries) return this.#base(state)
    this.#next = deltas && [...deltas.slice(0, keep - 1), merged]
    return { file: 'delta', keep, ...this.#write('delta', (writer) => writeChange(writer, merged, state)) }
  }

  /** What was encoded last is committed. Changes that were never encoded make the next file a base. */
  settle(changed: boolean): void {
    if (this.#next !== undefined) {
      this.#deltas = this.#next
      this.#unwritten = false
    } else if (changed) this.#unwritten = true
    this.#next = undefined
  }

  #base(state: Lined): EncodedSnapshot {
    const written = this.#write('base', (writer) => writeAll(writer, state))
    this.#next = []
    return { file: 'base', keep: 0, ...written }
  }

  #write(file: 'base' | 'delta', fill: (writer: SnapshotWriter) => void): Pick<EncodedSnapshot, 'entries' | 'chunks'> {
    const writer = new SnapshotWriter(this.#scope.operator)
    fill(writer)
    return writer.finish({ ...this.#scope, stateKind: this.#stateKind, file })
  }
}

/** True when both are the same range. */
export function sameKeyGroups(a: readonly [number, number], b: readonly [number, number]): boolean {
  return a[0] === b[0] && a[1] === b[1]
}

function outweighed({ files }: Snapshot): boolean {
  const deltaBytes = files.slice(1).reduce((sum, { bytes }) => sum + bytes, 0)
  return deltaBytes > files[0].bytes * baseShare && (deltaBytes >= compactionBytes || files.length >= compactionFiles)
}

/** How many of the deltas stay as they are before a new one of `weight`. */
function kept(weights: readonly number[], weight: number): number {
  let keep = weights.length
  let sum = weight
  for (;;) {
    let from = keep
    while (from > 0 && weights[from - 1] < fan * sum) from--
    if (keep - from < fan - 1) return keep
    while (keep > from) sum += weights[--keep]
  }
}

function weight(change: Change): number {
  let sum = change.dropped.size + change.fired.size
  for (const keys of change.touched.values()) sum += keys.length
  return sum
}

function mergeChanges(changes: readonly Change[]): Change {
  if (changes.length === 1) return changes[0]
  const dropped = new Set<number>()
  const touched = new Map<number, Set<Key>>()
  const fired = new Set<number>()
  for (const change of changes) {
    for (const group of change.dropped) {
      dropped.add(group)
      touched.delete(group)
      fired.delete(group)
    }
    for (const [group, keys] of change.touched) {
      const into = touched.get(group)
      if (into === undefined) touched.set(group, new Set(keys))
      else for (const key of keys) into.add(key)
    }
    for (const group of change.fired) fired.add(group)
  }
  return { dropped, touched: new Map(Array.from(touched, ([group, keys]) => [group, [...keys]])), fired }
}

function writeChange(writer: SnapshotWriter, change: Change, state: Lined): void {
  writer.drop([...change.dropped])
  for (const [group, keys] of change.touched) {
    const table = state.table(group)
    if (table === undefined) continue
    const removed: Key[] = []
    for (const key of keys) {
      if (table.has(key)) writer.set(group, key, table.get(key))
      else removed.push(key)
    }
    writer.remove(group, removed)
  }
  writer.fired([...change.fired])
}

function writeAll(writer: SnapshotWriter, state: Lined): void {
  const fired: number[] = []
  for (const group of state.groups()) {
    for (const [key, value] of state.table(group)?.all() ?? []) writer.set(group, key, value)
    if (state.hasFired(group)) fired.push(group)
  }
  writer.fired(fired)
}
