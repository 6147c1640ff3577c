/** What a Delta table as a sink takes, without a single type argument. Checked by `types.test.ts`. */
import { delta } from '../../lib/delta.ts'
import { json, nullable, pipeline, text, topic } from '../../lib/index.ts'

interface Order {
  readonly customer: string
  readonly cents: number
}

const columns = { customer: 'string', cents: 'long', price: { type: 'decimal(18,2)', nullable: false } } as const
const orders = pipeline('p').from(topic('orders', { key: nullable(text()), value: json<Order>() }))
const totals = orders.keyBy((order) => order.customer).count('count')

orders.to('a', delta({ table: '/lake/orders', columns }))
orders.to('a', delta({ table: 's3://bucket/orders', columns, row: ({ cents }: Order) => ({ price: `${cents}` }) }))
totals.to('b', delta({ table: 't', columns, row: (count: number, customer: string) => ({ customer, cents: count }) }))
delta({ table: 's3://b/t', columns, partitionBy: ['customer'], s3: { region: 'eu-west-1', forcePathStyle: true } })

// @ts-expect-error the values are orders
orders.to('a', delta({ table: 't', columns, row: (count: number) => ({ cents: count }) }))
// @ts-expect-error the keys may be null
orders.to('a', delta({ table: 't', columns, row: (order: Order, key: string) => ({ customer: key, ...order }) }))
// @ts-expect-error a row is an object of columns
orders.to('a', delta({ table: 't', columns, row: (order: Order) => order.cents }))
// @ts-expect-error an unknown type
delta({ table: 't', columns: { n: 'number' } })
// @ts-expect-error a table has columns
delta({ table: 't' })
