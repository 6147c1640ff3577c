/**
 * The state tables of one operator in one task: one for each shard that the task owns.
 *
 * A fused task owns all shards, any other owns one; with one table nothing is hashed.
 */
import { assert } from '../../model/assert.ts'
import { type Key, shardOf, shardRange } from '../../state/key-groups.ts'
import type { OperatorState } from '../../state/operator-state.ts'

/** State tables by key. */
export class ShardedStates<S extends OperatorState> {
  readonly tables: readonly S[]
  readonly #keyGroups: number

  /** `states` are those of one operator, in shard order; of one shard, or of all. */
  constructor(operator: string, states: readonly S[], keyGroups: number, owned: number) {
    assert(states.length === owned, `${operator} has ${states.length} state tables for ${owned} shards`)
    for (const [
      shard,
      {
        keyGroups: [from],
      },
    ] of states.entries())
      assert(owned === 1 || from === shardRange(shard, owned, keyGroups)[0], `${operator} has its state out of order`)
    this.tables = states
    this.#keyGroups = keyGroups
  }

  /** The table that holds `key`. */
  of(key: Key): S {
    return this.tables.length === 1 ? this.tables[0] : this.tables[this.#shard(key)]
  }

  /** Entries by table, in the order of the tables and within each in the order given. */
  split<V>(entries: Iterable<readonly [Key, V]>): readonly (readonly [S, Iterable<readonly [Key, V]>])[] {
    if (this.tables.length === 1) return [[this.tables[0], entries]]
    const parts = this.tables.map(() => [] as (readonly [Key, V])[])
    for (const entry of entries) parts[this.#shard(entry[0])].push(entry)
    return this.tables.map((table, shard) => [table, parts[shard]])
  }

  #shard(key: Key): number {
    return shardOf(key, this.tables.length, this.#keyGroups)
  }
}
