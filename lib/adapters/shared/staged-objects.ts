/**
 * Staged output in the store: objects of one invocation, written once, read back with their checksum.
 *
 * By the rule of `ports/once-created.ts`; here only what sinks add to it: names, and memory that is used again.
 */
import type { ObjectRef } from '../../model/head.ts'
import type { StagedPart } from '../../model/manifest.ts'
import { createOnce, readChecked } from '../../ports/once-created.ts'
import type { StageContext } from '../../ports/sink.ts'
import type { Store } from '../../ports/store.ts'
import { giveBack } from './lent-memory.ts'

export { sha256Of } from '../../ports/once-created.ts'

/** A name below the prefix of an invocation. */
export function stagedName(context: StageContext, name: string): string {
  return context.prefix.endsWith('/') ? `${context.prefix}${name}` : `${context.prefix}/${name}`
}

/**
 * Creates an object that only this invocation can have made. Chunks that were lent are given back: the caller may not use
 * them afterwards. Throws what the store throws, after reading back.
 */
export async function createStaged(store: Store, name: string, chunks: readonly Uint8Array[]): Promise<ObjectRef> {
  const { ref, clear } = await createOnce(store, name, chunks)
  // After an answer that was lost, a request may still be on its way with them.
  if (clear) for (const chunk of chunks) giveBack(chunk)
  return ref
}

/** What was staged for a lane. */
type LaneOutput = Pick<StagedPart, 'rows' | 'bytes' | 'objects'>

/** The parts of an invocation, in the order of lanes. */
export function partsOf(lanes: ReadonlyMap<number, LaneOutput>, handle: unknown): StagedPart[] {
  return [...lanes]
    .sort(([a], [b]) => a - b)
    .map(([lane, { rows, bytes, objects }]) => ({ lane, rows, bytes, objects, handle }))
}

/** The bytes of a staged object. Throws `OBJECT_MISSING`, `OBJECT_DAMAGED`. */
export function readStaged(store: Store, ref: ObjectRef): Promise<Buffer> {
  return readChecked(store, ref, 'OBJECT_MISSING', 'OBJECT_DAMAGED')
}
