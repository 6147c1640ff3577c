import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { expect, onTestFinished } from 'vitest'
import { prng } from '../../lib/model/prng.ts'
import { awsTest as test } from '../support/aws.ts'
import { startChild } from '../support/child.ts'
import { createTable, scan } from '../support/dynamodb-contract.ts'
import { type ObjectTargets, objectPipeline } from '../support/object-worker.ts'
import { install } from '../support/table-runs.ts'

const worker = new URL('../support/object-worker.ts', import.meta.url)
const lines = 1200
const killsMin = 8

test('a table equals the fold of the log while the worker is killed again and again', async ({ emulator }) => {
  const dynamo = new DynamoDBClient(emulator.client)
  onTestFinished(() => dynamo.destroy())
  const targets: ObjectTargets = { client: emulator.client, table: await createTable(dynamo, { customer: 'S' }) }
  const directory = mkdtempSync(join(tmpdir(), 'pawl-objects-'))
  const runs = install(objectPipeline(targets), { directory, stage: 'crash' })
  onTestFinished(runs.remove)
  await runs.append(...Array.from({ length: lines }, (_, i) => `${i} c${i % 7}`))
  const random = prng(31)
  let kills = 0
  let last = 0
  for (let finished = false; !finished; ) {
    const child = startChild(worker, [directory, 'crash', JSON.stringify(targets)])
    const ended = child.ended.then(({ code }) => code)
    while (child.lines.length === 0) await sleep(5)
    const killer = sleep(kills < killsMin ? 60 + random.int(250) : 60_000, null, { ref: false }).then(() =>
      child.kill('SIGKILL'),
    )
    finished = (await Promise.race([ended, killer.then(() => ended)])) === 0
    if (!finished) kills++
    const rows = (await scan(dynamo, targets.table)).filter(({ customer }) => !customer!.S!.startsWith('pawl#'))
    const sum = rows.reduce((total, { count }) => total + Number(count!.N), 0)
    expect(sum).toBeGreaterThanOrEqual(last)
    last = sum
    if (!finished) continue
    const found = Object.fromEntries(rows.map(({ customer, count }) => [customer!.S, Number(count!.N)]))
    const wanted = Array.from({ length: 7 }, (_, c) => [`c${c}`, Math.ceil((lines - c) / 7)])
    expect(found).toEqual(Object.fromEntries(wanted))
  }
  expect(kills).toBeGreaterThanOrEqual(4)
})
