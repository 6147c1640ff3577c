import { expect, onTestFinished } from 'vitest'
import { s3TableFiles } from '../../lib/adapters/s3/table-files.ts'
import { isPawlError } from '../../lib/model/errors.ts'
import { awsTest as test } from '../support/aws.ts'
import { deltaRig } from '../support/delta-rig.ts'
import { bucketTable, logEntries, tableRows } from '../support/delta-table.ts'
import { faultProxy, type ProxiedCall, type ProxyFault } from '../support/fault-proxy.ts'

const columns = { epoch: 'long', n: 'long' } as const
const rowsOf = (epoch: number) => [0, 1, 2].map((n) => ({ epoch, n }))
const shownOf = (...epochs: number[]) =>
  epochs.flatMap((epoch) => [0n, 1n, 2n].map((n) => ({ epoch: BigInt(epoch), n })))

const entry = ({ method, path }: ProxiedCall) => method === 'PUT' && /_delta_log\/\d{20}\.json/.test(path)
const rows = ({ method, path }: ProxiedCall) => method === 'PUT' && path.includes('/pawl-')
const conflict = (passedOn: boolean): ProxyFault => ({
  fault: 'answered',
  status: 409,
  code: 'ConditionalRequestConflict',
  passedOn,
})

test.for<readonly [string, (call: ProxiedCall) => boolean, ProxyFault]>([
  ['case 1: the answer to the log entry is lost', entry, { fault: 'answer-lost' }],
  ['case 2: the log entry arrives late, its answer never', entry, { fault: 'late', afterMs: 400 }],
  ['the log entry arrives twice, and the second answer comes back', entry, { fault: 'repeated', answer: 'second' }],
  ['the log entry never arrives', entry, { fault: 'request-lost' }],
  ['case 8: S3 says that nobody knows yet, and nothing was written', entry, conflict(false)],
  [
    'S3 answers with its own error although the entry was written',
    entry,
    { ...conflict(true), status: 503, code: 'SlowDown' } as ProxyFault,
  ],
  ['the answer to a data file is lost', rows, { fault: 'answer-lost' }],
  ['a data file arrives late', rows, { fault: 'late', afterMs: 400 }],
])('%s: a Delta sink in a bucket promotes once', async ([, matches, fault], { emulator }) => {
  const { client } = emulator
  const seen = await bucketTable(client)
  const proxy = await faultProxy(emulator.endpoint)
  onTestFinished(async () => {
    await proxy.close()
    await seen.dispose()
  })
  const options = { ...client, endpoint: proxy.endpoint, forcePathStyle: true }
  const rig = await deltaRig({ table: seen.table, columns }, (located) => s3TableFiles(located, options))
  await rig.driver.register()
  await rig.run(1, rowsOf(1))
  const [second] = await rig.commit(2, rowsOf(2))
  proxy.plan(matches, fault)
  const again = (error: unknown) => {
    if (!isPawlError(error) || error.kind !== 'Retryable') throw error
    return rig.promote(second!)
  }
  const answer = await rig.promote(second!).catch(again)
  expect(proxy.left).toBe(0)
  if (answer.result === 'refused') expect(answer.found).toEqual(rig.driver.markerOf(2))
  // What is late has come by then.
  await new Promise((resolve) => setTimeout(resolve, 500))
  expect(await tableRows(seen)).toEqual(shownOf(1, 2))
  const adds = (await logEntries(seen)).flat().filter(({ add }) => add !== undefined)
  expect(adds).toHaveLength(2)
  await rig.run(3, rowsOf(3))
  expect(await tableRows(seen)).toEqual(shownOf(1, 2, 3))
  expect(await rig.driver.sink.marker(0)).toEqual(rig.driver.markerOf(3))
})
