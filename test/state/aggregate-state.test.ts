import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type AggregateState, loadAggregateState } from '../../lib/state/aggregate-state.ts'
import type { Key } from '../../lib/state/key-groups.ts'
import { commit, nothingStored, type Stored, scope } from './support.ts'

const key = fc.oneof(
  fc.constantFrom<Key>('a', 'b', '1', 1, 0, -0, '', '__proto__', 'a key that is longer than a slice', Infinity),
  fc.integer({ min: 0, max: 60 }),
)
const value = fc.oneof(
  { weight: 5, arbitrary: fc.integer() },
  fc.constantFrom<unknown>(undefined, -0, Number.NaN, 1n, new Date(5), new Map([['k', new Set([undefined])]])),
  fc.record({ count: fc.integer(), text: fc.string({ unit: 'grapheme' }) }),
)
const step = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(fc.constant('set' as const), key, value) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('delete' as const), key) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('commit' as const)) },
  fc.tuple(fc.constant('reload' as const)),
  fc.tuple(fc.constant('encode in vain' as const)),
)

const load = (stored: Stored): AggregateState<unknown> => loadAggregateState(scope, stored.snapshot, stored.files)
const sorted = (pairs: Iterable<readonly [Key, unknown]>) =>
  [...pairs].sort(([a], [b]) => (`${typeof a} ${a}` < `${typeof b} ${b}` ? -1 : 1))

describe('aggregate state', () => {
  it('equals a map, whatever is set, deleted, committed, abandoned and loaded', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120, size: 'max' }), (steps) => {
        // Without so many other keys every snapshot would be a base.
        let committed = new Map<Key, unknown>(Array.from({ length: 200 }, (_, i) => [`other-${i}`, i]))
        let model = new Map(committed)
        let touched = new Set<Key>()
        let state = load(nothingStored)
        for (const [k, v] of model) state.set(k, v)
        let stored = commit(state, nothingStored)
        for (const taken of steps) {
          switch (taken[0]) {
            case 'set':
              model.set(taken[1], taken[2])
              touched.add(taken[1])
              state.set(taken[1], taken[2])
              break
            case 'delete':
              if (model.delete(taken[1])) touched.add(taken[1])
              state.delete(taken[1])
              break
            case 'commit':
              stored = commit(state, stored)
              committed = new Map(model)
              touched = new Set()
              break
            case 'reload':
              state = load(stored)
              model = new Map(committed)
              touched = new Set()
              break
            case 'encode in vain':
              state.encode(stored.snapshot)
          }
          expect(state.entries).toBe(model.size)
          const emitted = [...touched].filter((k) => model.has(k)).map((k) => [k, model.get(k)])
          expect([...state.touched()]).toEqual(emitted)
        }
        expect(sorted(state.all())).toEqual(sorted(model))
        for (const [k, v] of model) expect(state.get(k)).toEqual(v)
        expect(sorted(load(stored).all())).toEqual(sorted(committed))
      }),
      { numRuns: 300 },
    )
  })
})
