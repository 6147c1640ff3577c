/**
 * One accumulator a window and key: the state of tumbling event-time windows.
 *
 * A window fires whole when the watermark passes its end, is updated by late records until its allowed lateness is
 * over, and ends as a whole: one entry in the delta, however many keys it had. Windows are found by their start in
 * two sorted lists, so that an epoch costs what it touches, fires and drops. Order is kept through snapshots: results
 * come out the same with and without a restart in between.
 */
import { assert } from '../model/assert.ts'
import type { Snapshot } from '../model/manifest.ts'
import type { Key } from './key-groups.ts'
import { KeyTable } from './key-table.ts'
import { type Change, Lineage, type Lined, type StateScope } from './lineage.ts'
import type { EncodedSnapshot, OperatorState } from './operator-state.ts'
import { loadSnapshot, type Restored } from './snapshot-load.ts'

/** Its state kind, as it stands in manifests. */
export const windowStateKind = 'window'

/** A window's start, a key and its accumulator. */
export type WindowRow<A> = readonly [windowStartMs: number, key: Key, acc: A]

interface OpenWindow<A> {
  readonly startMs: number
  readonly table: KeyTable<A>
  fired: boolean
  /** True when files of the parent know it. */
  stored: boolean
}

export class WindowState<A> implements OperatorState {
  readonly operator: string
  readonly stateKind = windowStateKind
  readonly stateVersion: number
  readonly keyGroups: readonly [from: number, to: number]
  readonly #lineage: Lineage
  readonly #windows = new Map<number, OpenWindow<A>>()
  /** Starts of the windows that have not fired, and of those that have; ascending. */
  readonly #waiting: number[] = []
  readonly #fired: number[] = []
  /** Starts, since the last commit. */
  readonly #touched = new Set<number>()
  readonly #dropped = new Set<number>()
  readonly #justFired = new Set<number>()
  #entries = 0
  #last: OpenWindow<A> | undefined

