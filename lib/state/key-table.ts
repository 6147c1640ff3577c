/**
 * A table from key to accumulator that knows what was touched since the last commit.
 *
 * Accumulators lie in a dense array by slot, so that counts and sums stay unboxed numbers; the map holds only slot
 * numbers. `get` then `set` of one key, the pattern of every aggregation, costs one hash lookup, and marking a key as
 * touched is one byte. Long keys are copied once, when they come: a slice would keep its whole line alive. A deleted key keeps its slot until `settle`, because its deletion has yet to be stored.
 */
import { PawlError } from '../model/errors.ts'
import type { Key } from './key-groups.ts'

const live = 1
const dirty = 2

/** The most keys that a `Map` of V8 takes. */
const keysMaxOfMap = 2 ** 24

/** Length of the shortest string that V8 makes a slice of another. */
const sliceLength = 13

export class KeyTable<A> {
  readonly #operator: string
  readonly #keysMax: number
  readonly #slots = new Map<Key, number>()
  readonly #keys: Key[] = []
  readonly #accs: A[] = []
  readonly #free: number[] = []
  #flags = new Uint8Array(64)
  #touched: number[] = []
  #dead = 0
  #lastKey: Key | undefined
  #lastSlot = -1

  /** `operator` is named in errors. */
  constructor(operator: string, keysMax = keysMaxOfMap) {
    this.#operator = operator
    this.#keysMax = keysMax
  }

  /** How many keys it holds. */
  get entries(): number {
    return this.#slots.size - this.#dead
  }

  /** How many keys were touched since `settle`, deleted ones too. */
  get touchedCount(): number {
    return this.#touched.length
  }

  /** The keys touched since `settle`, deleted ones too, in first-touch order. */
  touchedKeys(): Key[] {
    return this.#touched.map((slot) => this.#keys[slot])
  }

  get(key: Key): A | undefined {
    const slot = this.#slotOf(key)
    return slot < 0 || !(this.#flags[slot] & live) ? undefined : this.#accs[slot]
  }

  has(key: Key): boolean {
    const slot = this.#slotOf(key)
    return slot >= 0 && (this.#flags[slot] & live) !== 0
  }

  /** Throws `ENCODE_FAILED` for NaN and `STATE_TOO_LARGE` when no more keys fit. */
  set(key: Key, acc: A): void {
    let slot = this.#slotOf(key)
    if (slot < 0) slot = this.#add(key, acc)
    else {
      this.#accs[slot] = acc
      if (!(this.#flags[slot] & live)) {
        this.#flags[slot] |= live
        this.#dead--
      }
    }
    if (!(this.#flags[slot] & dirty)) this.#touch(slot)
  }

  delete(key: Key): boolean {
    const slot = this.#slotOf(key)
    if (slot < 0 || !(this.#flags[slot] & live)) return false
    this.#flags[slot] &= ~live
    this.#dead++
    this.#clear(slot)
    if (!(this.#flags[slot] & dirty)) this.#touch(slot)
    return true
  }

  /** Sets a key as it was stored: without touching it. */
  restore(key: Key, acc: A): void {
    const slot = this.#slotOf(key)
    if (slot < 0) this.#add(key, acc)
    else this.#accs[slot] = acc
  }

  /** Deletes a key as it was stored. */
  unrestore(key: Key): void {
    const slot = this.#slotOf(key)
    if (slot >= 0) this.#release(slot)
  }

  /** What was touched and is still there, in first-touch order. */
  *touched(): Generator<readonly [key: Key, acc: A]> {
    for (const slot of this.#touched) if (this.#flags[slot] & live) yield [this.#keys[slot], this.#accs[slot]]
  }

  /** Everything, in the order in which the keys came. */
  *all(): Generator<readonly [key: Key, acc: A]> {
    for (const [key, slot] of this.#slots) if (this.#flags[slot] & live) yield [key, this.#accs[slot]]
  }

  /** Forgets what was touched. Takes as long as there are touched keys. */
  settle(): void {
    for (const slot of this.#touched) {
      if (this.#flags[slot] & live) this.#flags[slot] = live
      else {
        this.#release(slot)
        this.#dead--
      }
    }
    this.#touched = []
  }

  #slotOf(key: Key): number {
    if (key === this.#lastKey) return this.#lastSlot
    this.#lastKey = key
    this.#lastSlot = this.#slots.get(key) ?? -1
    return this.#lastSlot
  }

  #add(key: Key, acc: A): number {
    this.#refuse(key)
    const slot = this.#free.pop() ?? this.#accs.length
    const own = ownKey(key)
    this.#keys[slot] = own
    this.#accs[slot] = acc
    if (slot === this.#flags.length) this.#grow()
    this.#flags[slot] = live
    this.#slots.set(own, slot)
    this.#lastKey = own
    this.#lastSlot = slot
    return slot
  }

  #refuse(key: Key): void {
    const operator = this.#operator
    if (Number.isNaN(key)) throw new PawlError('ENCODE_FAILED', `NaN as a key of operator "${operator}"`, { operator })
    if (this.#slots.size < this.#keysMax) return
    throw new PawlError('STATE_TOO_LARGE', `operator "${operator}" has ${this.#keysMax} keys`, { operator })
  }

  #touch(slot: number): void {
    this.#flags[slot] |= dirty
    this.#touched.push(slot)
  }

  #release(slot: number): void {
    this.#slots.delete(this.#keys[slot])
    this.#keys[slot] = 0
    this.#flags[slot] = 0
    this.#clear(slot)
    this.#free.push(slot)
    this.#lastKey = undefined
    this.#lastSlot = -1
  }

  /** Lets go of an accumulator; a number stays, since anything else would box all numbers of the array. */
  #clear(slot: number): void {
    if (typeof this.#accs[slot] !== 'number') this.#accs[slot] = undefined as A
  }

  #grow(): void {
    const flags = new Uint8Array(this.#flags.length * 2)
    flags.set(this.#flags)
    this.#flags = flags
  }
}

/** The key as it is kept: long strings copied, −0 as 0. */
function ownKey(key: Key): Key {
  if (typeof key === 'number') return key + 0
  return key.length < sliceLength ? key : JSON.parse(JSON.stringify(key))
}
