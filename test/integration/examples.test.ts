/**
 * The examples, run as people run them, against folds that know nothing of them.
 */
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import bids from '../../examples/bids/pipeline.ts'
import orders from '../../examples/orders/pipeline.ts'
import flakyWordCount from '../../examples/word-count/flaky.ts'
import wordCount from '../../examples/word-count/pipeline.ts'
import { prng } from '../../lib/model/prng.ts'
import { type Given, lastByKey, type Ran, runEmbedded, runOnKafka, type Shown } from '../support/examples.ts'
import { kafkaTest } from '../support/kafka.ts'

const random = prng(11)

/** Cuts records into portions, each of which is at least one epoch. */
function portionsOf(records: readonly Given[], count: number): Given[][] {
  const size = Math.ceil(records.length / count)
  return Array.from({ length: count }, (_, i) => records.slice(i * size, (i + 1) * size))
}

describe('word-count', () => {
  const vocabulary = ['Ratchet', 'pawl', 'Zähler', 'naïve', 'tooth', '42', 'кот']
  const lines = Array.from({ length: 3000 }, () =>
    Array.from({ length: random.int(6) }, () => random.pick(vocabulary)).join(', '),
  )
  const portions = portionsOf(
    lines.map((value) => ({ partition: random.int(3), value })),
    4,
  )
  const counts = new Map<string, number>()
  for (const word of lines.flatMap((line) => line.split(', ').filter((word) => word !== ''))) {
    const key = word.toLowerCase()
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  const wanted = Object.fromEntries(counts)

  test('counts each word once in a directory', async () => {
    const { rows } = await runEmbedded(wordCount, portions)
    expect(lastByKey(rows['word-counts'])).toEqual(wanted)
    expectRising(rows['word-counts'])
  })

  kafkaTest('counts each word once from topic to topic', async ({ broker }) => {
    const { rows } = await runOnKafka(broker, wordCount, portions)
    expect(lastByKey(rows['word-counts'])).toEqual(wanted)
    expectRising(rows['word-counts'])
  })

  test('counts each word once although an operator throws at random', async () => {
    seedChance()
    const { rows, events } = await runEmbedded(flakyWordCount, portions)
    expect(lastByKey(rows['word-counts'])).toEqual(wanted)
    expectRising(rows['word-counts'])
    expectOnlyStumbles(events)
  })

  kafkaTest('counts each word once from topic to topic although an operator throws', async ({ broker }) => {
    seedChance()
    const { rows, events } = await runOnKafka(broker, flakyWordCount, portions)
    expect(lastByKey(rows['word-counts'])).toEqual(wanted)
    expectRising(rows['word-counts'])
    expectOnlyStumbles(events)
  })
})

/** A count that came twice, or went back, was made visible twice. */
function expectRising(rows: readonly Shown[]): void {
  const before = new Map<string | null, number>()
  for (const { key, value } of rows) {
    expect(value).toBeGreaterThan(before.get(key) ?? 0)
    before.set(key, value as number)
  }
}

/** Chance that comes true every 700th time: an epoch of 500 lines that is tried again passes. */
function seedChance(): void {
  let tries = 0
  const spy = vi.spyOn(Math, 'random').mockImplementation(() => (++tries % 700 === 0 ? 0 : 0.5))
  onTestFinished(() => spy.mockRestore())
}

function expectOnlyStumbles(events: Ran['events']): void {
  const aborted = events.filter(({ event }) => event === 'aborted')
  expect(aborted.length).toBeGreaterThan(2)
  for (const event of aborted)
    expect(event).toMatchObject({ code: 'OPERATOR_FAILED', message: expect.stringContaining('stumbled') })
}

describe('bids', () => {
  const startMs = 1_700_000_000_000
  const sizeMs = 10_000
  const auctions = ['a-1', 'a-2', 'a-3']
  const bid = (auction: string, atMs: number, cents: number, partition = 0): Given => {
    return { partition, value: JSON.stringify({ auction, cents, atMs }) }
  }
  const onTime = Array.from({ length: 2000 }, (_, i) => {
    // Twice a partition's step and the disorder stay within the two seconds that are allowed.
    const atMs = startMs + i * 50 - random.int(1_900)
    return bid(random.pick(auctions), atMs, 1 + random.int(10_000), i % 3)
  })
  /** Moves every partition's watermark far beyond all windows. */
  const closing = [0, 1, 2].map((partition) => bid('closing', startMs + 3_600_000, 1, partition))
  const late = [bid('a-1', startMs + 5, 7, 1), bid('a-9', startMs + 6, 8, 2)]
  const portions = [...portionsOf(onTime, 5), closing, late]

  const wanted: Record<string, { count: number; sum: number }> = {}
  for (const { value } of onTime) {
    const { auction, cents, atMs } = JSON.parse(value) as { auction: string; cents: number; atMs: number }
    const key = `${auction}@${Math.floor(atMs / sizeMs) * sizeMs}`
    wanted[key] ??= { count: 0, sum: 0 }
    wanted[key].count++
    wanted[key].sum += cents
  }
  const wantedLate = late.map(({ value }) => JSON.parse(value) as { auction: string })

  function expectBids({ rows }: Ran): void {
    expect(lastByKey(rows['bid-totals'])).toEqual(wanted)
    expect(rows['bid-totals']).toHaveLength(Object.keys(wanted).length)
    expect(rows['late-bids'].map(({ value }) => value)).toEqual(expect.arrayContaining(wantedLate))
    expect(rows['late-bids']).toHaveLength(wantedLate.length)
  }

  test('totals each auction and ten seconds once in a directory, and leads late bids aside', async () => {
    expectBids(await runEmbedded(bids, portions))
  })

  kafkaTest('totals each auction and ten seconds once from topic to topic', async ({ broker }) => {
    expectBids(await runOnKafka(broker, bids, portions))
  })

  test('corrects a total while the allowed lateness lasts', async () => {
    const windowEndMs = Math.ceil(startMs / sizeMs) * sizeMs + sizeMs
    const all = (atMs: number) => [0, 1, 2].map((partition) => bid('tick', atMs, 1, partition))
    const { rows } = await runEmbedded(bids, [
      [bid('a-1', windowEndMs - 1, 10)],
      all(windowEndMs + 2_000),
      [bid('a-1', windowEndMs - 2, 5)],
      all(windowEndMs + 7_000),
      [bid('a-1', windowEndMs - 3, 100)],
    ])
    const key = `a-1@${windowEndMs - sizeMs}`
    expect(rows['bid-totals'].filter((row) => row.key === key)).toEqual([
      { key, value: { count: 1, sum: 10 } },
      { key, value: { count: 2, sum: 15 } },
    ])
    expect(rows['late-bids']).toEqual([{ key: 'a-1', value: { auction: 'a-1', cents: 100, atMs: windowEndMs - 3 } }])
  })
})

describe('orders', () => {
  const customers = ['ann', 'bob', 'Čeněk']
  const faults = [
    ['{"customer":"ann","cents":12', 'orders', 'JSON'],
    ['{"cents":5}', 'check', 'customer is missing'],
    ['{"customer":"bob"}', 'check', 'cents is not a whole number'],
    ['{"customer":"bob","cents":-1}', 'check', 'cents is negative'],
    ['null', 'check', 'customer is missing'],
  ] as const
  const offsets = [0, 0, 0]
  const records: Given[] = []
  const wanted: Record<string, { orders: number; cents: number }> = {}
  const wantedDead: unknown[] = []
  for (let i = 0; i < 2000; i++) {
    const partition = random.int(3)
    const offset = String(offsets[partition]++)
    const key = `order-${i}`
    if (random.chance(0.05)) {
      const [value, operator, message] = random.pick(faults)
      records.push({ partition, key, value })
      const error = { name: expect.any(String), message: expect.stringContaining(message) }
      const bytes = { key: Buffer.from(key).toString('base64'), value: Buffer.from(value).toString('base64') }
      wantedDead.push(expect.objectContaining({ source: 'orders', partition, offset, operator, error, ...bytes }))
    } else {
      const order = { customer: random.pick(customers), cents: random.int(100_000) }
      records.push({ partition, key, value: JSON.stringify(order) })
      wanted[order.customer] ??= { orders: 0, cents: 0 }
      wanted[order.customer].orders++
      wanted[order.customer].cents += order.cents
    }
  }
  const portions = portionsOf(records, 4)

  function expectOrders({ rows }: Ran): void {
    expect(lastByKey(rows.totals)).toEqual(wanted)
    expect(rows['dead-letters'].map(({ value }) => value)).toEqual(expect.arrayContaining(wantedDead))
    expect(rows['dead-letters']).toHaveLength(wantedDead.length)
    expect(wantedDead.length).toBeGreaterThan(faults.length)
  }

  test('puts each order into a total or among the dead letters in a directory', async () => {
    expectOrders(await runEmbedded(orders, portions))
  })

  kafkaTest('puts each order into a total or among the dead letters from topic to topics', async ({ broker }) => {
    expectOrders(await runOnKafka(broker, orders, portions))
  })
})
