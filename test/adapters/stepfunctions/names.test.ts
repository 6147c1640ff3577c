import fc from 'fast-check'
import { expect, test } from 'vitest'
import { executionArn, executionName, stepFunctionsLauncher } from '../../../lib/adapters/stepfunctions/launcher.ts'

test('names an execution by pipeline, sequence and wakes', () => {
  expect(executionName({ pipeline: 'word-count', sequence: 3, wakes: 12 })).toBe('word-count-3-12')
})

test('keeps every name within what Step Functions takes, and different ones apart', () => {
  const run = fc.record({ pipeline: fc.string({ minLength: 1, maxLength: 200 }), sequence: fc.nat(), wakes: fc.nat() })
  fc.assert(
    fc.property(run, run, (one, other) => {
      const name = executionName(one)
      expect(name).toMatch(/^[A-Za-z0-9_.-]{1,80}$/)
      const same = one.pipeline === other.pipeline && one.sequence === other.sequence && one.wakes === other.wakes
      expect(executionName(other) === name).toBe(same)
    }),
  )
})

test('keeps apart long ids that begin alike', () => {
  const [one, other] = ['a', 'b'].map((end) => `${'x'.repeat(90)}${end}`)
  const names = [one, other].map((pipeline) => executionName({ pipeline: pipeline!, sequence: 1, wakes: 2 }))
  expect(new Set(names).size).toBe(2)
})

test('an Express machine is asked nothing: it tells neither status nor end, and no client is opened', async () => {
  const stateMachineArn = 'arn:aws:states:eu-central-1:123456789012:stateMachine:counts'
  const launcher = stepFunctionsLauncher({ stateMachineArn, workflow: 'express', endpoint: 'http://127.0.0.1:1' })
  const place = executionArn(stateMachineArn, 'counts-1-1', 'express')
  expect(place).toBe('arn:aws:states:eu-central-1:123456789012:express:counts:counts-1-1')
  expect(launcher.blind).toBe(true)
  expect(await launcher.status(place)).toBe('unknown')
  expect(await launcher.stop!(place, 'why')).toBe(false)
  await launcher.close()
})

test('finds the execution of a machine, of its version or alias', () => {
  const machine = 'arn:aws-cn:states:cn-north-1:123456789012:stateMachine:counts'
  const execution = 'arn:aws-cn:states:cn-north-1:123456789012:execution:counts:counts-1-1'
  expect(executionArn(machine, 'counts-1-1')).toBe(execution)
  expect(executionArn(`${machine}:7`, 'counts-1-1')).toBe(execution)
})
