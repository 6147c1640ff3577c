/** What a table or Redis as a sink takes, without a single type argument. Checked by `types.test.ts`. */

import { doris } from '../../lib/doris.ts'
import { deadLetter, json, nullable, pipeline, type RejectedRecord, text, topic, writeAhead } from '../../lib/index.ts'
import { mysql } from '../../lib/mysql.ts'
import { postgres } from '../../lib/postgres.ts'
import { redis } from '../../lib/redis.ts'

interface Order {
  readonly customer: string
  readonly cents: number
}

const connection = () => 'postgres://localhost/shop'
const orders = pipeline('p').from(topic('orders', { key: nullable(text()), value: json<Order>() }))
const totals = orders.keyBy((order) => order.customer).count('count')
const upsert = { connection, table: 't', mode: 'upsert', key: ['customer'] } as const

orders.to('a', postgres({ connection, table: 'orders' }))
orders.to('a', doris({ connection, table: 'shop.orders', row: ({ customer, cents }: Order) => ({ customer, cents }) }))
totals.to(
  'b',
  doris({
    ...upsert,
    onReject: 'dead-letter',
    table: 'shop.totals',
    row: (count: number, customer: string) => ({ customer, count }),
  }),
)
totals.to(
  'g',
  writeAhead({
    async write(rows, { idempotencyKey }) {
      for (const { key, value } of rows) `${idempotencyKey}${key?.length}${value?.toFixed()}`
    },
    value: json<number>(),
  }),
)
totals.to(
  'h',
  writeAhead({
    onReject: 'dead-letter',
    async write(rows) {
      return { refused: rows.flatMap(({ value }, row) => (value === 0 ? [{ row, reason: 'none', code: '422' }] : [])) }
    },
    value: json<number>(),
  }),
)
orders.to('a', postgres({ connection, table: 'orders', row: ({ customer, cents }: Order) => ({ customer, cents }) }))
totals.to('b', postgres({ ...upsert, row: (count: number, customer: string) => ({ customer, count }) }))
totals.to(
  'b',
  mysql({ ...upsert, row: (count: number, customer: string, atMs) => ({ customer, count, at: new Date(atMs) }) }),
)
totals.to(
  'c',
  postgres({ connection, table: 't', mode: 'sql', sql: 'SELECT $1', parameters: (n: number) => [BigInt(n)] }),
)
totals.to('d', redis({ connection, type: 'sorted-set', key: 'board' }))
totals.to(
  'e',
  redis({
    connection,
    type: 'sorted-set',
    key: 'board',
    score: (count: number, player: string) => count / player.length,
  }),
)
totals.to('f', redis({ connection, type: 'hash', key: 'counts', value: json<number>() }))
pipeline('p', {
  onError: deadLetter(
    'dead',
    mysql({ connection, table: 'dead', row: ({ operator }: RejectedRecord) => ({ operator }) }),
  ),
})

// @ts-expect-error the values are orders
orders.to('a', postgres({ connection, table: 'orders', row: (count: number) => ({ count }) }))
// @ts-expect-error the keys may be null
orders.to('a', mysql({ ...upsert, row: (order: Order, key: string) => ({ key, ...order }) }))
// @ts-expect-error a row is an object of columns
orders.to('a', postgres({ connection, table: 'orders', row: (order: Order) => order.cents }))
// @ts-expect-error Doris runs no statements of one's own
doris({ connection, table: 'shop.orders', mode: 'sql' })
// @ts-expect-error an unknown mode
postgres({ connection, table: 'orders', mode: 'merge' })
// @ts-expect-error a sink needs a connection
mysql({ table: 'orders' })
// @ts-expect-error keys that may be null are no text
orders.to('g', redis({ connection, type: 'hash', key: 'orders' }))
// @ts-expect-error an unknown type
redis({ connection, type: 'list', key: 'orders' })
