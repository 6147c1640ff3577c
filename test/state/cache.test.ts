import { describe, expect, it } from 'vitest'
import type { Snapshot } from '../../lib/model/manifest.ts'
import { loadAggregateState } from '../../lib/state/aggregate-state.ts'
import { StateCache } from '../../lib/state/cache.ts'
import { commit, nothingStored, scope } from './support.ts'

const range = scope.keyGroups

function stateOf(keys: number, operator = 'count', keyGroups = range) {
  const state = loadAggregateState<number>({ ...scope, operator, keyGroups }, null, [])
  for (let key = 0; key < keys; key++) state.set(key, 1)
  return { state, snapshot: commit(state, nothingStored).snapshot as Snapshot }
}

describe('state cache', () => {
  it('gives a state out once, if it stands at exactly the snapshot', () => {
    const cache = new StateCache()
    const { state, snapshot } = stateOf(3)
    cache.put(state, snapshot)
    expect(cache.take('count', range, structuredClone(snapshot))).toBe(state)
    expect(cache.take('count', range, snapshot)).toBeNull()
    expect(cache.entries).toBe(0)
  })

  it('drops a state whose epoch did not commit', () => {
    const cache = new StateCache()
    const { state, snapshot } = stateOf(3)
    cache.put(state, snapshot)
    expect(cache.take('count', range, null)).toBeNull()
    expect(cache.take('count', range, snapshot)).toBeNull()
  })

  it.each([
    ['name', { name: 'other' }],
    ['hash', { sha256: 'other' }],
  ])('does not trust a file with another %s', (_, other) => {
    const cache = new StateCache()
    const { state, snapshot } = stateOf(3)
    cache.put(state, snapshot)
    expect(cache.take('count', range, { ...snapshot, files: [{ ...snapshot.files[0], ...other }] })).toBeNull()
  })

  it('does not trust a longer or shorter list of files', () => {
    const cache = new StateCache()
    const { state, snapshot } = stateOf(3)
    cache.put(state, snapshot)
    const longer = { ...snapshot, files: [...snapshot.files, ...snapshot.files] }
    expect(cache.take('count', range, longer)).toBeNull()
    cache.put(state, longer)
    expect(cache.take('count', range, snapshot)).toBeNull()
  })

  it('keeps operators and ranges of key groups apart', () => {
    const cache = new StateCache()
    const one = stateOf(1, 'one')
    const half = stateOf(1, 'one', [0, 64])
    cache.put(one.state, one.snapshot)
    cache.put(half.state, half.snapshot)
    expect(cache.take('two', range, one.snapshot)).toBeNull()
    expect(cache.take('one', [64, 128], half.snapshot)).toBeNull()
    expect(cache.take('one', [0, 64], half.snapshot)).toBe(half.state)
    expect(cache.take('one', range, one.snapshot)).toBe(one.state)
  })

  it('takes an empty state that nothing was ever stored of', () => {
    const cache = new StateCache()
    const state = loadAggregateState<number>(scope, null, [])
    cache.put(state, { operator: 'count', stateVersion: 1, stateKind: 'aggregate', keyGroups: range, files: [] })
    expect(cache.take('count', range, null)).toBe(state)
  })

  it('lets the oldest states go when they hold too many entries', () => {
    const cache = new StateCache({ entriesMax: 10 })
    const states = ['a', 'b', 'c'].map((operator) => stateOf(4, operator))
    for (const { state, snapshot } of states) cache.put(state, snapshot)
    expect(cache.entries).toBe(8)
    expect(cache.take('a', range, states[0].snapshot)).toBeNull()
    expect(cache.take('b', range, states[1].snapshot)).toBe(states[1].state)
    const large = stateOf(11, 'large')
    cache.put(large.state, large.snapshot)
    expect(cache.entries).toBe(0)
  })

  it('counts a state once that is put twice', () => {
    const cache = new StateCache()
    const { state, snapshot } = stateOf(3)
    cache.put(state, snapshot)
    cache.put(state, snapshot)
    expect(cache.entries).toBe(3)
    cache.clear()
    expect(cache.take('count', range, snapshot)).toBeNull()
  })
})
