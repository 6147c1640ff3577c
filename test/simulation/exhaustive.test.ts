import { afterAll, describe, expect, test } from 'vitest'
import { everyFault, exhaust } from '../../lib/testing/index.ts'
import { exhaustiveCases } from './exhaustive-cases.ts'

const total = { calls: 0, runs: 0 }

afterAll(() => {
  console.log(`exhaustive: ${total.calls} port calls × ${everyFault.length} faults = ${total.runs} runs, none failing`)
})

describe('every fault at every port call changes nothing', () => {
  test.each(exhaustiveCases.filter((one) => one.long !== true))(
    '$name',
    async ({ sample, options }) => {
      const { calls, runs } = await exhaust(sample.pipeline, { input: sample.input, ...options })
      expect(runs).toBe(calls * everyFault.length)
      total.calls += calls
      total.runs += runs
    },
    240_000,
  )
})

test('a failure names the fault, what happened, and how to see it again', async () => {
  const { sample, options } = exhaustiveCases[0]!
  const broken = { steps: () => ({ Commit: async () => ({}) }) }
  const error = await exhaust(sample.pipeline, { input: sample.input, ...options, sabotage: broken, rings: 3 }).catch(
    (caught: Error) => caught.message,
  )
  expect(error).toContain('all input becomes visible after 3 rings')
  expect(error).toContain('what happened')
  expect(error).toContain('process 0   opens epoch 1')
  expect(error).toContain('again: exhaust(pipeline, { ')
})
