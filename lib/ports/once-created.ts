/**
 * Objects that one invocation alone can have made: the rule by which every one of them is written and read.
 *
 * A name belongs to its invocation, so an object that is there already after a lost or repeated answer is ours; that is
 * compared, never assumed. Nobody trusts a byte that does not match the reference. Here, because both the steps and
 * the adapters of sinks write such objects, and neither may import the other.
 */
import { createHash } from 'node:crypto'
import { assert } from '../model/assert.ts'
import { type ErrorCode, isPawlError, PawlError } from '../model/errors.ts'
import type { ObjectRef } from '../model/head.ts'
import type { Store } from './store.ts'

const triesMax = 3

/** SHA-256 of the chunks in a row, in hex. */
export function sha256Of(chunks: readonly Uint8Array[]): string {
  const hash = createHash('sha256')
  for (const chunk of chunks) hash.update(chunk)
  return hash.digest('hex')
}

/**
 * Creates the object, reading back what an unclear answer left. `clear` is true when the first try was answered: only
 * then is no request with these chunks still on its way. Throws what the store throws; `FENCED` when the object was
 * discarded with its attempt.
 */
export async function createOnce(
  store: Store,
  name: string,
  chunks: readonly Uint8Array[],
): Promise<{ readonly ref: ObjectRef; readonly clear: boolean }> {
  const ref = { name, bytes: chunks.reduce((sum, chunk) => sum + chunk.length, 0), sha256: sha256Of(chunks) }
  for (let tries = 1; ; tries++) {
    try {
      if ((await store.create(name, chunks)) === 'created') return { ref, clear: tries === 1 }
      const found = await store.read(name)
      // It was there a moment ago: its attempt is over, and was discarded.
      if (found === null)
        throw new PawlError('FENCED', `object ${name} was discarded with its attempt`, { object: name })
      assert(sha256Of([found]) === ref.sha256, `object ${name} was written by another invocation`)
      return { ref, clear: false }
    } catch (error) {
      if (tries >= triesMax || !isPawlError(error) || error.code !== 'UNKNOWN_RESULT') throw error
    }
  }
}

/** The bytes that `ref` names. Throws `missing` or `damaged`, as the caller calls them. */
export async function readChecked(
  store: Store,
  ref: ObjectRef,
  missing: ErrorCode,
  damaged: ErrorCode,
): Promise<Buffer> {
  const bytes = await store.read(ref.name)
  if (bytes === null) throw new PawlError(missing, ref.name, { object: ref.name })
  if (bytes.length !== ref.bytes || sha256Of([bytes]) !== ref.sha256) {
    throw new PawlError(damaged, ref.name, { object: ref.name, bytes: bytes.length, bytesExpected: ref.bytes })
  }
  return bytes
}
