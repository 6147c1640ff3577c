import { afterEach, expect, test } from 'vitest'
import { ordeal } from '../support/worker-ordeal.ts'
import { embeddedWorld, type World } from '../support/worker-world.ts'

let world: World

afterEach(() => world.remove())

test('files show the exact fold of the log, whatever workers die, stand by, hang and go on', async () => {
  world = await embeddedWorld()
  const { faults, kills, zombies, lines } = await ordeal(world, {
    seed: 5,
    lines: 10_000,
    kills: 4,
    twins: 1,
    zombies: 1,
    outages: 0,
  })
  expect(faults).toEqual([])
  expect({ lines, zombies }).toEqual({ lines: 10_000, zombies: 1 })
  expect(kills).toBeGreaterThanOrEqual(6)
})

test('two shards in worker threads and two lanes die with their process, and nothing is lost or repeated', async () => {
  world = await embeddedWorld({ exportName: 'sharded' })
  const { faults, kills, lines } = await ordeal(world, {
    seed: 6,
    lines: 10_000,
    kills: 5,
    twins: 1,
    zombies: 0,
    outages: 0,
  })
  expect(faults).toEqual([])
  expect(lines).toBe(10_000)
  expect(kills).toBeGreaterThanOrEqual(6)
})
