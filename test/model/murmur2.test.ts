import { expect, test } from 'vitest'
import { murmur2, partitionOf } from '../../lib/model/murmur2.ts'

test('agrees with the values in the tests of the Java client', () => {
  const hashes = { '21': -973932308, foobar: -790332482, 'a-little-bit-long-string': -985981536, abc: 479470107 }
  for (const [key, hash] of Object.entries(hashes)) expect(murmur2(Buffer.from(key))).toBe(hash)
})

test('hashes the given bytes only', () => {
  expect(murmur2(Buffer.from('__foobar__'), 2, 8)).toBe(-790332482)
})

test.each([
  ['case 41: a key goes where the Java client sends it', '100:48069', 12, 9],
  ['case 42: the sign bit is masked, not shifted away', 'TT0124', 15, 10],
  ['case 43: a UUID goes where the Java client sends it', 'fd7af248-ce5c-46a5-93d7-1c0c9005b99d', 32, 26],
  ['case 43: a short key goes where the Java client sends it', 'wu', 10, 0],
])('%s', (_name, key, partitions, partition) => {
  expect(partitionOf(Buffer.from(key), partitions)).toBe(partition)
})
