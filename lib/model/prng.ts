/**
 * A small, fast, seeded generator of random numbers: xoshiro128**, seeded through splitmix32.
 *
 * For simulations, never for secrets or for ids that must differ between machines. The same seed gives the same
 * numbers for ever: failing seeds are kept as regressions, so a change here is a change of every kept seed.
 * Source: Blackman and Vigna, "Scrambled linear pseudorandom number generators" (2018), public domain code.
 */
import { assert } from './assert.ts'

export interface Prng {
  /** A uniform number in `[0, 1)` with 32 random bits. */
  next(): number
  /** A uniform integer in `[0, n)`; `n` is at most 2^32. */
  int(n: number): number
  /** One element of a non-empty array. */
  pick<T>(array: readonly T[]): T
  /** True with the given probability. */
  chance(probability: number): boolean
  /** 32 random bits. */
  uint32(): number
  /** 128 random bits as 32 hex digits. */
  id(): string
  /** A generator of its own, which takes one step of this one: parts draw without disturbing each other. */
  fork(): Prng
}

const rotateLeft = (x: number, k: number) => (x << k) | (x >>> (32 - k))

function splitmix32(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x9e3779b9) | 0
    let z = state ^ (state >>> 16)
    z = Math.imul(z, 0x21f0aaad)
    z ^= z >>> 15
    z = Math.imul(z, 0x735a2d97)
    return (z ^ (z >>> 15)) >>> 0
  }
}

/** A generator for a seed that is a safe integer. */
export function prng(seed: number): Prng {
  assert(Number.isSafeInteger(seed), `a seed is a safe integer, not ${seed}`)
  const low = splitmix32(seed % 0x100000000)
  const high = splitmix32(Math.floor(seed / 0x100000000) ^ 0x5bf03635)
  let [a, b, c, d] = [low(), low(), low() ^ high(), low() ^ high()]

  const uint32 = () => {
    const result = Math.imul(rotateLeft(Math.imul(b, 5), 7), 9) >>> 0
    const t = b << 9
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= t
    d = rotateLeft(d, 11)
    return result
  }
  const next = () => uint32() / 0x100000000
  const int = (n: number) => {
    assert(Number.isInteger(n) && n > 0 && n <= 0x100000000, `int(n) needs an integer in [1, 2^32], not ${n}`)
    return Math.floor(next() * n)
  }
  return {
    next,
    int,
    pick: (array) => array[int(array.length)]!,
    chance: (probability) => next() < probability,
    uint32,
    id: () => [uint32(), uint32(), uint32(), uint32()].map((word) => word.toString(16).padStart(8, '0')).join(''),
    fork: () => prng(uint32() * 0x100000 + (uint32() >>> 12)),
  }
}
