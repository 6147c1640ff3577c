/**
 * Orders: totals per customer, and a second sink for the orders that make no sense.
 *
 * Both sinks advance from the same commit: an order is either in a total or among the dead letters, never in both
 * and never in neither, whatever crashes.
 */
import { deadLetter, json, nullable, pipeline, text, topic } from 'pawl'

// `json()` believes nothing of what comes from outside: the values are unknown until they are checked.
const orders = topic('orders', { value: json() })
const totals = topic('order-totals', { key: text(), value: json() })

// A dead letter says where the record lies (topic, partition, offset), which operator rejected it, and why.
const deadLetters = topic('order-dead-letters', { key: nullable(text()), value: json() })

export default pipeline('orders', {
  checkpoint: { intervalMs: 200 },
  onError: deadLetter('dead-letters', deadLetters),
})
  // What is no JSON at all is rejected here, by the source.
  .from(orders)
  // An operator rejects a record by throwing. A schema from zod or valibot does the same: `json(schema)`.
  .map('check', (order) => {
    const { customer, cents } = Object(order)
    if (typeof customer !== 'string') throw new Error('customer is missing')
    if (typeof cents !== 'number' || !Number.isSafeInteger(cents)) throw new Error('cents is not a whole number')
    if (cents < 0) throw new Error('cents is negative')
    return { customer, cents }
  })
  .keyBy((order) => order.customer)
  .aggregate('total', {
    create: () => ({ orders: 0, cents: 0 }),
    add: (total, order) => ({ orders: total.orders + 1, cents: total.cents + order.cents }),
  })
  .to('totals', totals)
