import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Snapshot } from '../../lib/model/manifest.ts'
import { type AggregateState, loadAggregateState } from '../../lib/state/aggregate-state.ts'
import { type Key, keyGroupOf, shardRange } from '../../lib/state/key-groups.ts'
import { loadWindowState } from '../../lib/state/window-state.ts'
import { commit, nothingStored, type Stored, scope } from './support.ts'

function storedKeys(keys: readonly Key[]): Stored {
  const state = loadAggregateState<unknown>(scope, null, [])
  for (const key of keys) state.set(key, key)
  const first = commit(state, nothingStored)
  for (const key of keys.slice(0, 3)) state.delete(key)
  state.set('late', 'late')
  return commit(state, first)
}

const some = storedKeys(Array.from({ length: 500 }, (_, i) => (i % 2 ? i : `k${i}`)))
const withSnapshot = (other: Partial<Snapshot>): Snapshot => ({ ...some.snapshot!, ...other })

describe('loading snapshots', () => {
  it('leaves out the keys of other key groups, so that all shards together hold each key once', () => {
    const whole = [...loadAggregateState(scope, some.snapshot, some.files).all()]
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 128 }), (shards) => {
        const all: (readonly [Key, unknown])[] = []
        for (let shard = 0; shard < shards; shard++) {
          const [from, to] = shardRange(shard, shards, 128)
          const state = loadAggregateState({ ...scope, keyGroups: [from, to] }, some.snapshot, some.files)
          for (const [key] of state.all()) {
            expect(keyGroupOf(key, 128)).toBeGreaterThanOrEqual(from)
            expect(keyGroupOf(key, 128)).toBeLessThan(to)
          }
          all.push(...state.all())
        }
        expect(new Map(all)).toEqual(new Map(whole))
        expect(all).toHaveLength(whole.length)
      }),
      { numRuns: 10 },
    )
  })

  it('writes a base of its own range after the files of another, touched or not', () => {
    const state: AggregateState<unknown> = loadAggregateState(
      { ...scope, keyGroups: [0, 64] },
      some.snapshot,
      some.files,
    )
    expect(state.encode(some.snapshot)).toMatchObject({ file: 'base', keep: 0, entries: state.entries })
    state.set('k4', 1)
    const after = commit(state, some)
    expect(after.snapshot).toMatchObject({ keyGroups: [0, 64], files: [{ file: 'base' }] })
  })

  it('reads windows of other ranges without firing or keeping what is not there', () => {
    const state = loadWindowState<number>(scope, null, [])
    state.set(0, 'wu', 1)
    state.set(10, 'a', 1)
    expect([...state.due(9, 10)]).toEqual([[0, 'wu', 1]])
    const stored = commit(state, nothingStored)
    const group = keyGroupOf('a', 128)
    const part = loadWindowState<number>({ ...scope, keyGroups: [group, group + 1] }, stored.snapshot, stored.files)
    expect([...part.all()]).toEqual([[10, 'a', 1]])
    expect([...part.due(19, 10)]).toEqual([[10, 'a', 1]])
  })

  it.each([
    [
      'another operator',
      withSnapshot({ operator: 'other' }),
      'LINEAGE_CHANGED',
      '"count" is given the state of "other"',
    ],
    ['another kind', withSnapshot({ stateKind: 'window' }), 'LINEAGE_CHANGED', '"count" keeps state of kind aggregate'],
    ['an unknown kind', withSnapshot({ stateKind: 'tree' }), 'LINEAGE_CHANGED', 'of kind tree'],
    [
      'a newer operator',
      withSnapshot({ stateVersion: 2 }),
      'STATE_VERSION_NEWER',
      '"count" has version 1, its state 2',
    ],
    ['a list without its base', withSnapshot({ files: some.snapshot!.files.slice(1) }), 'SNAPSHOT_DAMAGED', '2 files'],
    ['files in another order', withSnapshot({ files: some.snapshot!.files.toReversed() }), 'SNAPSHOT_DAMAGED', 'base'],
  ])('refuses the snapshot of %s', (_, snapshot, code, fault) => {
    const load = () => loadAggregateState(scope, snapshot, some.files)
    expect(load).toThrow(code)
    expect(load).toThrow(fault)
  })

  it('refuses files that contradict the manifest, even if the manifest fits', () => {
    const [base, delta] = some.files
    expect(() => loadAggregateState(scope, some.snapshot, [delta, base])).toThrow(/SNAPSHOT_DAMAGED.*a delta in place/)
    const windows = withSnapshot({ stateKind: 'window' })
    expect(() => loadWindowState(scope, windows, some.files)).toThrow(/LINEAGE_CHANGED.*of kind aggregate/)
    const other = { ...scope, operator: 'sum' }
    const renamed = withSnapshot({ operator: 'sum' })
    expect(() => loadAggregateState(other, renamed, some.files)).toThrow(/LINEAGE_CHANGED.*the state of "count"/)
  })

  it('refuses a pipeline with another number of key groups', () => {
    const other = { ...scope, totalKeyGroups: 256 }
    expect(() => loadAggregateState(other, some.snapshot, some.files)).toThrow(
      /LINEAGE_CHANGED.*256 key groups, its state 128/,
    )
  })
})

/** Files written by version 1 of the format. They never change, and are read by every later version. */
describe('fixtures of version 1', () => {
  const read = (...names: string[]) => names.map((name) => readFileSync(`${import.meta.dirname}/fixtures/${name}.bin`))
  const listed = (stateKind: string, files: readonly Buffer[]): Snapshot => ({
    operator: 'count',
    stateKind,
    stateVersion: 1,
    keyGroups: [0, 128],
    files: files.map(({ length }, i) => ({
      name: `${i}`,
      bytes: length,
      sha256: '',
      file: i === 0 ? 'base' : 'delta',
      entries: 0,
    })),
  })

  it('give back every kind of value by key', () => {
    const files = read('aggregate-v1-0-base', 'aggregate-v1-1-delta')
    const state = loadAggregateState<unknown>(scope, listed('aggregate', files), files)
    const values = Array.from({ length: 16 }, (_, i) => state.get(`key-${i}`))
    expect(values).toStrictEqual([
      'later',
      5,
      -0,
      Number.NaN,
      Infinity,
      undefined,
      null,
      12n,
      new Date(0),
      new Date(Number.NaN),
      new Map([['k', [undefined]]]),
      new Set([1, 'ü']),
      Uint8Array.of(1, 2),
      Buffer.from('ab'),
      { $: 'x' },
      Object.assign(Object.create(null), { a: 1 }),
    ])
    expect([state.get(599), state.get(1.5), state.get(-Infinity)]).toEqual([{ count: 599 }, 1, 'below'])
    expect([state.get(0), state.get('gone'), state.entries]).toEqual([undefined, undefined, 617])
  })

  it('give back windows, which of them have fired and which are gone', () => {
    const files = read('window-v1-0-base', 'window-v1-1-delta')
    const state = loadWindowState<unknown>(scope, listed('window', files), files)
    expect(state.entries).toBe(34)
    expect(state.get(-10, 'k0')).toBeUndefined()
    state.set(0, 'k1', 'update')
    const due = [...state.due(29, 10)]
    expect(due).toHaveLength(1 + 16 + 1)
    expect(due[0]).toEqual([0, 'k1', 'update'])
    expect(due[1]).toEqual([10, 'k2', 2])
    expect(due.at(-1)).toEqual([20, 'new', 1n])
  })
})
