import { expect, test } from 'vitest'
import { systemClock } from '../../../lib/adapters/system/clock.ts'
import { systemRandom } from '../../../lib/adapters/system/random.ts'

test('sleeps, and wakes early when it is aborted', async () => {
  const clock = systemClock()
  const before = clock.nowMs()
  await clock.sleep(20)
  expect(clock.nowMs() - before).toBeGreaterThanOrEqual(18)
  await clock.sleep(-5)
  const abort = new AbortController()
  const long = clock.sleep(2 ** 40, abort.signal)
  abort.abort()
  await long
  await clock.sleep(60_000, abort.signal)
})

test('draws ids of 128 bits, no two alike', () => {
  const ids = Array.from({ length: 1_000 }, () => systemRandom().id())
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{32}$/)
  expect(new Set(ids).size).toBe(1_000)
})
