/**
 * One accumulator a key: the state of `aggregate`, `reduce` and `count`.
 *
 * Held in memory whole; what an epoch costs follows the keys that it touches.
 */
import type { Snapshot } from '../model/manifest.ts'
import type { Key } from './key-groups.ts'
import { KeyTable } from './key-table.ts'
import { Lineage, type Lined, type StateScope } from './lineage.ts'
import type { EncodedSnapshot, OperatorState } from './operator-state.ts'
import { loadSnapshot } from './snapshot-load.ts'

export type { StateScope } from './lineage.ts'

/** Its state kind, as it stands in manifests. */
export const aggregateStateKind = 'aggregate'

/** The only group of a state without windows. */
const only = 0

export class AggregateState<A> implements OperatorState {
  readonly operator: string
  readonly stateKind = aggregateStateKind
  readonly stateVersion: number
  readonly keyGroups: readonly [from: number, to: number]
  readonly #table: KeyTable<A>
  readonly #lineage: Lineage
  readonly #lined: Lined

  /** Made by `loadAggregateState`. */
  constructor(scope: StateScope, table: KeyTable<A>, lineage: Lineage) {
    this.operator = scope.operator
    this.stateVersion = scope.stateVersion
    this.keyGroups = scope.keyGroups
    this.#table = table
    this.#lineage = lineage
    this.#lined = linedTable(table)
  }

  /** How many keys it holds. */
  get entries(): number {
    return this.#table.entries
  }

  /** The accumulator of a key; undefined when there is none. Whoever changes it in place calls `set` afterwards. */
  get(key: Key): A | undefined {
    return this.#table.get(key)
  }

  /** Sets the accumulator of a key and marks it as touched. Throws `ENCODE_FAILED` for NaN, `STATE_TOO_LARGE`. */
  set(key: Key, acc: A): void {
    this.#table.set(key, acc)
  }

  /** Forgets a key; says whether there was one. */
  delete(key: Key): boolean {
    return this.#table.delete(key)
  }

  /** What was touched since the last commit and is still there, in first-touch order. */
  touched(): Iterable<readonly [key: Key, acc: A]> {
    return this.#table.touched()
  }

  /** Everything that it holds. */
  all(): Iterable<readonly [key: Key, acc: A]> {
    return this.#table.all()
  }

  encode(parent: Snapshot | null): EncodedSnapshot | null {
    return this.#lineage.encode(parent, this.#lined)
  }

  settle(): void {
    this.#lineage.settle(this.#table.touchedCount > 0)
    this.#table.settle()
  }
}

function linedTable(table: KeyTable<unknown>): Lined {
  const none: ReadonlySet<number> = new Set()
  return {
    get entries() {
      return table.entries
    },
    change: () =>
      table.touchedCount === 0 ? null : { dropped: none, touched: new Map([[only, table.touchedKeys()]]), fired: none },
    table: (group) => (group === only ? table : undefined),
    hasFired: () => false,
    groups: () => [only],
  }
}

/**
 * The state as of a snapshot (null: empty), from its files in order. Throws `SNAPSHOT_DAMAGED`,
 * `STATE_VERSION_NEWER`, and `LINEAGE_CHANGED` when the files hold another operator's or kind's state.
 */
export function loadAggregateState<A>(
  scope: StateScope,
  snapshot: Snapshot | null,
  files: readonly Buffer[],
): AggregateState<A> {
  const table = new KeyTable<A>(scope.operator)
  const deltas = loadSnapshot(scope, aggregateStateKind, snapshot, files, {
    restore: (_group, key, value) => table.restore(key, value as A),
    unrestore: (_group, key) => table.unrestore(key),
    dropGroup: () => {},
    fireGroup: () => {},
  })
  return new AggregateState(scope, table, new Lineage(scope, aggregateStateKind, deltas))
}
