/**
 * The jobs of the race as pipelines, run by `pawl run bench/pipelines.ts --export NAME`.
 *
 * Topics, interval, shards and decoder (`fields` or `json`) come from the environment. Beside its work the process tells the benchmark, on standard
 * output, when it saw its first record and what it had used when it ended.
 */
import { isMainThread } from 'node:worker_threads'
import { json, jsonFields, pipeline, text, topic, tumbling } from 'pawl'

/** A bid as the generator writes it. */
interface Bid {
  auction: number
  bidder: number
  price: number
  channel: string
  ts: number
}

const { env } = process
const { BENCH_IN = 'in', BENCH_OUT = 'out', BENCH_ID = 'bench', BENCH_INTERVAL = '1000', BENCH_SHARDS = '1' } = env
const options = { checkpoint: { intervalMs: Number(BENCH_INTERVAL) }, shards: Number(BENCH_SHARDS) }
const plain = env.BENCH_DECODER === 'json' ? json<Bid>() : null
const allFields = { auction: 'number', bidder: 'number', price: 'number', channel: 'string', ts: 'number' } as const
const bids = topic(BENCH_IN, { key: text(), value: plain ?? jsonFields(allFields) })
const prices = topic(BENCH_IN, {
  key: text(),
  value: plain ?? jsonFields({ auction: 'number', price: 'number', ts: 'number' }),
})
const converted = topic(BENCH_OUT, { key: text(), value: plain ?? jsonFields(allFields) })
const totals = topic(BENCH_OUT, {
  key: text(),
  value: plain ? json<{ count: number; sum: number }>() : jsonFields({ count: 'number', sum: 'number' }),
})
const counts = topic(BENCH_OUT, { key: text(), value: json<number>() })

let started = false
function first(): void {
  started = true
  process.stdout.write(`EVT first=${Date.now()}\n`)
}

if (isMainThread) {
  process.on('exit', () => {
    const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage()
    process.stdout.write(`EVT exit at=${Date.now()} cpu=${userCPUTime + systemCPUTime} rss=${maxRSS}\n`)
  })
}

/** Query 1 of NEXMark: converts the price of each bid. */
export const passthrough = pipeline(BENCH_ID, options)
  .from(bids)
  .map((bid) => {
    if (!started) first()
    bid.price = (bid.price * 908) / 1000
    return bid
  })
  .to('out', converted)

/** Number and sum of bids by auction in windows of ten seconds of event time. */
export const count = pipeline(BENCH_ID, options)
  .from(prices, { timestamp: (bid) => bid.ts })
  .keyBy((bid) => bid.auction)
  .window(tumbling({ sizeMs: 10_000 }))
  .aggregate('totals', {
    create: () => ({ count: 0, sum: 0 }),
    add: (total, bid) => {
      if (!started) first()
      total.count++
      total.sum += bid.price
      return total
    },
    result: ({ count, sum }, { key, window }) => ({ key: `${key}@${window.startMs}`, count, sum }),
  })
  .withKey((total) => total.key)
  .map(({ count, sum }) => ({ count, sum }))
  .to('out', totals)

/** Number of times each word was seen. */
export const wordcount = pipeline(BENCH_ID, options)
  .from(topic(BENCH_IN, { value: text() }))
  .flatMap((line) => {
    if (!started) first()
    return line.split(' ')
  })
  .keyBy((word) => word)
  .count('counts')
  .to('out', counts)
