/**
 * Which lane of a sink a row takes: by its key, or by its source partition when it has none.
 *
 * All sinks choose alike, so that the rows of one key stay in order in one lane. The choice must never change for
 * a lane count: rows of a key that waits in one lane would be overtaken in another. Murmur2 as in Kafka's
 * default partitioner, sign bit masked.
 */
import { murmur2 } from '../../model/murmur2.ts'

let scratch = Buffer.allocUnsafe(256)

/** The lane, from 0, of a row with this encoded key (null: none) from this source partition. */
export function laneOf(key: string | Uint8Array | null, partition: number, lanes: number): number {
  if (lanes === 1) return 0
  if (key === null) return partition % lanes
  return (hashOf(key) & 0x7fffffff) % lanes
}

function hashOf(key: string | Uint8Array): number {
  if (typeof key !== 'string') return murmur2(key)
  if (key.length * 3 > scratch.length) scratch = Buffer.allocUnsafe(key.length * 3)
  return murmur2(scratch, 0, scratch.write(key))
}
