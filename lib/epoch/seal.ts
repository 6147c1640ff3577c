/**
 * Seal and unseal: JSON objects in the store, named with their hash.
 *
 * Reads:  one object. Writes: one object, created if absent.
 * Safe to repeat because: the name belongs to one invocation, so an object that is there already after a lost
 * reply is ours; it is compared, never assumed.
 */
import { createHash } from 'node:crypto'
import { assert } from '../model/assert.ts'
import { type ErrorCode, isPawlError, PawlError } from '../model/errors.ts'
import type { ObjectRef } from '../model/head.ts'
import type { Store } from '../ports/store.ts'

/** SHA-256 of the chunks in a row, in hex. */
export function sha256(chunks: readonly Uint8Array[]): string {
  const hash = createHash('sha256')
  for (const chunk of chunks) hash.update(chunk)
  return hash.digest('hex')
}

/** Stores `value` as JSON under `name`. */
export function seal(store: Store, name: string, value: unknown): Promise<ObjectRef> {
  return sealBytes(store, name, [Buffer.from(JSON.stringify(value))])
}

/** Stores bytes under `name`, reading back what an unclear answer left. */
export async function sealBytes(store: Store, name: string, chunks: readonly Uint8Array[]): Promise<ObjectRef> {
  const ref = { name, bytes: chunks.reduce((sum, chunk) => sum + chunk.length, 0), sha256: sha256(chunks) }
  for (let tries = 1; ; tries++) {
    try {
      if ((await store.create(name, chunks)) === 'created') return ref
      const found = await store.read(name)
      // It was there a moment ago: its attempt is over, and was discarded.
      if (found === null)
        throw new PawlError('FENCED', `object ${name} was discarded with its attempt`, { object: name })
      assert(sha256([found]) === ref.sha256, `object ${name} was written by another invocation`)
      return ref
    } catch (error) {
      if (tries >= 3 || !isPawlError(error) || error.code !== 'UNKNOWN_RESULT') throw error
    }
  }
}

/** The bytes that `ref` names. Throws `missing` or `damaged`. */
export async function unsealBytes(
  store: Store,
  ref: ObjectRef,
  missing: ErrorCode,
  damaged: ErrorCode,
): Promise<Buffer> {
  const bytes = await store.read(ref.name)
  if (bytes === null) throw new PawlError(missing, ref.name, { object: ref.name })
  if (bytes.length !== ref.bytes || sha256([bytes]) !== ref.sha256) {
    throw new PawlError(damaged, ref.name, { object: ref.name, bytes: bytes.length, expectedBytes: ref.bytes })
  }
  return bytes
}

/** The JSON object that `ref` names. Throws `OBJECT_MISSING`, `MANIFEST_DAMAGED`. */
export async function unseal<T>(store: Store, ref: ObjectRef): Promise<T> {
  return JSON.parse((await unsealBytes(store, ref, 'OBJECT_MISSING', 'MANIFEST_DAMAGED')).toString()) as T
}
