/**
 * Commands against real servers: one pipeline into a topic, two tables, a hash and a table of DynamoDB, whose markers
 * are prepared, listed, adopted and reset as a person would; and what no command may ever print.
 */
import { randomUUID } from 'node:crypto'
import { cpSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import mysql from 'mysql2/promise'
import { expect, onTestFinished } from 'vitest'
import { type Ended, project, succeed } from '../cli/command.ts'
import { missingEmulatorTool, sharedEmulator } from '../support/aws.ts'
import { createTable, scan } from '../support/dynamodb-contract.ts'
import { type Broker, kafkaTest } from '../support/kafka.ts'
import { connectPlain, seenValues } from '../support/kafka-sink.ts'
import { freshTopic, send } from '../support/kafka-topics.ts'
import { type MariaDb, missingMariaDb, startMariaDb } from '../support/mariadb.ts'
import { missingPostgres, type Postgres, startPostgres } from '../support/postgres.ts'
import { missingRedis, type RedisServer, startRedis } from '../support/redis.ts'

interface Databases {
  readonly pg: Postgres
  readonly maria: MariaDb
  readonly redis: RedisServer
}

const missing = missingPostgres() ?? missingMariaDb() ?? missingRedis()

/** `test` with the three databases, one of each for the file. */
const test = kafkaTest.extend<{ started: Databases | null; databases: Databases }>({
  started: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of fixtures from the pattern
    async ({}, use) => {
      if (missing !== null) return use(null)
      const [pg, maria, redis] = await Promise.all([startPostgres(), startMariaDb(), startRedis()])
      await use({ pg, maria, redis })
      await Promise.all([pg, maria, redis].map((server) => server.remove()))
    },
    { scope: 'file' },
  ],
  databases: async ({ started, skip }, use) => {
    if (started === null) skip(missing ?? '')
    await use(started as Databases)
  },
})

const fileOf = (id: string, to: string, table: string) => `
import { pipeline, text, topic } from 'pawl'
import { dynamodb } from 'pawl/dynamodb'
import { mysql } from 'pawl/mysql'
import { postgres } from 'pawl/postgres'
import { redis } from 'pawl/redis'
const { ORDERS, POSTGRES, MARIADB, REDIS } = process.env
const rows = pipeline('${id}', { checkpoint: { intervalMs: 0 } })
  .from(topic(ORDERS ?? 'none', { value: text() }))
  .withKey((order) => order)
const row = (v: string) => ({ v })
export default rows.to('dynamo', dynamodb({ table: '${table}', keys: { v: 'S' }, item: row, markerTable: '${table}-markers' }))
  .also(rows.to('kafka', topic('${to}', { key: text(), value: text(), lanes: 2 })))
  .also(rows.to('maria', mysql({ connection: () => MARIADB!, table: 'orders', row, lanes: 2 })))
  .also(rows.to('pg', postgres({ connection: () => POSTGRES!, table: 'shop.orders', row, markerTable: 'shop.marks' })))
  .also(rows.to('redis', redis({ connection: () => REDIS!, type: 'hash', key: 'orders', value: text() })))
`

const lanes = ['dynamo/0', 'kafka/0', 'kafka/1', 'maria/0', 'maria/1', 'pg/0', 'redis/0']

/** What each lane's marker is judged as. */
function codes(ended: Ended): Record<string, string | null> {
  const listed = ended.records()[0]!.lanes as { sink: string; lane: number; code: string | null }[]
  return Object.fromEntries(listed.map(({ sink, lane, code }) => [`${sink}/${lane}`, code]))
}

const all = (code: string | null) => Object.fromEntries(lanes.map((lane) => [lane, code]))

