/**
 * Seal and unseal: JSON objects in the store, named with their hash.
 *
 * Reads:  one object. Writes: one object, created if absent.
 * Safe to repeat because: the name belongs to one invocation, so an object that is there already after a lost
 * reply is ours; it is compared, never assumed. See `ports/once-created.ts`.
 */
import type { ObjectRef } from '../model/head.ts'
import { createOnce, readChecked } from '../ports/once-created.ts'
import type { Store } from '../ports/store.ts'

/** The bytes that a reference names. Throws `missing` or `damaged`. */
export { readChecked as unsealBytes } from '../ports/once-created.ts'

/** Stores `value` as JSON under `name`. */
export function seal(store: Store, name: string, value: unknown): Promise<ObjectRef> {
  return sealBytes(store, name, [Buffer.from(JSON.stringify(value))])
}

/** Stores bytes under `name`, reading back what an unclear answer left. */
export async function sealBytes(store: Store, name: string, chunks: readonly Uint8Array[]): Promise<ObjectRef> {
  return (await createOnce(store, name, chunks)).ref
}

/** The JSON object that `ref` names. Throws `OBJECT_MISSING`, `MANIFEST_DAMAGED`. */
export async function unseal<T>(store: Store, ref: ObjectRef): Promise<T> {
  return JSON.parse((await readChecked(store, ref, 'OBJECT_MISSING', 'MANIFEST_DAMAGED')).toString()) as T
}
