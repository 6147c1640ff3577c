import { expect, onTestFinished } from 'vitest'
import { s3TableFiles } from '../../lib/adapters/s3/table-files.ts'
import { missingEmulatorTool, sharedEmulator } from '../support/aws.ts'
import { startDeltaReaders, deltaTest as test } from '../support/delta.ts'
import { deltaRig } from '../support/delta-rig.ts'
import { bucketTable } from '../support/delta-table.ts'

const columns = { epoch: 'long', n: 'long' } as const
const rowsOf = (epoch: number, count: number) => Array.from({ length: count }, (_, n) => ({ epoch, n }))

test('delta-rs reads a table in a bucket, appends to it at the same time, and nothing is lost', async ({
  readers,
  skip,
}) => {
  const missing = process.env.PAWL_AWS_ENDPOINT ? null : missingEmulatorTool()
  if (missing !== null) skip(missing)
  const { client, endpoint } = await sharedEmulator()
  const seen = await bucketTable(client)
  onTestFinished(seen.dispose)
  const storage = {
    endpoint_url: endpoint,
    allow_http: 'true',
    region: client.region,
    access_key_id: client.credentials.accessKeyId,
    secret_access_key: client.credentials.secretAccessKey,
    conditional_put: 'etag',
  }
  const open = (located: string) => s3TableFiles(located, { ...client, forcePathStyle: true })
  const rig = await deltaRig({ table: seen.table, columns, checkpointEvery: 5 }, open)
  await rig.driver.register()
  const args = { table: seen.table, storage }
  const foreign = startDeltaReaders()
  onTestFinished(foreign.stop)
  const appending = foreign.run(
    `
for n in range(10):
    write_deltalake(table, rows(epoch=[0], n=[n]), mode='append', storage_options=storage)`.trim(),
    args,
  )
  const readings: number[][][] = []
  for (let epoch = 1; epoch <= 10; epoch++) {
    await rig.run(epoch, rowsOf(epoch, 5))
    readings.push(
      await readers.run<number[][]>(`result = sql(table, query, storage_options=storage)`, { ...args, query }),
    )
  }
  await appending
  for (const [index, reading] of readings.entries()) {
    const ours = Array.from({ length: index + 1 }, (_, i) => [i + 1, 5])
    expect(reading.filter(([epoch]) => epoch !== 0)).toEqual(ours)
  }
  const last = await readers.run<number[][]>('result = sql(table, query, storage_options=storage)', { ...args, query })
  expect(last).toEqual([[0, 10], ...Array.from({ length: 10 }, (_, i) => [i + 1, 5])])
  await rig.restart()
  expect(await rig.driver.sink.marker(0)).toEqual(rig.driver.markerOf(10))
})

const query = 'select epoch, count(*) from t group by epoch order by epoch'