/** The pipeline and its five targets. */
async function shopOn(broker: Broker, { pg, maria, redis }: Databases) {
  const emulator = await sharedEmulator()
  const [client, dynamo, link] = [redis.connect(), new DynamoDBClient(emulator.client), connectPlain(broker.bootstrap)]
  const to = await freshTopic(broker, 2)
  const table = await createTable(dynamo, { v: 'S' })
  const made = project({ 'shop.ts': fileOf(`shop-${randomUUID().slice(0, 8)}`, to, table) })
  onTestFinished(async () => {
    made[Symbol.dispose]()
    client.disconnect()
    dynamo.destroy()
    await link.close()
  })
  await pg.query('CREATE SCHEMA shop; CREATE TABLE shop.orders (v text)')
  await maria.query('CREATE TABLE orders (v varchar(20))')

  let env: Record<string, string> = { ...emulator.environment, POSTGRES: pg.url, MARIADB: maria.url, REDIS: redis.url }
  const pawl = (...words: string[]) => made.pawl([...words, '--bootstrap', broker.bootstrap], { env })
  const sinks = (action: string, ...more: string[]) => pawl('sinks', action, 'shop.ts', ...more)
  const run = (...more: string[]) => pawl('run', 'shop.ts', '--until', 'caught-up', ...more)
  const orders = async (...values: string[]) => {
    const from = await freshTopic(broker)
    await send(
      broker,
      from,
      values.map((value) => ({ value })),
    )
    env = { ...env, ORDERS: from }
  }
  /** The directory of the pipeline is gone, its sinks are not. */
  const beginAnew = async (...values: string[]) => {
    rmSync(made.path('.pawl'), { recursive: true })
    await orders(...values)
  }
  /** Appended rows, and values by key. */
  const shown = async () => {
    const sorted = (values: readonly unknown[]) => values.map(String).sort().join('')
    const all = [
      await seenValues(link, to),
      (await maria.query('SELECT v FROM orders')).map(({ v }) => v),
      (await pg.query('SELECT v FROM shop.orders')).map(({ v }) => v),
      await client.hvals('orders'),
      (await scan(dynamo, table)).map(({ v }) => v!.S),
    ].map(sorted)
    expect(new Set(all.slice(0, 3)).size, all.join(' ')).toBe(1)
    expect(new Set(all.slice(3)).size, all.join(' ')).toBe(1)
    return { appended: all[0], byKey: all[3] }
  }
  /** Whether the marker tables and the control topic are there. */
  const markers = async (control: string) => ({
    pg: (await pg.query("SELECT to_regclass('shop.marks') AS t"))[0].t,
    maria: (await maria.query("SHOW TABLES LIKE 'pawl_markers'")).length,
    kafka: (await link.topics([control])).size,
  })
  return { to, table, sinks, run, orders, beginAnew, shown, markers }
}

