/**
 * Key groups: which part of the state a key belongs to.
 *
 * Every key falls into one of a fixed number of key groups for the pipeline's life; a shard owns a contiguous range
 * of them, so that rescaling hands files over instead of moving keys. The hash below therefore never changes: state
 * written years ago must be found. Golden values in the tests hold it.
 *
 * Hash, version 1: FNV-1a (32 bit, offset basis 2166136261, prime 16777619) over the UTF-16 code units of a string,
 * one round a unit; over the low, then the high 32 bits of the IEEE 754 double of a number (−0 counts as 0); finished
 * with the 32-bit finalizer of MurmurHash3 (Appleby, public domain). Group = hash mod key groups.
 */
import { assert } from '../model/assert.ts'
import { PawlError } from '../model/errors.ts'

/**
 * What keyed state is kept by. The type counts: `'1'` and `1` are two keys. −0 is 0; ±Infinity are keys like any
 * other; NaN is refused, as it is what a failed conversion gives.
 */
export type Key = string | number

const prime = 0x01000193
const double = new DataView(new ArrayBuffer(8))

/** Hash of a key, as an unsigned 32-bit number. Throws `ENCODE_FAILED` for NaN. */
export function keyHash(key: Key): number {
  let hash = 0x811c9dc5
  if (typeof key === 'string') {
    for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), prime)
  } else {
    if (Number.isNaN(key)) throw new PawlError('ENCODE_FAILED', 'NaN cannot be a key', { key: 'NaN' })
    double.setFloat64(0, key + 0, true)
    hash = Math.imul(hash ^ double.getInt32(0, true), prime)
    hash = Math.imul(hash ^ double.getInt32(4, true), prime)
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

/** The key group of a key, in `[0, keyGroups)`. Throws `ENCODE_FAILED` for NaN. */
export function keyGroupOf(key: Key, keyGroups: number): number {
  return keyHash(key) % keyGroups
}

/** The key groups `[from, to)` of a shard. The ranges of all shards partition `[0, keyGroups)`, none is empty. */
export function shardRange(shard: number, shards: number, keyGroups: number): readonly [from: number, to: number] {
  assert(shards >= 1 && shards <= keyGroups, `${shards} shards do not fit ${keyGroups} key groups`)
  assert(shard >= 0 && shard < shards, `shard ${shard} of ${shards}`)
  return [Math.ceil((shard * keyGroups) / shards), Math.ceil(((shard + 1) * keyGroups) / shards)]
}

/** The shard that owns a key: the one whose range holds its key group. Throws `ENCODE_FAILED` for NaN. */
export function shardOf(key: Key, shards: number, keyGroups: number): number {
  return Math.floor((keyGroupOf(key, keyGroups) * shards) / keyGroups)
}
