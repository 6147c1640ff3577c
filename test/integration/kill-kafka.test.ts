import { expect, test } from 'vitest'
import { missingTool } from '../support/kafka.ts'
import { ordeal } from '../support/worker-ordeal.ts'
import { kafkaWorld } from '../support/worker-world.ts'

test('a Java consumer sees the exact fold of a topic, whatever workers and brokers die', async ({ skip }) => {
  const missing = missingTool()
  if (missing !== null) skip(missing)
  const world = await kafkaWorld()
  try {
    const { faults, kills, outages, lines } = await ordeal(world, {
      seed: 7,
      lines: 10_000,
      kills: 4,
      twins: 1,
      zombies: 1,
      outages: 2,
    })
    expect(faults).toEqual([])
    // An append whose answer was lost with the broker is sent again.
    expect(lines).toBeGreaterThanOrEqual(10_000)
    expect(outages).toBe(2)
    expect(kills).toBeGreaterThanOrEqual(6)
  } finally {
    await world.remove()
  }
})
