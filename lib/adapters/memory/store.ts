/**
 * A store in memory, as strict as the real ones.
 *
 * For simulations and tests, with what they need beside the port: to look at, lose and damage objects. Bytes are
 * copied on the way in and out, so that nobody changes an object through a buffer that they kept. `close` keeps
 * the objects: one memory store stands for the disk that outlives the process.
 */
import { assert } from '../../model/assert.ts'
import type { Store, StoredObject } from '../../ports/store.ts'
import { assertByteRange, assertObjectName, assertObjectPrefix } from '../shared/object-names.ts'

export interface MemoryStore extends Store {
  /** Names of all objects, sorted. */
  names(): string[]
  /** Loses an object behind everybody's back. */
  drop(name: string): void
  /** Flips one bit in the middle of an object, or adds a byte to an empty one. */
  damage(name: string): void
  /** All objects as they are now; immutable, cheap. */
  snapshot(): ReadonlyMap<string, Buffer>
  /** Goes back to a snapshot, as a restored backup does. */
  restore(snapshot: ReadonlyMap<string, Buffer>): void
}

/** An empty store. */
export function memoryStore(): MemoryStore {
  let objects = new Map<string, Buffer>()
  const sortedNames = () => [...objects.keys()].sort()

  async function* list(prefix: string): AsyncIterable<StoredObject> {
    assertObjectPrefix(prefix)
    for (const name of sortedNames()) {
      if (!name.startsWith(prefix)) continue
      const object = objects.get(name)
      if (object !== undefined) yield { name, bytes: object.length }
    }
  }

  return {
    async create(name, chunks) {
      assertObjectName(name)
      if (objects.has(name)) return 'exists'
      objects.set(name, Buffer.concat(chunks))
      return 'created'
    },
    async read(name, range) {
      assertObjectName(name)
      if (range !== undefined) assertByteRange(range)
      const object = objects.get(name)
      return object === undefined ? null : Buffer.from(object.subarray(range?.start, range?.end))
    },
    list,
    async delete(names) {
      for (const name of names) assertObjectName(name)
      for (const name of names) objects.delete(name)
    },
    async close() {},
    names: sortedNames,
    drop(name) {
      assert(objects.delete(name), `no object ${name} to drop`)
    },
    damage(name) {
      const object = objects.get(name)
      assert(object !== undefined, `no object ${name} to damage`)
      const damaged = object.length === 0 ? Buffer.alloc(1) : Buffer.from(object)
      damaged[damaged.length >> 1]! ^= 1
      objects.set(name, damaged)
    },
    snapshot: () => new Map(objects),
    restore(snapshot) {
      objects = new Map(snapshot)
    },
  }
}
