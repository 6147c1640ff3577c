import { expect, test } from 'vitest'
import type { Job } from '../../lib/epoch/job.ts'
import type { Look } from '../../lib/epoch/look.ts'
import { rests } from '../../lib/places/rest.ts'

/** A job at a clock that stands still but for its sleeps; what it slept, and whom it asked. */
function resting(options: { arrival?: (() => Promise<void>) | null; window?: boolean; revisions?: number[] } = {}) {
  let nowMs = 0
  const sleeps: number[] = []
  let asked = 0
  const revisions = [...(options.revisions ?? [])]
  const clock = {
    nowMs: () => nowMs,
    async sleep(ms: number, signal?: AbortSignal) {
      // Whatever is settled by now is told before time goes on.
      await new Promise((resolve) => setImmediate(resolve))
      if (signal?.aborted) return
      sleeps.push(ms)
      nowMs += ms
    },
  }
  const arrival = options.arrival === undefined ? () => new Promise<void>(() => undefined) : options.arrival
  const counted = (answer: () => Promise<void>) => () => {
    asked++
    return answer()
  }
  const source = arrival === null ? {} : { arrival: counted(arrival) }
  const job = {
    place: { clock, source: async () => source, ledger: { read: async () => ({ revision: revisions.shift() ?? 1 }) } },
    compiled: {
      topology: { pipeline: 'p', nodes: [{ kind: 'source', idleAfterMs: 60_000 }] },
      sources: { s: {} },
      stateful: options.window ? [{ stateKind: 'window' }] : [],
    },
  } as unknown as Job
  return { rest: rests(job), sleeps, asked: () => asked }
}

const range = { source: 's', partition: 0, topicId: 't', start: '7', end: '7', caughtUp: true }
const idle = { head: { revision: 1, incarnation: 'i' }, ranges: [range] } as unknown as Look

test('a pipeline at rest waits at its sources, and looks at the ledger alone meanwhile', async () => {
  const { rest, sleeps, asked } = resting()
  await rest(idle, 1000, undefined)
  expect(sleeps).toEqual([1000, 1000, 1000, 1000, 1000])
  expect(asked()).toBe(1)
})

test('the longer nothing happens, the rarer it looks, within bounds; a head that moves brings it back', async () => {
  const { rest, sleeps } = resting()
  for (let i = 0; i < 20; i++) await rest(idle, 1000, undefined)
  expect(Math.max(...sleeps)).toBe(5000)
  expect(sleeps.slice(-3)).toEqual([5000, 5000, 5000])
  sleeps.length = 0
  await rest({ ...idle, head: { revision: 2, incarnation: 'i' } } as unknown as Look, 1000, undefined)
  expect(sleeps[0]).toBe(1000)
})

test('it wakes at once when records come, when its head moves, and when it is stopped', async () => {
  const called = resting({ arrival: async () => undefined })
  await called.rest(idle, 1000, undefined)
  expect(called.sleeps).toEqual([])
  const moved = resting({ revisions: [1, 2] })
  await moved.rest(idle, 1000, undefined)
  expect(moved.sleeps).toEqual([1000, 1000])
  const stopped = resting()
  await stopped.rest(idle, 1000, AbortSignal.abort())
  expect(stopped.sleeps).toEqual([])
  const stop = new AbortController()
  const later = resting({ revisions: [1, 1] })
  setImmediate(() => setImmediate(() => stop.abort()))
  await later.rest(idle, 1000, stop.signal)
  expect(later.sleeps.length).toBeLessThan(5)
})

test('called for nothing, it goes by the clock the next time, so that no source can keep it busy', async () => {
  const { rest, sleeps, asked } = resting({ arrival: async () => undefined })
  for (let i = 0; i < 4; i++) await rest(idle, 1000, undefined)
  expect([asked(), sleeps]).toEqual([2, [1000, 1000]])
})

test('a source that cannot be reached does not shorten the rest', async () => {
  const { rest, sleeps } = resting({ arrival: () => Promise.reject(new Error('gone')) })
  await rest(idle, 2500, undefined)
  expect(sleeps).toEqual([2500, 2500])
})

test.each([
  ['a source cannot wait', resting({ arrival: null }), idle],
  ['windows fire by the clock', resting({ window: true }), idle],
  ['the logs could not be read', resting(), { ...idle, ranges: null }],
  ['something is there that is not taken', resting(), { ...idle, ranges: [{ ...range, end: '8' }] }],
  ['there is no head yet', resting(), { ...idle, head: null }],
])('it goes by the clock when %s', async (_, { rest, sleeps, asked }, seen) => {
  await rest(seen, 1000, undefined)
  expect([asked(), sleeps]).toEqual([0, [1000]])
})
