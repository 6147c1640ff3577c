import { describe, expect, it } from 'vitest'
import { giveBack, lend } from '../../../lib/adapters/shared/lent-memory.ts'

const large = 300 * 1024

describe('lent memory', () => {
  it('is of the length that was asked for', () => {
    for (const bytes of [0, 1, 64 * 1024, large, 5_000_001]) expect(lend(bytes).length).toBe(bytes)
  })

  it('is nobody else’s until it is given back, and then used again', () => {
    const first = lend(large)
    const second = lend(large)
    expect(second.buffer).not.toBe(first.buffer)
    giveBack(first)
    expect(lend(large - 1).buffer).toBe(first.buffer)
    expect(lend(large).buffer).not.toBe(first.buffer)
  })

  it('comes back once, by whichever view', () => {
    const one = lend(large)
    giveBack(one.subarray(10, 20))
    giveBack(one)
    const [a, b] = [lend(large), lend(large)]
    expect(a.buffer).not.toBe(b.buffer)
  })

  it('takes back nothing that was not lent', () => {
    const foreign = Buffer.alloc(large)
    giveBack(foreign)
    giveBack(Buffer.from('small and from the pool of Node'))
    expect(lend(large).buffer).not.toBe(foreign.buffer)
  })

  it('does not give much more than was asked for', () => {
    giveBack(lend(8_000_000))
    expect(lend(large).buffer.byteLength).toBeLessThan(2 * large + 256 * 1024)
  })

  it('keeps no more than a bounded rest', () => {
    const held = Array.from({ length: 20 }, () => lend(4_000_000))
    for (const one of held) giveBack(one)
    const known = new Set(held.map(({ buffer }) => buffer))
    const again = Array.from({ length: 20 }, () => lend(4_000_000))
    expect(again.filter(({ buffer }) => known.has(buffer)).length).toBeLessThanOrEqual(4)
  })
})