  /** Made by `loadWindowState`. Throws what `loadSnapshot` throws. */
  constructor(scope: StateScope, snapshot: Snapshot | null, files: readonly Buffer[]) {
    this.operator = scope.operator
    this.stateVersion = scope.stateVersion
    this.keyGroups = scope.keyGroups
    const deltas = loadSnapshot(scope, windowStateKind, snapshot, files, this.#restored())
    this.#lineage = new Lineage(scope, windowStateKind, deltas)
  }

  /** How many keys all its windows hold together. */
  get entries(): number {
    return this.#entries
  }

  /** The accumulator of a key in a window; undefined when there is none. */
  get(windowStartMs: number, key: Key): A | undefined {
    return this.#find(windowStartMs)?.table.get(key)
  }

  /**
   * Sets the accumulator of a key in a window and marks it as touched. Throws `ENCODE_FAILED` for NaN,
   * `STATE_TOO_LARGE`.
   */
  set(windowStartMs: number, key: Key, acc: A): void {
    const window = this.#find(windowStartMs) ?? this.#open(windowStartMs)
    const before = window.table.entries
    window.table.set(key, acc)
    this.#entries += window.table.entries - before
    if (window.table.touchedCount === 1) this.#touched.add(window.startMs)
  }

  /**
   * What is to be emitted at the end of an epoch, by window start, then in first-touch order: all of each window whose
   * last millisecond the watermark has reached and that had not fired (it has then), and what this epoch touched in
   * windows that fired before. To be called once an epoch.
   */
  due(watermarkMs: number, sizeMs: number): Iterable<WindowRow<A>> {
    const updated = [...this.#touched].filter((startMs) => this.#windows.get(startMs)?.fired)
    const complete = this.#waiting.splice(0, countUpTo(this.#waiting, watermarkMs - sizeMs + 1))
    for (const startMs of complete) this.#fire(startMs)
    const isUpdate = new Set(updated)
    const starts = [...complete, ...updated].sort((a, b) => a - b)
    return this.#rows(starts, (window) => (isUpdate.has(window.startMs) ? window.table.touched() : window.table.all()))
  }

  /**
   * Drops the windows whose allowed lateness is over, which must have fired, and says how many. To be called after
   * `due` with the same watermark.
   */
  expire(watermarkMs: number, sizeMs: number, allowedLatenessMs: number): number {
    const lastStartMs = watermarkMs - allowedLatenessMs - sizeMs + 1
    assert(countUpTo(this.#waiting, lastStartMs) === 0, `operator "${this.operator}" expires windows that never fired`)
    const expired = this.#fired.splice(0, countUpTo(this.#fired, lastStartMs))
    for (const startMs of expired) this.#drop(startMs)
    return expired.length
  }

  /** Everything that it holds, by window in the order in which they came. */
  all(): Iterable<WindowRow<A>> {
    return this.#rows(this.#windows.keys(), (window) => window.table.all())
  }

  encode(parent: Snapshot | null): EncodedSnapshot | null {
    return this.#lineage.encode(parent, this.#lined())
  }

  settle(): void {
    this.#lineage.settle(this.#change() !== null)
    for (const startMs of this.#touched) {
      const window = this.#windows.get(startMs)
      if (window === undefined) continue
      window.table.settle()
      window.stored = true
    }
    this.#touched.clear()
    this.#dropped.clear()
    this.#justFired.clear()
  }

  *#rows(
    starts: Iterable<number>,
    pairs: (window: OpenWindow<A>) => Iterable<readonly [Key, A]>,
  ): Generator<WindowRow<A>> {
    for (const startMs of starts) {
      const window = this.#windows.get(startMs)
      if (window) for (const [key, acc] of pairs(window)) yield [startMs, key, acc]
    }
  }

  #find(startMs: number): OpenWindow<A> | undefined {
    if (this.#last?.startMs === startMs) return this.#last
    const window = this.#windows.get(startMs)
    if (window) this.#last = window
    return window
  }

  #open(startMs: number): OpenWindow<A> {
    assert(Number.isFinite(startMs), `a window of operator "${this.operator}" starts at ${startMs}`)
    const window = { startMs: startMs + 0, table: new KeyTable<A>(this.operator), fired: false, stored: false }
    this.#windows.set(window.startMs, window)
    insertSorted(this.#waiting, window.startMs)
    this.#last = window
    return window
  }

  /** Marks a window as fired that is no longer among those that wait. */
  #fire(startMs: number): void {
    const window = this.#windows.get(startMs)
    assert(window, `window ${startMs} of operator "${this.operator}" is lost`)
    window.fired = true
    insertSorted(this.#fired, startMs)
    this.#justFired.add(startMs)
  }

  /** Forgets a window that is no longer in the sorted lists. */
  #drop(startMs: number): void {
    const window = this.#windows.get(startMs)
    assert(window, `window ${startMs} of operator "${this.operator}" is lost`)
    this.#windows.delete(startMs)
    this.#entries -= window.table.entries
    this.#touched.delete(startMs)
    this.#justFired.delete(startMs)
    if (window.stored) this.#dropped.add(startMs)
    this.#last = undefined
  }

  #change(): Change | null {
    if (this.#touched.size + this.#dropped.size + this.#justFired.size === 0) return null
    const touched = new Map<number, readonly Key[]>()
    for (const startMs of this.#touched) touched.set(startMs, this.#windows.get(startMs)?.table.touchedKeys() ?? [])
    return { dropped: new Set(this.#dropped), touched, fired: new Set(this.#justFired) }
  }

  #lined(): Lined {
    return {
      entries: this.#entries,
      change: () => this.#change(),
      table: (startMs) => this.#windows.get(startMs)?.table,
      hasFired: (startMs) => this.#windows.get(startMs)?.fired ?? false,
      groups: () => this.#windows.keys(),
    }
  }

  #restored(): Restored {
    return {
      restore: (startMs, key, value) => {
        const window = this.#find(startMs) ?? this.#open(startMs)
        window.stored = true
        const before = window.table.entries
        window.table.restore(key, value as A)
        this.#entries += window.table.entries - before
      },
      unrestore: (startMs, key) => assert(false, `key ${key} leaves window ${startMs}, which windows never do`),
      dropGroup: (startMs) => {
        if (!this.#windows.has(startMs)) return
        for (const starts of [this.#waiting, this.#fired]) removeSorted(starts, startMs)
        this.#drop(startMs)
        this.#dropped.clear()
      },
      fireGroup: (startMs) => {
        if (!removeSorted(this.#waiting, startMs)) return
        this.#fire(startMs)
        this.#justFired.clear()
      },
    }
  }
}

/**
 * The state as of a snapshot (null: empty), from its files in order. Throws `SNAPSHOT_DAMAGED`,
 * `STATE_VERSION_NEWER`, and `LINEAGE_CHANGED` when the files hold another operator's or kind's state.
 */
export function loadWindowState<A>(
  scope: StateScope,
  snapshot: Snapshot | null,
  files: readonly Buffer[],
): WindowState<A> {
  return new WindowState<A>(scope, snapshot, files)
}

/** How many of the ascending values are at most `limit`. */
function countUpTo(sorted: readonly number[], limit: number): number {
  let from = 0
  let to = sorted.length
  while (from < to) {
    const middle = (from + to) >> 1
    if (sorted[middle] <= limit) from = middle + 1
    else to = middle
  }
  return from
}

function insertSorted(sorted: number[], value: number): void {
  sorted.splice(countUpTo(sorted, value), 0, value)
}

function removeSorted(sorted: number[], value: number): boolean {
  const at = countUpTo(sorted, value) - 1
  if (sorted[at] !== value) return false
  sorted.splice(at, 1)
  return true
}
