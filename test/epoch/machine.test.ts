import { createRequire } from 'node:module'
import { describe, expect, test } from 'vitest'
import {
  epochEvents,
  machine,
  type StepName,
  stepNames,
  stepTimeoutSeconds,
  taskStates,
} from '../../lib/epoch/machine.ts'
import { limits } from '../../lib/model/limits.ts'
import { defaultSettings } from '../../lib/model/settings.ts'
import { wordCount } from '../simulation/pipelines.ts'
import { stage } from '../simulation/stage.ts'

const validate = createRequire(import.meta.url)('asl-validator') as (definition: unknown) => {
  isValid: boolean
  errorsText(): string
}

const arn = (name: StepName) => `arn:aws:lambda:eu-central-1:123456789012:function:${name}`
const resources = Object.fromEntries(stepNames.map((name) => [name, arn(name)])) as Record<StepName, string>
const definition = machine({ resources, settings: defaultSettings })

interface State {
  readonly Type: string
  readonly Resource?: string
  readonly Next?: string
  readonly TimeoutSeconds?: number
  readonly Catch?: readonly { readonly ErrorEquals: readonly string[]; readonly Next: string }[]
}
const states = definition.States as Record<string, State>
const iterations = Object.values(states) as unknown as Record<string, { readonly States: Record<string, State> }>[]
const inner = iterations.flatMap((state) => Object.entries(state.ItemProcessor?.States ?? {}))

describe('the epoch machine', () => {
  test('is valid States Language', () => {
    const { isValid, errorsText } = validate(definition)
    expect(isValid, isValid ? '' : errorsText()).toBe(true)
  })

  test('as Express it is the same, but that each execution names itself first', () => {
    const express = machine({ resources, settings: defaultSettings, workflow: 'express' })
    expect(validate(express).isValid).toBe(true)
    const { Identify, ...rest } = express.States as Record<string, State>
    expect(rest).toEqual(states)
    expect([express.StartAt, Identify?.Type, Identify?.Next]).toEqual(['Identify', 'Pass', 'Plan'])
  })

  test('is small: ten states or so, and two for the iterations', () => {
    expect(Object.keys(states)).toHaveLength(10)
    expect(inner.map(([name]) => name)).toEqual([taskStates.operate, taskStates.promote])
  })

  test('calls each step once, with a timeout, and names the states that local steps are keyed by', () => {
    const tasks = [...Object.entries(states), ...inner].filter(([, state]) => state.Type === 'Task')
    expect(tasks.map(([name]) => name).sort()).toEqual(Object.values(taskStates).sort())
    expect(tasks.map(([, state]) => state.Resource).sort()).toEqual(Object.values(resources).sort())
    for (const [, state] of tasks) expect(state.TimeoutSeconds).toBeGreaterThan(0)
  })

  test('leaves quietly when it is fenced, aborts before the commit, and never after it', () => {
    const caughtBy = (name: string) => states[name]!.Catch!.map((one) => [one.ErrorEquals[0], one.Next])
    for (const name of ['Plan', 'Operate', 'Precommit', 'Commit']) {
      expect(caughtBy(name)).toEqual([
        ['Fenced', 'Left'],
        ['States.ALL', 'Abort'],
      ])
    }
    expect(caughtBy('Promote')).toEqual([
      ['Fenced', 'Left'],
      ['States.ALL', 'Finalize'],
    ])
    for (const name of ['Finalize', 'Abort'])
      expect(caughtBy(name)).toEqual([
        ['Fenced', 'Left'],
        ['States.ALL', 'Left'],
      ])
  })

  test('gives a step less than half the lease', () => {
    for (const leaseMs of [10_000, 60_000, 150_000, 3_600_000]) {
      const seconds = stepTimeoutSeconds({ ...defaultSettings, leaseMs })
      expect(seconds).toBeLessThan(leaseMs / 2000)
      expect(seconds * 1000).toBeLessThanOrEqual(limits.functionMs)
    }
  })

  test('spends at most the events that runs count, with the largest epoch and all retries of some', () => {
    const { mapConcurrencyMax: most, executionEventsMax, runEventsMax } = limits
    const largest = epochEvents([most, most, most], most)
    expect(runEventsMax + 4 * largest).toBeLessThan(executionEventsMax)
  })

  test('needs at most eleven transitions for a fused epoch with one lane', async () => {
    const sample = wordCount(40, 1)
    const at = stage(sample, { settings: { epoch: { spanMax: 2, fuseSpanMax: 10, fuseMs: 0, convictAfter: 2 } } })
    at.arrive()
    await at.run()
    const [run] = at.driver.actors
    const { epoch } = (await at.head()).committed
    const count = (name: string) => run!.steps.filter((step) => step === name).length
    expect(epoch).toBe(20)
    expect([
      count('OperateTask'),
      count('Precommit'),
      count('Commit'),
      count('PromoteLane'),
      count('Finalize'),
    ]).toEqual([20, 20, 20, 20, 20])
    // Each Task once; Map and Choice states besides: two Maps, the choices after Plan and Precommit.
    const transitions = (run!.steps.length + 4 * epoch) / epoch
    expect(transitions).toBeLessThanOrEqual(11)
  })

  test('case 62: hands over from run to run long before the limit, and loses no epoch of fifteen hundred', async () => {
    const at = stage(wordCount(1, 1), {
      settings: { epoch: { spanMax: 1, fuseSpanMax: 10, fuseMs: 0, convictAfter: 2 }, retain: { epochs: 5 } },
    })
    at.append('lines', 0, ...Array.from({ length: 1500 }, (_, i) => `${i}`))
    await at.run()
    expect((await at.head()).committed.epoch).toBe(1500)
    expect(at.driver.actors.length).toBeGreaterThanOrEqual(15)
    for (const { steps } of at.driver.actors) expect(steps.length * 7).toBeLessThan(limits.executionEventsMax)
    expect(at.values('counts')).toHaveLength(1500)
  }, 60_000)
})
