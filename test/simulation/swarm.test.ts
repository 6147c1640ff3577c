import { afterAll, describe, expect, test } from 'vitest'
import { type Simulated, simulate } from '../../lib/testing/index.ts'
import { samples, wordCount } from './pipelines.ts'

const seedsEach = 175
const batches = 5
const total = { seeds: 0, epochs: 0, processes: 0, calls: 0, faults: 0, healed: 0, unconfirmed: 0, carried: 0 }

afterAll(() => {
  console.log(
    `swarm: ${total.seeds} seeds, ${total.epochs} epochs, ${total.processes} processes, ${total.calls} port calls, ` +
      `${total.faults} faults, ${total.healed} lanes healed, ${total.unconfirmed} outputs given up, ` +
      `${total.carried} refused rows carried, none failing`,
  )
})

function count(one: Simulated): void {
  total.seeds++
  for (const name of ['epochs', 'processes', 'calls', 'faults', 'healed', 'unconfirmed', 'carried'] as const)
    total[name] += one[name]
}

describe.each(Object.entries(samples))('%s', (_, sample) => {
  test.each(Array.from({ length: batches }, (_, batch) => batch))(
    'stays whole and goes on under faults, seeds of batch %i',
    async (batch) => {
      for (let seed = 1 + batch * (seedsEach / batches); seed <= (batch + 1) * (seedsEach / batches); seed++) {
        const { pipeline, input } = sample(seed)
        count(await simulate(pipeline, { seed, input }))
      }
    },
    120_000,
  )
})

test('at least a thousand seeds were run, and they met faults, crashes and restored sinks', () => {
  expect(total.seeds).toBe(Object.keys(samples).length * seedsEach)
  expect(total.seeds).toBeGreaterThanOrEqual(1000)
  expect(total.faults).toBeGreaterThan(total.seeds)
  expect(total.processes).toBeGreaterThan(total.seeds * 2)
  expect(total.healed).toBeGreaterThan(20)
  expect(total.unconfirmed).toBeGreaterThan(3)
  expect(total.carried).toBeGreaterThan(50)
})

test('the same seed gives the same trace, another seed another one', async () => {
  const { pipeline, input } = wordCount()
  for (const seed of [1, 7, 13, 42, 99]) {
    const [one, again] = [await simulate(pipeline, { seed, input }), await simulate(pipeline, { seed, input })]
    expect(again.trace).toEqual(one.trace)
    expect(again.rows).toEqual(one.rows)
    expect((await simulate(pipeline, { seed: seed + 1, input })).trace).not.toEqual(one.trace)
  }
})

test('a pipeline of text needs no input of its own, and verify sees what is visible', async () => {
  let seen = 0
  await simulate(wordCount().pipeline, {
    seed: 3,
    failing: 0,
    verify: (rows) => {
      seen = rows.get('counts')!.length
    },
  })
  expect(seen).toBeGreaterThan(0)
  const refused = simulate(wordCount().pipeline, {
    seed: 4,
    verify: () => {
      throw new Error('seven is missing')
    },
  })
  await expect(refused).rejects.toThrow(/seed 4 of word-count broke an invariant: seven is missing/)
})