test('prepares, lists, adopts and resets the markers of five kinds of sinks', { retry: 0 }, async ({
  broker,
  databases,
  skip,
}) => {
  const lacking = missingEmulatorTool()
  if (lacking !== null) skip(lacking)
  const { to, table, sinks, run, orders, beginAnew, shown, markers } = await shopOn(broker, databases)
  // prepare: shown, then done, then repeated.
  await orders('a', 'b')
  const asked = await succeed(sinks('prepare', '--dry-run'))
  for (const part of [
    `sink dynamo in dynamodb:${table}: would be sent\ndynamodb:CreateTable {"TableName":"${table}-markers"`,
    `sink kafka in kafka:${to}: would be sent\nkafka-topics.sh --create --if-not-exists --topic pawl-control`,
    'sink maria in mysql:orders: would be sent\nCREATE TABLE IF NOT EXISTS `pawl_markers` (',
    'sink pg in postgres:shop.orders: would be sent\nCREATE TABLE IF NOT EXISTS "shop"."marks" (',
    'sink redis in redis:hash:orders: needs nothing\n',
  ])
    expect(asked.stdout).toContain(part)
  const control = /--topic (\S+)/.exec(asked.stdout)![1]
  expect(await markers(control)).toEqual({ pg: null, maria: 0, kafka: 0 })
  const prepared = [await succeed(sinks('prepare')), await succeed(sinks('prepare'))]
  for (const { stdout } of prepared) expect(stdout).toBe(asked.stdout.replaceAll('would be sent', 'is prepared, as by'))
  expect(await markers(control)).toEqual({ pg: 'shop.marks', maria: 1, kafka: 1 })

  await succeed(run())
  const listed = await succeed(sinks('list'))
  for (const lane of lanes)
    expect(listed.stdout).toMatch(new RegExp(`^${lane} .*epoch \\d of incarnation \\w{32} +sound$`, 'm'))
  expect(await shown()).toEqual({ appended: 'ab', byKey: 'ab' })

  // adopt: another incarnation is refused until a person decides.
  await beginAnew('b', 'c')
  const refused = await run()
  expect([refused.code, refused.stderr]).toEqual([3, expect.stringContaining('MARKER_FOREIGN')])
  const foreign = await sinks('list', '--json')
  expect([foreign.code, codes(foreign)]).toEqual([1, all('MARKER_FOREIGN')])
  const unsure = await sinks('adopt')
  expect([unsure.code, unsure.stderr]).toEqual([2, expect.stringContaining('add --yes')])
  await succeed(sinks('adopt', '--yes'))
  expect((await succeed(sinks('adopt', '--yes'))).stdout).toBe('no lane to adopt\n')
  await succeed(run('--resume'))
  expect(await shown()).toEqual({ appended: 'abbc', byKey: 'abc' })
  expect(codes(await succeed(sinks('list', '--json')))).toEqual(all(null))

  // reset: the markers go, the rows stay.
  await beginAnew('c', 'd')
  const [only] = (await succeed(sinks('reset', '--yes', '--sink', 'redis', '--json'))).records()
  expect((only!.lanes as unknown[]).length).toBe(1)
  await succeed(sinks('reset', '--yes'))
  await succeed(run())
  expect(await shown()).toEqual({ appended: 'abbccd', byKey: 'abcd' })
})

/** In every connection string, as it is and percent-encoded. */
const secret = 'hushhush'
const password = `${secret}/@ä%`

const guarded = `
import { pipeline, text, topic } from 'pawl'
import { mysql } from 'pawl/mysql'
import { postgres } from 'pawl/postgres'
import { redis } from 'pawl/redis'
const { POSTGRES, MARIADB, REDIS } = process.env
const rows = pipeline('guarded', { checkpoint: { intervalMs: 0 }, restart: { strategy: 'none' } })
  .from(topic('orders', { value: text() }))
  .withKey((order) => order)
const row = (v: string) => ({ v })
export default rows.to('maria', mysql({ connection: MARIADB!, table: 'guarded', row }))
  .also(rows.to('pg', postgres({ connection: POSTGRES!, table: 'guarded', row })))
  .also(rows.to('redis', redis({ connection: () => REDIS!, type: 'hash', key: 'guarded', value: text() })))
`

/** Users who are asked for their password, with a table each; what connects to them, by variable. */
async function guardedUsers({ pg, maria, redis }: Databases): Promise<Readonly<Record<string, string>>> {
  const [{ hba_file: file }] = await pg.query('SHOW hba_file')
  const lines = ['host all guarded all scram-sha-256', 'host all all all trust'].map((line) => `('${line}')`)
  await pg.query(`CREATE USER guarded PASSWORD '${password}'; GRANT ALL ON SCHEMA public TO guarded;
    CREATE TABLE guarded (v text); ALTER TABLE guarded OWNER TO guarded;
    COPY (VALUES ${lines.join(', ')}) TO '${file}'; SELECT pg_reload_conf()`)
  const root = await mysql.createConnection({ socketPath: `${maria.directory}/s`, user: 'root' })
  await root.query(`CREATE USER guarded@'%' IDENTIFIED BY '${password}'`)
  await root.query(`GRANT ALL ON pawl.* TO guarded@'%'`)
  await root.end()
  await maria.query('CREATE TABLE guarded (v varchar(20))')
  const client = redis.connect()
  await client.call('ACL', 'SETUSER', 'guarded', 'on', `>${password}`, '~*', '+@all')
  client.disconnect()
  const urls = { MARIADB: maria.url, POSTGRES: pg.url, REDIS: redis.url }
  return Object.fromEntries(
    Object.entries(urls).map(([name, text]) => [
      name,
      text.replace(/\/\/.*@/, `//guarded:${encodeURIComponent(password)}@`),
    ]),
  )
}

