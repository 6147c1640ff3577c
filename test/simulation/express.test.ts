import { afterAll, expect, test } from 'vitest'
import { everyFault, exhaust, simulate } from '../../lib/testing/index.ts'
import { samples, wordCount } from './pipelines.ts'

const total = { seeds: 0, epochs: 0, processes: 0, faults: 0, expired: 0, runs: 0 }

afterAll(() => {
  console.log(
    `express: ${total.seeds} seeds, ${total.epochs} epochs, ${total.processes} processes, ${total.faults} faults, ${total.expired} leases that expired; ` +
      `${total.runs} runs with a fault at each port call, none failing`,
  )
})

test.each(Object.entries(samples))(
  'swarm: %s where runs start twice, end after five minutes, and nobody tells that one is gone',
  async (_, sample) => {
    const { pipeline, input } = sample(1)
    for (let seed = 1; seed <= 20; seed++) {
      const { epochs, processes, faults, story } = await simulate(pipeline, { seed, input, workflow: 'express' })
      total.seeds++
      total.epochs += epochs
      total.processes += processes
      total.faults += faults
      total.expired += story.split('(expired)').length - 1
      // Nobody can say so.
      expect(story).not.toContain('(gone)')
    }
    expect(total.expired).toBeGreaterThan(0)
  },
  120_000,
)

test('exhaustive: every fault at every port call, taken over by the lease alone', async () => {
  const { pipeline, input } = wordCount(6, 1)
  const faults = everyFault.filter(({ fault }, i) => everyFault.findIndex((one) => one.fault === fault) === i)
  const { calls, runs } = await exhaust(pipeline, { input, partitions: 1, faults, workflow: 'express' })
  expect(runs).toBe(calls * faults.length)
  total.runs += runs
}, 120_000)
