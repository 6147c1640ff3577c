/**
 * Orders from a topic into a table of MySQL or MariaDB: totals per customer, exactly once.
 *
 * A commit every ten seconds. An order that the operator cannot take stops the pipeline before anything of its
 * epoch is visible; with dead letters it goes into a table of its own, from the same commit as the totals.
 */
import { deadLetter, json, type PipelineOptions, pipeline, type RejectedRecord, topic } from 'pawl'
import { mysql } from 'pawl/mysql'

interface Total {
  readonly orders: number
  readonly cents: number
}

// A function: the secret is looked up when a connection opens, and stands in no file and no log.
const connection = () => process.env.MYSQL_URL ?? 'mysql://root@127.0.0.1:3306/shop'

/** CREATE TABLE order_totals (customer varchar(40) PRIMARY KEY, orders bigint, cents bigint) */
export const totals = mysql({
  connection,
  table: 'order_totals',
  mode: 'upsert',
  key: ['customer'],
  row: (total: Total, customer: string) => ({ customer, ...total }),
})

/** CREATE TABLE rejected_orders (place varchar(60), operator varchar(40), message text, value blob) */
export const deadLetters = deadLetter(
  'rejected',
  mysql({
    connection,
    table: 'rejected_orders',
    row: ({ topic, partition, offset, operator, error, value }: RejectedRecord) => ({
      place: `${topic}/${partition}/${offset}`,
      operator,
      message: error.message,
      value: value === null ? null : Buffer.from(value, 'base64'),
    }),
  }),
)

/** What an order must be; throws for anything else. */
export function checked(order: unknown) {
  const { customer, cents } = Object(order)
  if (typeof customer !== 'string') throw new Error('customer is missing')
  if (!Number.isSafeInteger(cents)) throw new Error('cents is not a whole number')
  return { customer, cents: Number(cents) }
}

/** The pipeline, with settings and a check of your own. */
export const ordersToMySql = (settings: PipelineOptions = {}, check = checked) =>
  pipeline('to-mysql', { checkpoint: { intervalMs: 10_000 }, ...settings })
    .from(topic('orders', { value: json() }))
    .map('check', (order) => check(order))
    .keyBy((order) => order.customer)
    .aggregate('total', {
      create: (): Total => ({ orders: 0, cents: 0 }),
      add: (total, order) => ({ orders: total.orders + 1, cents: total.cents + order.cents }),
    })
    .to('totals', totals)

export default ordersToMySql({ onError: deadLetters })
