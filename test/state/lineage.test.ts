import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type AggregateState, loadAggregateState } from '../../lib/state/aggregate-state.ts'
import { commit, nothingStored, type Stored, scope } from './support.ts'

const load = (stored: Stored): AggregateState<number> => loadAggregateState(scope, stored.snapshot, stored.files)
const sorted = (state: AggregateState<unknown>) => [...state.all()].sort(([a], [b]) => Number(a) - Number(b))
const kinds = (stored: Stored) => stored.snapshot?.files.map(({ file }) => file)

function held(keys: number): { state: AggregateState<number>; stored: Stored } {
  const state = load(nothingStored)
  for (let key = 0; key < keys; key++) state.set(key, 0)
  return { state, stored: commit(state, nothingStored) }
}

describe('lineage', () => {
  it('begins with a base, adds deltas of what was touched, and adds nothing when nothing was', () => {
    const { state, stored } = held(1000)
    state.set(5, 1)
    const second = commit(state, stored)
    expect(second.snapshot?.files.map(({ file, entries }) => [file, entries])).toEqual([
      ['base', 1000],
      ['delta', 1],
    ])
    expect(state.encode(second.snapshot)).toBeNull()
    expect(load(nothingStored).encode(null)).toBeNull()
  })

  it('says the same when asked again', () => {
    const { state, stored } = held(100)
    state.set(5, 1)
    const first = state.encode(stored.snapshot)
    expect(state.encode(stored.snapshot)).toEqual(first)
  })

  it('writes what epochs touch, times a small factor, and few files, however many epochs there are', () => {
    let { state, stored } = held(20_000)
    let written = 0
    let most = 0
    for (let epoch = 0; epoch < 600; epoch++) {
      for (let i = 0; i < 10; i++) state.set((epoch * 7919 + i * 104_729) % 20_000, epoch)
      const entries = state.encode(stored.snapshot)?.entries ?? 0
      written += entries
      stored = commit(state, stored)
      most = Math.max(most, stored.files.length)
      if (epoch % 50 === 0) state = load(stored)
    }
    expect(written).toBeLessThan(600 * 10 * 5)
    expect(most).toBeLessThan(32)
    expect(sorted(load(stored))).toEqual(sorted(state))
  })

  it('puts a new base in place when a delta would carry half of what is held', () => {
    const { state, stored } = held(1000)
    for (let key = 0; key < 500; key++) state.set(key, 1)
    expect(kinds(commit(state, stored))).toEqual(['base'])
  })

  it('puts a new base in place when deltas outweigh half of it', () => {
    const { state, stored } = held(10)
    state.set(1, 1)
    const files = [...(stored.snapshot?.files ?? [])]
    const delta = { ...files[0], file: 'delta' as const }
    const parent = (base: number, bytes: number, deltas: number) => ({
      ...stored.snapshot!,
      files: [{ ...files[0], bytes: base }, ...new Array(deltas).fill({ ...delta, bytes: bytes / deltas })],
    })
    const mebibyte = 1024 * 1024
    expect(state.encode(parent(2 * mebibyte - 1, mebibyte, 4))?.file).toBe('base')
    expect(state.encode(parent(2 * mebibyte, mebibyte, 4))?.file).toBe('delta')
    expect(state.encode(parent(100, 1000, 14))?.file).toBe('delta')
    expect(state.encode(parent(100, 1000, 15))?.file).toBe('base')
    expect(state.encode(parent(2 ** 40, 1000, 64))?.file).toBe('base')
  })

  it('ends with the same state by merged deltas, by plain deltas and by one base', () => {
    const epochs = fc.array(
      fc.array(fc.tuple(fc.integer({ min: 0, max: 400 }), fc.option(fc.nat(), { freq: 3 })), { maxLength: 12 }),
      { minLength: 10, maxLength: 60, size: 'max' },
    )
    fc.assert(
      fc.property(epochs, (all) => {
        const { state, stored } = held(300)
        let merged = stored
        let plain = stored
        for (const epoch of all) {
          for (const [key, acc] of epoch) {
            if (acc === null) state.delete(key)
            else state.set(key, acc)
          }
          // A reader that ignores `keep` and only adds must see the same.
          const encoded = state.encode(merged.snapshot)
          const grown = encoded?.file === 'delta' ? plain : nothingStored
          merged = commit(state, merged)
          if (encoded !== null)
            plain = {
              snapshot: {
                ...merged.snapshot!,
                files: [...(grown.snapshot?.files ?? []), merged.snapshot!.files.at(-1)!],
              },
              files: [...grown.files, merged.files.at(-1)!],
            }
        }
        expect(sorted(load(merged))).toEqual(sorted(state))
        expect(sorted(load(plain))).toEqual(sorted(state))
        const whole = load(nothingStored)
        for (const [key, acc] of state.all()) whole.set(key, acc)
        expect(sorted(load(commit(whole, nothingStored)))).toEqual(sorted(state))
      }),
      { numRuns: 100 },
    )
  })

  it('writes a base after changes that were settled without being encoded', () => {
    const { state, stored } = held(100)
    state.set(1, 1)
    state.settle()
    state.set(2, 2)
    const after = commit(state, stored)
    expect(sorted(load(after))).toEqual(sorted(state))
    state.set(3, 3)
    expect(kinds(commit(state, after))).toEqual(['base', 'delta'])
  })
})
