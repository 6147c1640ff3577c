import fc from 'fast-check'
import { expect, test } from 'vitest'
import { prng } from '../../lib/model/prng.ts'

const draw = (seed: number, count: number) => {
  const random = prng(seed)
  return Array.from({ length: count }, () => random.uint32())
}

test('draws the same numbers for the same seed, for ever', () => {
  expect(draw(1, 4)).toEqual([393288148, 3689359286, 3134224570, 1363965211])
  expect(draw(2 ** 40 + 5, 4)).toEqual([890109699, 3011647001, 1902478418, 754412518])
  expect(prng(7).id()).toBe('0c8be48bb8209500d872e661723249ec')
})

test('tells neighbouring and large seeds apart', () => {
  const seeds = [0, 1, -1, 2, 2 ** 32, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]
  expect(new Set(seeds.map((seed) => draw(seed, 2).join())).size).toBe(seeds.length)
  expect(() => prng(0.5)).toThrow('ASSERTION_FAILED')
})

test('stays within its ranges', () => {
  fc.assert(
    fc.property(fc.maxSafeInteger(), fc.integer({ min: 1, max: 2 ** 32 }), (seed, n) => {
      const random = prng(seed)
      const [next, int] = [random.next(), random.int(n)]
      expect(next >= 0 && next < 1).toBe(true)
      expect(Number.isInteger(int) && int >= 0 && int < n).toBe(true)
      expect(['a', 'b']).toContain(random.pick(['a', 'b']))
      expect(random.id()).toMatch(/^[0-9a-f]{32}$/)
      expect([random.chance(0), random.chance(1)]).toEqual([false, true])
    }),
  )
  expect(() => prng(1).int(0)).toThrow('ASSERTION_FAILED')
  expect(() => prng(1).pick([])).toThrow('ASSERTION_FAILED')
})

test('spreads evenly', () => {
  const random = prng(3)
  const counts = Array.from({ length: 10 }, () => 0)
  for (let draws = 0; draws < 100_000; draws++) counts[random.int(10)]!++
  for (const count of counts) expect(Math.abs(count - 10_000)).toBeLessThan(400)
})

test('forks parts that do not disturb each other', () => {
  const [one, two] = [prng(5), prng(5)]
  const [forkOne, forkTwo] = [one.fork(), two.fork()]
  forkOne.next()
  expect(one.uint32()).toBe(two.uint32())
  expect(forkTwo.id()).not.toBe(prng(5).id())
})
