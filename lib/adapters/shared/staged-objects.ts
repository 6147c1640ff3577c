/**
 * Staged output in the store: objects of one invocation, written once, read back with their checksum.
 *
 * The name belongs to the invocation alone, so an object that is there already after a lost or repeated answer is
 * ours; that is compared, never assumed. Promotion trusts no byte that does not match the manifest.
 */
import { createHash } from 'node:crypto'
import { assert } from '../../model/assert.ts'
import { isPawlError, PawlError } from '../../model/errors.ts'
import type { ObjectRef } from '../../model/head.ts'
import type { StageContext } from '../../ports/sink.ts'
import type { Store } from '../../ports/store.ts'
import { giveBack } from './lent-memory.ts'

const triesMax = 3

/** SHA-256 in hex. */
export function sha256Of(chunks: readonly Uint8Array[]): string {
  const hash = createHash('sha256')
  for (const chunk of chunks) hash.update(chunk)
  return hash.digest('hex')
}

/** A name below the prefix of an invocation. */
export function stagedName(context: StageContext, name: string): string {
  return context.prefix.endsWith('/') ? `${context.prefix}${name}` : `${context.prefix}/${name}`
}

/**
 * Creates an object that only this invocation can have made. Chunks that were lent are given back: the caller may not use
 * them afterwards. Throws what the store throws, after reading back.
 */
export async function createStaged(store: Store, name: string, chunks: readonly Uint8Array[]): Promise<ObjectRef> {
  const bytes = chunks.reduce((sum, chunk) => sum + chunk.length, 0)
  const ref = { name, bytes, sha256: sha256Of(chunks) }
  for (let tries = 1; ; tries++) {
    try {
      if ((await store.create(name, chunks)) === 'created') {
        // After an answer that was lost, a request may still be on its way with them.
        if (tries === 1) for (const chunk of chunks) giveBack(chunk)
        return ref
      }
      const found = await store.read(name)
      // It was there a moment ago: its attempt is over, and was discarded.
      if (found === null)
        throw new PawlError('FENCED', `object ${name} was discarded with its attempt`, { object: name })
      assert(sha256Of([found]) === ref.sha256, `object ${name} was written by another invocation`)
      return ref
    } catch (error) {
      if (tries >= triesMax || !isPawlError(error) || error.code !== 'UNKNOWN_RESULT') throw error
    }
  }
}

/** The bytes of a staged object. Throws `OBJECT_MISSING`, `OBJECT_DAMAGED`. */
export async function readStaged(store: Store, ref: ObjectRef): Promise<Buffer> {
  const bytes = await store.read(ref.name)
  if (bytes === null) throw new PawlError('OBJECT_MISSING', ref.name, { object: ref.name })
  if (bytes.length !== ref.bytes || sha256Of([bytes]) !== ref.sha256) {
    const details = { object: ref.name, bytes: bytes.length, bytesExpected: ref.bytes }
    throw new PawlError('OBJECT_DAMAGED', ref.name, details)
  }
  return bytes
}
