/**
 * The examples in a hostile world: seeds draw partitions, epochs, arrivals and faults.
 *
 * The simulation checks the protocol; here what is visible at the end is held against folds that know nothing of it.
 * Sinks are restored from backups in the last suite only: such a world ends with input of its own.
 */
import { describe, expect, test } from 'vitest'
import bids from '../../examples/bids/pipeline.ts'
import orders from '../../examples/orders/pipeline.ts'
import wordCount from '../../examples/word-count/pipeline.ts'
import type { MemoryRow } from '../../lib/adapters/memory/table.ts'
import { prng } from '../../lib/model/prng.ts'
import { simulate } from '../../lib/testing/index.ts'
import { record } from '../../lib/testing/workload.ts'

const seeds = Array.from({ length: 20 }, (_, i) => i + 1)
const random = prng(3)

const vocabulary = ['ratchet', 'pawl', 'tooth', 'gear']
const lines = Array.from({ length: 80 }, () =>
  Array.from({ length: random.int(5) }, () => random.pick(vocabulary)).join(' '),
)

const bidStartMs = 1_700_000_000_000
const bidValues = [
  ...Array.from({ length: 150 }, (_, i) => {
    // Up to eight seconds of disorder, where two are allowed.
    const atMs = bidStartMs + i * 300 - random.int(8_000)
    return { auction: random.pick(['a', 'b']), cents: i, atMs }
  }),
  // Closes every window, once for each partition that the seed may draw.
  ...Array.from({ length: 60 }, () => ({ auction: 'closing', cents: 0, atMs: bidStartMs + 3_600_000 })),
]

const orderValues = Array.from({ length: 120 }, (_, i) => {
  if (i % 7 === 0) return record({ value: null, raw: Buffer.from('{"customer":') })
  if (i % 11 === 0) return { customer: 'ann' }
  return { customer: random.pick(['ann', 'bob']), cents: random.int(100) }
})

describe('word-count', () => {
  const wanted = new Map<string, number>()
  for (const word of lines.flatMap((line) => line.split(' ').filter((word) => word !== '')))
    wanted.set(word, (wanted.get(word) ?? 0) + 1)

  test.each(seeds)('counts each word once in world %i', async (seed) => {
    const verify = (rows: Rows) => expect(lastByKey(rows, 'word-counts')).toEqual(wanted)
    await simulate(wordCount, { seed, input: { lines }, rollbacks: false, verify })
  })
})

describe('bids', () => {
  interface Total {
    readonly count: number
    readonly sum: number
  }
  const keyOf = ({ auction, atMs }: (typeof bidValues)[number]) => `${auction}@${Math.floor(atMs / 10_000) * 10_000}`
  const add = (totals: Map<string, Total>, key: string, { count, sum }: Total) => {
    const { count: counts, sum: sums } = totals.get(key) ?? { count: 0, sum: 0 }
    totals.set(key, { count: counts + count, sum: sums + sum })
  }
  const wanted = new Map<string, Total>()
  for (const bid of bidValues) if (bid.auction !== 'closing') add(wanted, keyOf(bid), { count: 1, sum: bid.cents })

  // Which bids are late depends on where epochs are cut; that each one is somewhere, and once, does not.
  test.each(seeds)('puts each bid into a total or among the late ones in world %i', async (seed) => {
    const verify = (rows: Rows) => {
      const found = lastByKey(rows, 'bid-totals') as Map<string, Total>
      for (const { value } of rows.get('late-bids')!) {
        const bid = JSON.parse(String(value)) as (typeof bidValues)[number]
        if (bid.auction !== 'closing') add(found, keyOf(bid), { count: 1, sum: bid.cents })
      }
      expect(found).toEqual(wanted)
    }
    await simulate(bids, { seed, input: { bids: bidValues }, rollbacks: false, verify })
  })
})

describe('orders', () => {
  const wanted = new Map<string, { orders: number; cents: number }>()
  let rejected = 0
  for (const value of orderValues) {
    const { customer, cents } = value as { customer?: string; cents?: number }
    if (customer === undefined || cents === undefined) rejected++
    else {
      const { orders: count, cents: sum } = wanted.get(customer) ?? { orders: 0, cents: 0 }
      wanted.set(customer, { orders: count + 1, cents: sum + cents })
    }
  }

  test.each(seeds)('puts each order into a total or among the dead letters in world %i', async (seed) => {
    const verify = (rows: Rows) => {
      expect(lastByKey(rows, 'totals')).toEqual(wanted)
      const places = rows.get('dead-letters')!.map(({ value }) => {
        const { partition, offset } = JSON.parse(String(value)) as { partition: number; offset: string }
        return `${partition}/${offset}`
      })
      expect(new Set(places).size).toBe(rejected)
      expect(places).toHaveLength(rejected)
    }
    await simulate(orders, { seed, input: { orders: orderValues }, rollbacks: false, verify })
  })
})

describe('sinks restored from a backup', () => {
  test.each(seeds)('are healed in world %i', async (seed) => {
    await simulate(wordCount, { seed, input: { lines } })
    await simulate(bids, { seed, input: { bids: bidValues } })
    await simulate(orders, { seed, input: { orders: orderValues } })
  })
})

type Rows = ReadonlyMap<string, readonly MemoryRow[]>

function lastByKey(rows: Rows, sink: string): Map<string, unknown> {
  return new Map(rows.get(sink)!.map(({ key, value }) => [String(key), JSON.parse(String(value)) as unknown]))
}
