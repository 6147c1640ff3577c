import { expect, onTestFinished } from 'vitest'
import orderTotals, { type checked, ordersToMySql } from '../../examples/to-mysql/pipeline.ts'
import { kafka } from '../../lib/adapters/kafka/cluster.ts'
import { prng } from '../../lib/model/prng.ts'
import { missingTool, sharedBroker } from '../support/kafka.ts'
import { freshTopic, send } from '../support/kafka-topics.ts'
import { type MariaDb, mariaDbTest as test } from '../support/mariadb.ts'
import { install } from '../support/table-runs.ts'

const random = prng(5)
const customers = ['ann', 'bob', 'Čeněk']
/** The example commits every ten seconds. */
const often = { checkpoint: { intervalMs: 100 } } as const
const poison = '{"customer":"bob","cents":"many"}'

const goodOrders = (count: number) =>
  Array.from({ length: count }, () => JSON.stringify({ customer: random.pick(customers), cents: random.int(10_000) }))

/** What the table must show of these orders. */
function folded(orders: readonly string[]) {
  const totals = new Map<string, { customer: string; orders: number; cents: number }>()
  for (const order of orders) {
    const { customer, cents } = JSON.parse(order) as { customer: string; cents: number }
    const total = totals.get(customer) ?? { customer, orders: 0, cents: 0 }
    totals.set(customer, { customer, orders: total.orders + 1, cents: total.cents + cents })
  }
  return [...totals.values()].sort((a, b) => (a.customer < b.customer ? -1 : 1))
}

async function freshTables(server: MariaDb) {
  process.env.MYSQL_URL = server.url
  await server.query(`DROP TABLE IF EXISTS order_totals, rejected_orders, pawl_markers;
    CREATE TABLE order_totals (customer varchar(40) COLLATE utf8mb4_bin PRIMARY KEY, orders bigint, cents bigint);
    CREATE TABLE rejected_orders (place varchar(60), operator varchar(40), message text, value blob)`)
  return {
    shown: async () => (await server.query('SELECT * FROM order_totals ORDER BY customer')).map((row) => ({ ...row })),
    rejected: async () => (await server.query('SELECT * FROM rejected_orders')).map((row) => ({ ...row })),
  }
}

test('to-mysql: nothing of a poisoned epoch is visible, and once the operator is mended the totals are exact', async ({
  mariaDb,
}) => {
  const { shown } = await freshTables(mariaDb)
  const settings = { restart: { strategy: 'none' }, ...often } as const
  const strict = install(ordersToMySql(settings))
  onTestFinished(strict.remove)
  const before = goodOrders(50)
  await strict.append(...before)
  expect(await strict.run()).toMatchObject({ reason: 'caught-up' })
  expect(await shown()).toEqual(folded(before))
  const around = [...goodOrders(30), poison, ...goodOrders(30)]
  await strict.append(...around)
  const parked = await strict.run()
  expect(parked).toMatchObject({ reason: 'parked', code: 'OPERATOR_FAILED' })
  expect(parked.message).toMatch(/orders.*80.*check|check.*orders.*80/)
  expect(await shown()).toEqual(folded(before))
  const lenient: typeof checked = (order) => {
    const { customer, cents } = order as { customer: string; cents: unknown }
    return { customer, cents: typeof cents === 'number' ? cents : 0 }
  }
  const mended = strict.rebuild(ordersToMySql(settings, lenient))
  expect(await mended.run({ resume: true })).toMatchObject({ reason: 'caught-up' })
  const all = [...before, ...around.map((order) => (order === poison ? '{"customer":"bob","cents":0}' : order))]
  expect(await shown()).toEqual(folded(all))
})

test('to-mysql: a poisoned order goes into the table of dead letters, and the totals are exact', async ({
  mariaDb,
}) => {
  const { shown, rejected } = await freshTables(mariaDb)
  const runs = install(orderTotals)
  onTestFinished(runs.remove)
  const [first, second] = [goodOrders(20), goodOrders(20)]
  await runs.append(...first, poison, ...second)
  expect(await runs.run()).toMatchObject({ reason: 'caught-up' })
  expect(await shown()).toEqual(folded([...first, ...second]))
  const message = 'cents is not a whole number'
  expect(await rejected()).toEqual([{ place: 'orders/0/20', operator: 'check', message, value: Buffer.from(poison) }])
})

test('to-mysql: from a topic of Kafka into the table', async ({ mariaDb, skip }) => {
  const missing = process.env.KAFKA_BROKERS ? null : missingTool()
  if (missing !== null) skip(missing)
  const { shown } = await freshTables(mariaDb)
  const broker = await sharedBroker()
  const name = await freshTopic(broker, 3)
  const real = kafka({ brokers: broker.bootstrap })
  const cluster = {
    kind: 'kafka',
    openSource: ((spec, context) => real.openSource({ ...spec, topic: name }, context)) as typeof real.openSource,
    openSink: real.openSink,
  }
  const runs = install(ordersToMySql(often), { cluster })
  onTestFinished(runs.remove)
  const orders = goodOrders(200)
  await send(
    broker,
    name,
    orders.map((value, i) => ({ value, partition: i % 3 })),
  )
  expect(await runs.run()).toMatchObject({ reason: 'caught-up' })
  expect(await shown()).toEqual(folded(orders))
})
