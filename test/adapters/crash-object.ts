/**
 * The bytes of an object, known from its name alone: so every object that is there can be held to be whole.
 */
import { createHash } from 'node:crypto'

/** Some chunks, up to 300 KB together; every seventh object is empty. */
export function crashObject(name: string): Buffer[] {
  const seed = createHash('sha256').update(name).digest()
  if (seed[0]! % 7 === 0) return []
  return Array.from({ length: 1 + (seed[1]! % 3) }, (_, chunk) =>
    Buffer.alloc(seed.readUInt16LE(2) * 2, seed.subarray(chunk)),
  )
}
