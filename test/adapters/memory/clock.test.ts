import { expect, test } from 'vitest'
import { virtualClock } from '../../../lib/adapters/memory/clock.ts'

test('wakes sleepers in order of time, ties in order of falling asleep', async () => {
  const clock = virtualClock({ startMs: 1_000 })
  const woken: string[] = []
  const sleeper = async (name: string, ...durations: number[]) => {
    for (const ms of durations) {
      await clock.sleep(ms)
      woken.push(`${name}@${clock.nowMs()}`)
    }
  }
  await Promise.all([sleeper('a', 30, 5), sleeper('b', 10, 10, 10), sleeper('c', 10), sleeper('d', 86_400_000)])
  expect(woken).toEqual(['b@1010', 'c@1010', 'b@1020', 'a@1030', 'b@1030', 'a@1035', 'd@86401000'])
})

test('stands still while anything else runs', async () => {
  const clock = virtualClock({ startMs: 0 })
  const sleeping = clock.sleep(10)
  for (let turn = 0; turn < 100; turn++) await null
  expect(clock.nowMs()).toBe(0)
  await sleeping
  expect(clock.nowMs()).toBe(10)
})

test('advances by hand, waking who is due', async () => {
  const clock = virtualClock({ startMs: 0 })
  const woken: number[] = []
  for (const ms of [20, 10, 40]) clock.sleep(ms).then(() => woken.push(ms))
  clock.advance(25)
  expect(clock.nowMs()).toBe(25)
  await null
  expect(woken).toEqual([10, 20])
  clock.advance(-5)
  expect(clock.nowMs()).toBe(25)
})

test('wakes an aborted sleeper at once, without moving the clock', async () => {
  const clock = virtualClock({ startMs: 0 })
  const abort = new AbortController()
  const sleeping = clock.sleep(1_000, abort.signal)
  abort.abort()
  await sleeping
  await clock.sleep(1_000, abort.signal)
  expect(clock.nowMs()).toBe(0)
  await clock.sleep(5)
  expect(clock.nowMs()).toBe(5)
})
