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
import { type BucketView, bucketView, fileLists, readRows } from '../support/s3-contract.ts'
import { install } from '../support/table-runs.ts'

const worker = new URL('../support/object-worker.ts', import.meta.url)
const lines = 640
const killsMin = 6

test('a bucket shows whole epochs at every instant, and it and a table equal the fold of the log, while the worker is killed again and again', async ({
  emulator,
}) => {
  const dynamo = new DynamoDBClient(emulator.client)
  const view = await bucketView(emulator)
  onTestFinished(() => {
    dynamo.destroy()
    view.client.destroy()
  })
  const table = await createTable(dynamo, { customer: 'S' })
  const targets: ObjectTargets = { client: emulator.client, table, bucket: view.name }
  const directory = mkdtempSync(join(tmpdir(), 'pawl-objects-'))
  const runs = install(objectPipeline(targets), { directory, stage: 'crash' })
  onTestFinished(runs.remove)
  await runs.append(...Array.from({ length: lines }, (_, i) => `${i} c${i % 7}`))
  const random = prng(31)
  let kills = 0
  let last = 0
  let seen = 0
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
    const ids = await seenIds(view)
    expect(ids).toEqual(Array.from({ length: ids.length }, (_, id) => id))
    expect(ids.length).toBeGreaterThanOrEqual(seen)
    // An epoch takes 40 lines at most, and one sink may be an epoch ahead of the other.
    expect(Math.abs(sum - ids.length)).toBeLessThanOrEqual(40)
    seen = ids.length
    if (!finished) continue
    expect(seen).toBe(lines)
    expect((await view.keys('seen/customer')).length).toBe(
      (await fileLists(view, 'seen/')).flatMap(({ files }) => files).length,
    )
    const found = Object.fromEntries(rows.map(({ customer, count }) => [customer!.S, Number(count!.N)]))
    const wanted = Array.from({ length: 7 }, (_, c) => [`c${c}`, Math.ceil((lines - c) / 7)])
    expect(found).toEqual(Object.fromEntries(wanted))
  }
  expect(kills).toBeGreaterThanOrEqual(3)
})

/** What a reader sees who goes by the lists of whole epochs. */
async function seenIds(view: BucketView): Promise<number[]> {
  const named = (await fileLists(view, 'seen/')).flatMap(({ files }) => files)
  const rows = await Promise.all(named.map(async ({ name }) => readRows(await view.read(`seen/${name}`), 'parquet')))
  return rows
    .flat()
    .map(({ id }) => Number(id))
    .sort((a, b) => a - b)
}
