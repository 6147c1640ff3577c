import { readFileSync } from 'node:fs'
import { afterAll, describe, expect, test } from 'vitest'
import { managedFlinkMonth } from '../../lib/model/aws-prices.ts'
import { project } from './command.ts'

const file = `
import { pipeline, text, topic } from 'pawl'
export default pipeline('words')
  .from(topic('lines', { value: text() }))
  .flatMap((line) => line.split(' '))
  .keyBy((word) => word)
  .count('counts')
  .to('out', topic('word-counts', { key: text(), value: { ...text(), encode: String } }))
`
const words = project({ 'words.ts': file })
afterAll(() => words[Symbol.dispose]())

const answer = async (...args: string[]) => {
  const { code, records, stderr } = await words.pawl(['cost', 'words.ts', ...args, '--json'])
  expect(stderr).toBe('')
  expect(code).toBe(0)
  return records()[0] as unknown as {
    dollarsPerMillion: number
    variablePerMonth: number
    fixedPerMonth: number
    epochSeconds: number
    recordsPerEpoch: number
    load: { epochsPerSecond: number; runEpochs: number }
    shape: { split: boolean }
    managedFlinkPerMonth: number
    variable: { what: string; perEpoch: number; dollarsPerMonth: number }[]
  }
}

describe('pawl cost', () => {
  test('prints what an epoch takes, what a month costs, and Managed Flink beside it', async () => {
    const { stdout, code } = await words.pawl(['cost', 'words.ts', '--rate', '1000', '--record-bytes', '200'])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^shape +1 source\(s\) of 4 partitions, 1 operator\(s\) with state, 1 lane\(s\), one task$/m)
    expect(stdout).toMatch(/^Step Functions transitions +\d+\.?\d* +\d+ +[\d.]+ +[\d.]+$/m)
    expect(stdout).toMatch(/^Managed Flink +\$165\.60 a month at least/m)
    expect(stdout).toMatch(/^prices +us-east-1, list prices of \d{4}-\d\d-\d\d/m)
  })

  test('adds up: lines to their sums, a month to what a million records cost', async () => {
    const one = await answer('--rate', '1000')
    const sum = one.variable.reduce((all, line) => all + line.dollarsPerMonth, 0)
    expect(one.variablePerMonth).toBeCloseTo(sum, 6)
    expect(one.dollarsPerMillion * ((1000 * 3600 * 730) / 1e6)).toBeCloseTo(one.variablePerMonth, 6)
    expect(one.managedFlinkPerMonth).toBe(managedFlinkMonth())
  })

  test('is a tenth for ten times the interval, nearly, and less with Express', async () => {
    const [second, ten] = [await answer('--rate', '1000'), await answer('--rate', '1000', '--interval', '10000')]
    const express = await answer('--rate', '1000', '--workflow', 'express')
    expect(ten.variablePerMonth).toBeLessThan(second.variablePerMonth / 4)
    expect(express.variablePerMonth).toBeLessThan(second.variablePerMonth / 3)
    expect(express.load.runEpochs / express.load.epochsPerSecond).toBeLessThanOrEqual(240)
  }, 60_000)

  test('counts what an intake of events lays down and reads back', async () => {
    const puts = ({ variable }: Awaited<ReturnType<typeof answer>>) =>
      variable.find(({ what }) => what.startsWith('S3 PUT'))?.perEpoch ?? 0
    const args = ['--rate', '1000', '--interval', '10000']
    const [brokers, event] = [await answer(...args), await answer(...args, '--intake', 'event')]
    // Ten events an epoch, each with four partitions.
    expect(puts(event) - puts(brokers)).toBeGreaterThanOrEqual(40)
    const odd = await words.pawl(['cost', 'words.ts', '--rate', '1', '--intake', 'event', '--trigger', 'schedule'])
    expect([odd.code, odd.stderr]).toEqual([2, expect.stringContaining('needs the mapping')])
  }, 60_000)

  test('lets epochs follow each other no faster than they can, and says so when a task is too slow', async () => {
    const fast = await answer('--rate', '1000', '--interval', '10')
    expect(1 / fast.load.epochsPerSecond).toBeCloseTo(fast.epochSeconds, 1)
    const { stdout } = await words.pawl(['cost', 'words.ts', '--rate', '100000', '--task-rate', '1000'])
    expect(stdout).toContain('TOO SLOW for this load')
  }, 60_000)

  test('splits over the shards what one task would take too long for', async () => {
    const args = ['--rate', '200000', '--interval', '2000', '--shards', '4']
    expect((await answer(...args)).shape.split).toBe(true)
    expect((await answer(...args, '--task-rate', '10000000')).shape.split).toBe(false)
  }, 60_000)

  test('says in docs/cost.md what it says here', async () => {
    const page = readFileSync(new URL('../../docs/cost.md', import.meta.url), 'utf8')
    const shown = [...page.matchAll(/```sh\npawl (cost .*)\n```\n\n```text\n([^`]*)```/g)]
    expect(shown.length).toBe(2)
    for (const [, command, text] of shown) {
      const args = command.split(' ').map((word) => (word.endsWith('.ts') ? `node_modules/pawl/${word}` : word))
      const { stdout, stderr } = await words.pawl(args)
      expect(`${stderr}${stdout}`).toBe(text)
    }
  }, 60_000)

  test('refuses what it does not understand', async () => {
    const without = await words.pawl(['cost', 'words.ts'])
    expect([without.code, without.stderr]).toEqual([2, expect.stringContaining('--rate')])
    const odd = await words.pawl(['cost', 'words.ts', '--rate', '1', '--workflow', 'swift'])
    expect([odd.code, odd.stderr]).toEqual([2, expect.stringContaining('standard or express')])
  })
})
