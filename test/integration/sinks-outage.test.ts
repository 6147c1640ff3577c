import { mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { expect, onTestFinished, test } from 'vitest'
import { measure } from '../../lib/adapters/cloudwatch/measure.ts'
import { dynamodb } from '../../lib/adapters/dynamodb/sink.ts'
import { mysql } from '../../lib/adapters/mysql/sink.ts'
import { postgres } from '../../lib/adapters/postgres/sink.ts'
import { redis } from '../../lib/adapters/redis/sink.ts'
import { s3Files } from '../../lib/adapters/s3/files.ts'
import { delta } from '../../lib/delta.ts'
import { nullable, text } from '../../lib/model/serde.ts'
import { pipeline } from '../../lib/stream/pipeline.ts'
import { topic } from '../../lib/stream/topic.ts'
import { awsTest, type Emulator } from '../support/aws.ts'
import { cuttingProxy } from '../support/cutting-proxy.ts'
import { bucketTable, tableRows } from '../support/delta-table.ts'
import { createTable, scan } from '../support/dynamodb-contract.ts'
import { missingMariaDb, startMariaDb } from '../support/mariadb.ts'
import { missingPostgres, startPostgres } from '../support/postgres.ts'
import { missingRedis, startRedis } from '../support/redis.ts'
import { bucketView, fileLists, readRows } from '../support/s3-contract.ts'
import { freshName } from '../support/table-rig.ts'
import { install } from '../support/table-runs.ts'

/** Every wait of the pipeline and its sinks is shorter. */
const outageMs = 3500
const settings = {
  checkpoint: { intervalMs: 0, timeoutMs: 1000 },
  leaseMs: 2500,
  promotionRetryMs: [50, 200],
} as const
const patience = { connectTimeoutMs: 300, timeoutMs: 900 } as const
const locks = { lockTimeoutMs: 300, statementTimeoutMs: 600 } as const

async function startAll() {
  const servers = await Promise.all([startPostgres(), startMariaDb(), startRedis()])
  onTestFinished(async () => {
    await Promise.all(servers.map((server) => server.remove()))
  })
  return servers
}

test('case 21: sinks that are away for longer than every timeout between commit and promote lose nothing and repeat nothing', async ({
  skip,
}) => {
  const missing = missingPostgres() ?? missingMariaDb() ?? missingRedis()
  if (missing !== null) return skip(missing)
  const [pg, maria, valkey] = await startAll()
  const table = freshName('rows')
  await pg.query(`CREATE TABLE ${table} (n int)`)
  await maria.query(`CREATE TABLE ${table} (n int)`)
  const numbers = pipeline(table.replace('_', '-'), settings).from(
    topic('numbers', { key: nullable(text()), value: text() }),
  )
  const row = (value: string) => ({ n: Number(value) })
  const redisOptions = { connection: () => valkey.url, type: 'stream', key: table, value: text() } as const
  const directory = mkdtempSync(join(tmpdir(), 'pawl-outage-'))
  const runs = install(
    numbers
      .to('pg', postgres({ connection: () => pg.url, table, row, ...patience, ...locks }))
      .also(numbers.to('maria', mysql({ connection: () => maria.url, table, row, ...patience, ...locks })))
      .also(
        numbers.to('redis', redis<string, string | null>({ ...redisOptions, ...patience, keys: nullable(text()) })),
      ),
    { directory },
  )
  onTestFinished(runs.remove)
  await runs.append('1')
  expect(await runs.run()).toMatchObject({ reason: 'caught-up' })

  await runs.append('2', '3')
  await Promise.all([pg.kill(), maria.kill(), valkey.kill()])
  const running = runs.run()
  const parked = await runs.told('parked')
  expect(parked).toMatchObject({ kind: 'promotion', code: 'SINK_UNAVAILABLE' })
  expect(JSON.stringify(parked)).toMatch(/sink (pg|maria|redis), lane 0, epoch 2: /)
  await sleep(outageMs)
  // What the alarm for a promotion that is stuck watches.
  const [told] = measure(await runs.health())
  expect(told!.values.UnpromotedSeconds).toBeGreaterThan(outageMs / 1000)
  // One after the other: while any of them is away the epoch stays open to promotion, and those that are back do not see it twice.
  for (const server of [pg, maria, valkey]) {
    await server.restart()
    await sleep(300)
  }
  expect(await running).toMatchObject({ reason: 'caught-up' })

  const inOrder = `SELECT n FROM ${table} ORDER BY n`
  expect((await pg.query(inOrder)).map(({ n }) => n)).toEqual([1, 2, 3])
  expect((await maria.query(inOrder)).map(({ n }) => n)).toEqual([1, 2, 3])
  const client = valkey.connect()
  const entries = await client.xrange(table, '-', '+')
  client.disconnect()
  expect(entries.map(([, fields]) => fields[fields.indexOf('value') + 1])).toEqual(['1', '2', '3'])
  expect(runs.events.filter(({ event }) => event === 'aborted')).toEqual([])
  // Passwords of the connections are nowhere: not in plans, manifests, staged rows or the ledger, nor in what was told.
  const written = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  expect(written.length).toBeGreaterThan(10)
  const quoting = written.filter((entry) => readFileSync(join(entry.parentPath, entry.name)).includes('open-sesame'))
  expect(quoting).toEqual([])
  expect(maria.url + valkey.url).toMatch(/open-sesame.*open-sesame/)
  expect(JSON.stringify(runs.events)).not.toContain('open-sesame')
})

/** The emulator behind a network of its own, for one sink. */
async function ownNetwork({ endpoint, client }: Emulator) {
  const proxy = await cuttingProxy(Number(new URL(endpoint).port))
  onTestFinished(() => proxy.close())
  return { proxy, client: { ...client, endpoint: `http://127.0.0.1:${proxy.port}`, timeoutMs: 150 } }
}

awsTest(
  'case 21: sinks of AWS that are away for longer than every timeout between commit and promote lose nothing and repeat nothing',
  async ({ emulator }) => {
    const networks = [await ownNetwork(emulator), await ownNetwork(emulator), await ownNetwork(emulator)] as const
    const [ofItems, ofFiles, ofLake] = networks
    const items = new DynamoDBClient(emulator.client)
    const table = await createTable(items, { n: 'S' })
    const bucket = await bucketView(emulator)
    const lake = await bucketTable(emulator.client)
    onTestFinished(async () => {
      items.destroy()
      bucket.client.destroy()
      await lake.dispose()
    })
    const numbers = pipeline(freshName('aws').replace('_', '-'), settings).from(
      topic('numbers', { key: nullable(text()), value: text() }),
    )
    const row = (value: string) => ({ n: Number(value) })
    const runs = install(
      numbers
        .to(
          'items',
          dynamodb<string, string | null>({ ...ofItems.client, table, keys: { n: 'S' }, item: (n) => ({ n }) }),
        )
        .also(
          numbers.to(
            'files',
            s3Files({ ...ofFiles.client, forcePathStyle: true, bucket: bucket.name, format: 'json-lines', row }),
          ),
        )
        .also(
          numbers.to(
            'lake',
            delta<string, string | null>({
              table: lake.table,
              columns: { n: 'long' },
              row,
              s3: { ...ofLake.client, forcePathStyle: true },
            }),
          ),
        ),
    )
    onTestFinished(runs.remove)
    await runs.append('1')
    expect(await runs.run()).toMatchObject({ reason: 'caught-up' })

    await runs.append('2', '3')
    for (const { proxy } of networks) proxy.silent = true
    const running = runs.run()
    // Its step gave the promotion up, which goes on asking behind it until its tries are used up.
    expect(await runs.told('parked')).toMatchObject({ kind: 'promotion', code: 'EPOCH_TIMEOUT' })
    await sleep(outageMs)
    const [told] = measure(await runs.health())
    expect(told!.values.UnpromotedSeconds).toBeGreaterThan(outageMs / 1000)
    for (const { proxy } of networks) {
      proxy.silent = false
      await sleep(300)
    }
    expect(await running).toMatchObject({ reason: 'caught-up' })

    const rows = (await scan(items, table)).map(({ n }) => n!.S!).filter((n) => !n.startsWith('pawl#'))
    expect(rows.sort()).toEqual(['1', '2', '3'])
    const files = (await fileLists(bucket, '')).flatMap((list) => list.files)
    const lines = await Promise.all(files.map(async ({ name }) => readRows(await bucket.read(name), 'json-lines')))
    expect(lines.flat()).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }])
    expect(await tableRows(lake)).toEqual([{ n: 1n }, { n: 2n }, { n: 3n }])
    expect(runs.events.filter(({ event }) => event === 'aborted')).toEqual([])
  },
)
