import { afterAll, expect, test } from 'vitest'
import { compile } from '../../lib/index.ts'
import { prng } from '../../lib/model/prng.ts'
import { everyFault, exhaust, simulate } from '../../lib/testing/index.ts'
import { hostileMapping, intakeOf, type Mapped, type Mapping } from '../support/intake-world.ts'
import { merged, windows, wordCount } from './pipelines.ts'

const mapped: Mapped = { delivered: 0, lost: 0, recovered: 0 }
const total = { seeds: 0, faults: 0, runs: 0 }

afterAll(() => {
  console.log(
    `intake: ${total.seeds} seeds with ${total.faults} faults and ${total.runs} runs with a fault at each port call; ` +
      `${mapped.delivered} batches delivered, ${mapped.lost} lost, ${mapped.recovered} ranges read from the broker`,
  )
})

test.each(Object.entries({ wordCount, windows, merged }))(
  'swarm: %s over an intake whose batches come twice, late, overlapping or never',
  async (_, sample) => {
    const { pipeline, input } = sample()
    for (let seed = 1; seed <= 25; seed++) {
      const sabotage = intakeOf(compile(pipeline), hostileMapping(prng(seed), mapped), mapped)
      total.faults += (await simulate(pipeline, { seed, input, sabotage })).faults
      total.seeds++
    }
    expect(mapped.recovered).toBeGreaterThan(25)
  },
  120_000,
)

/** Of each kind one: what differs between two of a kind is when a process comes back, and the swarm draws that. */
const faults = everyFault.filter(({ fault }, i) => everyFault.findIndex((one) => one.fault === fault) === i)

/** Loses the middle of what is there, brings the rest twice; the broker is asked every second time. */
function scripted(): Mapping {
  let looks = 0
  return {
    deliveries: ({ partitions }) =>
      partitions.flatMap(({ partition, start, end }) => {
        const rest = { partition, start: start + (end - start) / 2n, end }
        return [{ partition, start, end: start + 1n }, rest, rest].filter((one) => one.start < one.end)
      }),
    asks: () => looks++ % 2 === 0,
  }
}

test('exhaustive: every fault at every port call, those of intake and recovery among them', async () => {
  const { pipeline, input } = wordCount(5, 1)
  const compiled = compile(pipeline)
  let place = intakeOf(compiled, scripted(), mapped).place!
  const { calls, runs } = await exhaust(pipeline, {
    input,
    partitions: 1,
    settings: { epoch: { spanMax: 3, fuseSpanMax: 100, fuseMs: 0, convictAfter: 1_000_000 } },
    faults,
    sabotage: {
      place(given) {
        // Each run of the enumeration begins with its first process.
        if (given.place === 'process-0') place = intakeOf(compiled, scripted(), mapped).place!
        return place(given)
      },
    },
  })
  expect(runs).toBe(calls * faults.length)
  total.runs += runs
}, 240_000)
