import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Key } from '../../lib/state/key-groups.ts'
import { loadWindowState, type WindowState } from '../../lib/state/window-state.ts'
import { commit, nothingStored, type Stored, scope } from './support.ts'

const load = (stored: Stored): WindowState<number> => loadWindowState(scope, stored.snapshot, stored.files)
const sizeMs = 10

/** The plain model: windows as arrays of pairs, nothing clever. */
interface Model {
  readonly windows: Map<number, { keys: Map<Key, number>; fired: boolean; touched: Set<Key> }>
}

function modelDue({ windows }: Model, watermarkMs: number): [number, Key, number][] {
  const rows: [number, Key, number][] = []
  for (const [startMs, window] of [...windows].sort(([a], [b]) => a - b)) {
    const fires = !window.fired && startMs + sizeMs - 1 <= watermarkMs
    for (const [key, acc] of window.keys) if (fires) rows.push([startMs, key, acc])
    if (window.fired) for (const key of window.touched) rows.push([startMs, key, window.keys.get(key) ?? Number.NaN])
    if (fires) window.fired = true
  }
  return rows
}

const add = fc.tuple(
  fc.constant('add' as const),
  fc.integer({ min: -3, max: 12 }),
  fc.oneof(fc.integer({ min: 0, max: 9 }), fc.constantFrom('a', '1', 'x'.repeat(20))),
  fc.integer({ min: 1, max: 9 }),
)
const epochEnd = fc.tuple(
  fc.constant('end' as const),
  fc.integer({ min: 0, max: 25 }),
  fc.constantFrom('commit' as const, 'abandon' as const),
  fc.constantFrom('stay warm' as const, 'load' as const),
)

/** Keys of a window far away, without which every snapshot would be a base. */
const ballast = 100

function withBallast(): WindowState<number> {
  const state = load(nothingStored)
  for (let key = 0; key < ballast; key++) state.set(1e9, key, 0)
  return state
}

describe('window state', () => {
  it('case 47: equals a plain model in content and order, with and without restores in between', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof({ weight: 3, arbitrary: add }, epochEnd), { maxLength: 150, size: 'max' }),
        fc.constantFrom(0, 7, 40),
        (steps, latenessMs) => {
          let stored = commit(withBallast(), nothingStored)
          let state = load(stored)
          let model: Model = { windows: new Map() }
          let committed = structuredClone(model)
          let watermarkMs = -40
          for (const step of steps) {
            if (step[0] === 'add') {
              const startMs = step[1] * sizeMs
              if (startMs + sizeMs - 1 + latenessMs <= watermarkMs) continue
              state.set(startMs, step[2], (state.get(startMs, step[2]) ?? 0) + step[3])
              const window = model.windows.get(startMs) ?? { keys: new Map(), fired: false, touched: new Set() }
              model.windows.set(startMs, window)
              window.keys.set(step[2], (window.keys.get(step[2]) ?? 0) + step[3])
              window.touched.add(step[2])
              continue
            }
            const nextMs = watermarkMs + step[1]
            expect([...state.due(nextMs, sizeMs)]).toEqual(modelDue(model, nextMs))
            const ended = [...model.windows.keys()].filter((startMs) => startMs + sizeMs - 1 + latenessMs <= nextMs)
            for (const startMs of ended) model.windows.delete(startMs)
            expect(state.expire(nextMs, sizeMs, latenessMs)).toBe(ended.length)
            if (step[2] === 'commit') {
              stored = commit(state, stored)
              watermarkMs = nextMs
              for (const window of model.windows.values()) window.touched.clear()
              committed = structuredClone(model)
              if (step[3] === 'load') state = load(stored)
            } else {
              state = load(stored)
              model = structuredClone(committed)
            }
            let entries = ballast
            for (const window of model.windows.values()) entries += window.keys.size
            expect(state.entries).toBe(entries)
            expect(stored.files.length).toBeLessThan(64)
          }
        },
      ),
      { numRuns: 300 },
    )
  })

  it('records the end of a window as one entry, however many keys it had', () => {
    const state = load(nothingStored)
    for (let key = 0; key < 1000; key++) state.set(0, key, 1)
    for (let key = 0; key < 5000; key++) state.set(10, key, 1)
    const first = commit(state, nothingStored)
    expect([...state.due(9, sizeMs)]).toHaveLength(1000)
    expect(state.expire(9, sizeMs, 0)).toBe(1)
    const second = commit(state, first)
    expect(second.snapshot?.files.map(({ file, entries }) => [file, entries])).toEqual([
      ['base', 6000],
      ['delta', 1],
    ])
    expect(load(second).entries).toBe(5000)
  })

  it('writes nothing of a window that opens, fires and ends within one epoch', () => {
    const state = load(nothingStored)
    state.set(0, 'a', 1)
    expect([...state.due(9, sizeMs)]).toEqual([[0, 'a', 1]])
    state.expire(9, sizeMs, 0)
    expect(state.encode(null)).toBeNull()
  })

  it('does not fire a window again after a restore', () => {
    const state = load(nothingStored)
    state.set(0, 'a', 1)
    expect([...state.due(9, sizeMs)]).toHaveLength(1)
    expect(state.expire(9, sizeMs, 100)).toBe(0)
    const restored = load(commit(state, nothingStored))
    expect([...restored.due(50, sizeMs)]).toEqual([])
    restored.set(0, 'a', 2)
    expect([...restored.due(50, sizeMs)]).toEqual([[0, 'a', 2]])
  })

  it('keeps a window that opens again apart from the one that ended, in merged deltas too', () => {
    const state = withBallast()
    let stored = commit(state, nothingStored)
    let merges = 0
    for (let epoch = 0; epoch < 40; epoch++) {
      const fires = epoch % 4 === 2
      const ends = epoch % 4 === 3
      if (fires) expect([...state.due(9, sizeMs)]).toHaveLength(2)
      else if (ends) expect(state.expire(9, sizeMs, 0)).toBe(1)
      else state.set(0, `key-${epoch}`, epoch)
      const filesBefore = stored.files.length
      stored = commit(state, stored)
      if (stored.files.length < filesBefore) merges++
      expect([...load(stored).all()]).toEqual([...state.all()])
      const waiting = [...state.all()].filter(([startMs]) => startMs === 0 && !fires)
      expect([...load(stored).due(9, sizeMs)]).toEqual(waiting)
    }
    expect(merges).toBeGreaterThan(2)
  })

  it('refuses to drop a window that never fired', () => {
    const state = load(nothingStored)
    state.set(0, 'a', 1)
    expect(() => state.expire(9, sizeMs, 0)).toThrow('expires windows that never fired')
  })
})
