import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { postgres as postgresSink } from '../../lib/adapters/postgres/sink.ts'
import { json, text } from '../../lib/model/serde.ts'
import { pipeline } from '../../lib/stream/pipeline.ts'
import { topic } from '../../lib/stream/topic.ts'
import { type Postgres, postgresTest as test } from '../support/postgres.ts'
import { postgresFolder } from '../support/server.ts'
import { freshName } from '../support/table-rig.ts'
import { install } from '../support/table-runs.ts'

const settings = { checkpoint: { intervalMs: 0 }, promotionRetryMs: [50, 200], retain: { epochs: 20 } } as const

interface Total {
  readonly sum: number
  readonly orders: number
}

/** Orders `customer cents` become totals, upserted. */
function totalsPipeline(server: Postgres, table: string) {
  return pipeline(table.replace('_', '-'), settings)
    .from(topic('orders', { value: text() }))
    .keyBy((line) => line.split(' ')[0]!)
    .aggregate('total', {
      create: (): Total => ({ sum: 0, orders: 0 }),
      add: (total, line) => ({ sum: total.sum + Number(line.split(' ')[1]), orders: total.orders + 1 }),
    })
    .to(
      'totals',
      postgresSink({
        connection: () => server.url,
        table,
        mode: 'upsert',
        key: ['customer'],
        row: (total: Total, customer: string) => ({ customer, ...total }),
      }),
    )
}

function program(server: Postgres, name: string, ...args: readonly string[]) {
  return execFileSync(join(postgresFolder(), name), [`--dbname=${server.url}`, ...args])
}

test('a database restored from a dump taken ten epochs ago is healed', async ({ postgres }) => {
  const table = freshName('totals')
  await postgres.query(`CREATE TABLE ${table} (customer text PRIMARY KEY, sum bigint, orders bigint);
    CREATE TABLE IF NOT EXISTS others (n int)`)
  const runs = install(totalsPipeline(postgres, table))
  onTestFinished(runs.remove)
  const epoch = async (number: number) => {
    await runs.append(...Array.from({ length: 20 }, (_, i) => `c${(i * number) % 7} ${i + number}`))
    expect(await runs.run()).toMatchObject({ reason: 'caught-up' })
  }
  for (let number = 1; number <= 5; number++) await epoch(number)
  const dump = program(postgres, 'pg_dump', '--clean', '--if-exists')
  const rows = () => postgres.query(`SELECT * FROM ${table} ORDER BY customer`)
  const before = await rows()
  for (let number = 6; number <= 15; number++) await epoch(number)
  expect(await rows()).not.toEqual(before)
  execFileSync('psql', [`--dbname=${postgres.url}`, '--quiet', '--set=ON_ERROR_STOP=1'], {
    input: dump,
    stdio: ['pipe', 'ignore', 'inherit'],
  })
  expect(await rows()).toEqual(before)
  await epoch(16)
  expect(runs.events).toContainEqual(expect.objectContaining({ event: 'healed', sink: 'totals', lane: 0 }))
  const wanted = new Map<string, [number, number]>()
  for (let number = 1; number <= 16; number++) {
    for (let i = 0; i < 20; i++) {
      const key = `c${(i * number) % 7}`
      const [sum, orders] = wanted.get(key) ?? [0, 0]
      wanted.set(key, [sum + i + number, orders + 1])
    }
  }
  const shown = (await rows()).map(({ customer, sum, orders }) => [customer, [Number(sum), Number(orders)]])
  expect(shown).toEqual([...wanted].sort())
})

test('a constraint parks the pipeline, which names the row; resumed once the table is mended, it loses and repeats nothing', async ({
  postgres,
}) => {
  const table = freshName('orders')
  await postgres.query(`CREATE TABLE ${table} (id bigint PRIMARY KEY, cents int CHECK (cents >= 0))`)
  const orders = pipeline(table.replace('_', '-'), settings)
    .from(topic('orders', { value: json<{ id: number; cents: number }>() }))
    .to('table', postgresSink({ connection: () => postgres.url, table, key: ['id'] }))
  const runs = install(orders)
  onTestFinished(runs.remove)
  const order = (id: number, cents = id) => JSON.stringify({ id, cents })
  await runs.append(...[1, 2, 3].map((id) => order(id)))
  await runs.run()
  await runs.append(order(4), order(5, -5), order(6))
  const parked = await runs.run()
  expect(parked).toMatchObject({ reason: 'parked', code: 'ROWS_REFUSED' })
  expect(parked.message).toMatch(/sink table, lane 0, epoch 2, .*row id=5/)
  expect(await postgres.query(`SELECT count(*)::int AS n FROM ${table}`)).toEqual([{ n: 3 }])
  await postgres.query(`ALTER TABLE ${table} DROP CONSTRAINT ${table}_cents_check`)
  expect(await runs.run({ resume: true })).toMatchObject({ reason: 'caught-up' })
  const shown = await postgres.query(`SELECT id::int, cents FROM ${table} ORDER BY id`)
  expect(shown).toEqual([1, 2, 3, 4, 5, 6].map((id) => ({ id, cents: id === 5 ? -5 : id })))
})

test('case 21: a server that is gone between commit and promote loses nothing and repeats nothing', async ({
  postgres,
}) => {
  const table = freshName('rows')
  await postgres.query(`CREATE TABLE ${table} (n int)`)
  const numbers = pipeline(table.replace('_', '-'), settings)
    .from(topic('numbers', { value: text() }))
    .to('rows', postgresSink({ connection: () => postgres.url, table, row: (value: string) => ({ n: Number(value) }) }))
  const runs = install(numbers)
  onTestFinished(runs.remove)
  await runs.append('1')
  await runs.run()
  await runs.append('2', '3')
  await postgres.kill()
  const running = runs.run()
  expect(await runs.told('parked')).toMatchObject({ kind: 'promotion', code: 'SINK_UNAVAILABLE' })
  await postgres.restart()
  expect(await running).toMatchObject({ reason: 'caught-up' })
  expect(await postgres.query(`SELECT n FROM ${table} ORDER BY n`)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }])
})
