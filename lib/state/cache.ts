/**
 * Keeps states warm in memory between epochs.
 *
 * A cached state is trusted only if it stands at exactly the snapshot that the manifest names: same files, same
 * hashes. It is out while somebody works on it, so what an aborted attempt has changed never comes back. What is put
 * in is the state as it will stand if its epoch commits; if it does not, the next `take` names another snapshot and
 * drops it. May be lost at any time.
 */
import type { Snapshot } from '../model/manifest.ts'
import type { OperatorState } from './operator-state.ts'

/** How much a cache keeps. */
export interface StateCacheOptions {
  /** Entries of all states together; the least recently used states go first. Default 4 million. */
  readonly entriesMax?: number
}

interface Cached {
  readonly state: OperatorState
  readonly standsAt: string
}

export class StateCache {
  readonly #entriesMax: number
  /** Least recently put first. */
  readonly #cached = new Map<string, Cached>()
  #entries = 0

  constructor({ entriesMax = 4_000_000 }: StateCacheOptions = {}) {
    this.#entriesMax = entriesMax
  }

  /** How many entries the cached states hold together. */
  get entries(): number {
    return this.#entries
  }

  /**
   * The state of an operator in a range of key groups, if it stands at `snapshot` (null: empty, nothing stored yet);
   * else null. Either way it is no longer cached.
   */
  take(
    operator: string,
    keyGroups: readonly [from: number, to: number],
    snapshot: Snapshot | null,
  ): OperatorState | null {
    const name = nameOf(operator, keyGroups)
    const cached = this.#cached.get(name)
    if (cached === undefined) return null
    this.#remove(name, cached)
    return cached.standsAt === positionOf(snapshot) ? cached.state : null
  }

  /** Caches a settled state with the snapshot at which it will stand. States that do not fit are left out. */
  put(state: OperatorState, snapshot: Snapshot | null): void {
    const name = nameOf(state.operator, state.keyGroups)
    const before = this.#cached.get(name)
    if (before !== undefined) this.#remove(name, before)
    this.#cached.set(name, { state, standsAt: positionOf(snapshot) })
    this.#entries += state.entries
    for (const [other, cached] of this.#cached) {
      if (this.#entries <= this.#entriesMax) return
      this.#remove(other, cached)
    }
  }

  /** Drops everything. */
  clear(): void {
    this.#cached.clear()
    this.#entries = 0
  }

  #remove(name: string, { state }: Cached): void {
    this.#cached.delete(name)
    this.#entries -= state.entries
  }
}

function nameOf(operator: string, keyGroups: readonly [number, number]): string {
  return JSON.stringify([operator, ...keyGroups])
}

function positionOf(snapshot: Snapshot | null): string {
  return JSON.stringify(snapshot?.files.map(({ name, sha256 }) => [name, sha256]) ?? [])
}
