import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Key, keyGroupOf, keyHash, shardOf, shardRange } from '../../lib/state/key-groups.ts'

/** Computed by another program from the description of the hash; may never change. */
const golden: readonly (readonly [Key, number])[] = [
  ['', 2872998923],
  ['a', 444641715],
  ['1', 1428125071],
  ['wu', 2058894615],
  ['fd7af248-ce5c-46a5-93d7-1c0c9005b99d', 1506660872],
  ['größe', 2538389087],
  ['\u{1F600}', 1787143206],
  ['\ud800', 1463727854],
  [1, 1074558254],
  [0, 414626237],
  [-0, 414626237],
  [-1, 4070397171],
  [1.5, 1980975724],
  [2 ** 53, 1886630440],
  [Infinity, 485208943],
]

const cluster = fc
  .integer({ min: 1, max: 300 })
  .chain((keyGroups) => fc.tuple(fc.constant(keyGroups), fc.integer({ min: 1, max: keyGroups })))

describe('key groups', () => {
  it.each(golden)('hashes %j to %i for ever', (key, hash) => {
    expect(keyHash(key)).toBe(hash)
    expect(keyGroupOf(key, 128)).toBe(hash % 128)
  })

  it('refuses NaN', () => {
    expect(() => keyGroupOf(Number.NaN, 128)).toThrow('ENCODE_FAILED')
  })

  it('spreads similar keys evenly', () => {
    const counts = new Array<number>(128).fill(0)
    for (let i = 0; i < 128_000; i++) counts[keyGroupOf(`key-${i}`, 128)]++
    expect(Math.min(...counts)).toBeGreaterThan(800)
    expect(Math.max(...counts)).toBeLessThan(1200)
  })

  it('are partitioned by the ranges of any number of shards, none of which is empty', () => {
    fc.assert(
      fc.property(cluster, ([keyGroups, shards]) => {
        let next = 0
        for (let shard = 0; shard < shards; shard++) {
          const [from, to] = shardRange(shard, shards, keyGroups)
          expect(from).toBe(next)
          expect(to).toBeGreaterThan(from)
          next = to
        }
        expect(next).toBe(keyGroups)
      }),
    )
  })

  it('give every key to the shard whose range holds its group', () => {
    fc.assert(
      fc.property(cluster, fc.oneof(fc.string({ unit: 'binary' }), fc.integer()), ([keyGroups, shards], key) => {
        const [from, to] = shardRange(shardOf(key, shards, keyGroups), shards, keyGroups)
        expect(keyGroupOf(key, keyGroups)).toBeGreaterThanOrEqual(from)
        expect(keyGroupOf(key, keyGroups)).toBeLessThan(to)
      }),
    )
  })

  it('refuse more shards than there are groups', () => {
    expect(() => shardRange(0, 129, 128)).toThrow('129 shards do not fit 128 key groups')
    expect(() => shardRange(4, 4, 128)).toThrow('shard 4 of 4')
  })
})