/** Names of files with the secret in them. */
function keptIn(directory: string): string[] {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true })
  const names = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name))
  return names.filter((name) => readFileSync(name).includes(secret))
}

test('no command prints a password or keeps it: when all is well, when it is wrong, when the server is away', {
  retry: 0,
}, async ({ databases }) => {
  const env = { ...(await guardedUsers(databases)), PAWL_DEBUG: '1' }
  using made = project({ 'guarded.ts': guarded })
  const call = async (words: readonly string[], over: Readonly<Record<string, string>> = {}) => {
    const ended = await made.pawl(words, { env: { ...env, ...over } })
    expect(ended.stdout + ended.stderr, words.join(' ')).not.toContain(secret)
    return ended
  }
  const run = ['run', 'guarded.ts', '--until', 'caught-up', '--json']
  await succeed(made.pawl(['produce', 'orders', '--partitions', '1'], { input: 'a\nb\n' }))
  cpSync(made.path('.pawl'), made.path('fresh'), { recursive: true })
  await succeed(call(run))
  await Promise.all(
    [
      'show last',
      'status',
      'epochs',
      'sinks list guarded.ts',
      'diff guarded.ts',
      'doctor guarded.ts',
      'verify --file guarded.ts',
    ].map(async (words) => succeed(call(words.split(' ')))),
  )
  expect((await databases.pg.query('SELECT v FROM guarded')).length).toBe(2)

  const wrong = (url: string) => url.replace(secret, `${secret}-not`)
  const away = (url: string) => url.replace(/:\d+\//, ':1/')
  for (const [mistake, code] of [
    [wrong, 'AUTHENTICATION_FAILED'],
    [away, 'SINK_UNAVAILABLE'],
  ] as const) {
    const urls = Object.entries(env).filter(([name]) => name !== 'PAWL_DEBUG')
    const runs = urls.map(async ([name, url]) => {
      // Another stage, since the sinks know the first pipeline of this name.
      const directory = `${code}-${name}`.toLowerCase().replace('_', '-')
      cpSync(made.path('fresh'), made.path(directory), { recursive: true })
      const { stdout, stderr } = await call([...run, '--dir', directory, '--stage', directory], {
        [name]: mistake(url),
      })
      expect(stdout + stderr, name).toContain(code)
    })
    const all = Object.fromEntries(urls.map(([name, url]) => [name, mistake(url)]))
    const looks = ['maria', 'pg', 'redis'].map(async (id) => {
      // With the stack and its causes.
      const list = await call(['sinks', 'list', 'guarded.ts', '--sink', id, '--json'], all)
      expect([list.code, list.stderr]).toEqual([1, expect.stringMatching(new RegExp(`${code}[^]*\\n {4}at `))])
    })
    const doctor = await call(['doctor', 'guarded.ts'], all)
    expect([doctor.code, doctor.stdout]).toEqual([1, expect.stringContaining(code)])
    await Promise.all(looks)
    await Promise.all(runs)
  }
  const kept = readdirSync(made.directory).filter((name) => name !== 'node_modules' && name !== 'guarded.ts')
  expect(kept.length).toBe(8)
  expect(kept.flatMap((name) => keptIn(made.path(name)))).toEqual([])
})
