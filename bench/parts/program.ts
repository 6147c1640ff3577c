/**
 * Micro-benchmark of the operator chain alone: prebuilt batches in, rows counted and encoded, nothing stored.
 *
 * Shows what the language costs per record, apart from log, store and sinks. Run with
 * `node --conditions=pawl-source bench/parts/program.ts [name] [seconds]`; add `--cpu-prof` to see where time goes.
 */
import { bytes, compile, json, pipeline, text, topic, tumbling } from '../../lib/index.ts'
import type { LogBatch } from '../../lib/model/records.ts'
import { shardRange } from '../../lib/state/key-groups.ts'
import type { Compiled } from '../../lib/stream/compiled.ts'
import type { Program } from '../../lib/stream/program.ts'

interface Bid {
  readonly auction: number
  readonly price: number
  readonly at: number
  readonly bidder: string
}

interface Case {
  readonly compiled: Compiled
  readonly batches: readonly LogBatch[]
  /** What the rate counts, per record. */
  readonly unit: string
  readonly perRecord: number
  readonly unfused?: boolean
}

const lines = topic('lines', { value: text() })
const out = topic('out', { key: text(), value: json<number>() })
const words = Array.from({ length: 10_000 }, (_, i) => `w${(i * 7919) % 10_000}`)
let seed = 1
const random = (below: number): number => {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff
  return seed % below
}
const line = (): string => Array.from({ length: 8 }, () => words[random(10_000)]).join(' ')
const bid = (): string =>
  JSON.stringify({
    auction: random(1000),
    price: random(100_000),
    at: 1_700_000_000_000 + random(60_000),
    bidder: `b-${random(5000)}-${'x'.repeat(30)}`,
  })

const wordCount = (shards: number): Compiled =>
  compile(
    pipeline('word-count', { shards })
      .from(lines)
      .flatMap((text) => text.split(' '))
      .filter((word) => word !== '')
      .keyBy((word) => word)
      .count('counts')
      .to('out', out),
  )

const cases: Record<string, () => Case> = {
  'word-count': () => ({ compiled: wordCount(1), batches: batchesOf('lines', line), unit: 'words', perRecord: 8 }),
  'word-count-3-shards': () => ({
    compiled: wordCount(3),
    batches: batchesOf('lines', line),
    unit: 'words',
    perRecord: 8,
  }),
  'word-count-shuffled': () => ({
    compiled: wordCount(3),
    batches: batchesOf('lines', line),
    unit: 'words',
    perRecord: 8,
    unfused: true,
  }),
  'passthrough-json': () => ({
    compiled: compile(
      pipeline('passthrough')
        .from(topic('lines', { value: json<Bid>() }))
        .map((value) => ({ ...value, price: value.price + 1 }))
        .to('out', topic('out', { value: json<Bid>() })),
    ),
    batches: batchesOf('lines', bid),
    unit: 'records',
    perRecord: 1,
  }),
  'passthrough-bytes': () => ({
    compiled: compile(
      pipeline('passthrough')
        .from(topic('lines', { value: bytes() }))
        .to('out', topic('out', { value: bytes() })),
    ),
    batches: batchesOf('lines', bid),
    unit: 'records',
    perRecord: 1,
  }),
  bids: () => ({
    compiled: compile(
      pipeline('bids')
        .from(topic('lines', { value: json<Bid>() }), { timestamp: (value) => value.at })
        .keyBy((value) => value.auction)
        .window(tumbling({ sizeMs: 10_000 }))
        .aggregate('sums', {
          create: () => ({ count: 0, sum: 0 }),
          add: (sums, value) => ({ count: sums.count + 1, sum: sums.sum + value.price }),
        })
        .to('out', topic('out', { key: json<number>(), value: json<{ count: number; sum: number }>() })),
    ),
    batches: batchesOf('lines', bid),
    unit: 'records',
    perRecord: 1,
  }),
}

function batchesOf(_source: string, value: () => string): LogBatch[] {
  return Array.from({ length: 100 }, (_, index) => batchOf(index, value))
}

function batchOf(index: number, value: () => string): LogBatch {
  const count = 500
  const values = Array.from({ length: count }, () => Buffer.from(value()))
  const ends = Int32Array.from(
    values,
    (
      (end) => (chunk: Buffer) =>
        (end += chunk.length)
    )(0),
  )
  return {
    partition: 0,
    baseOffset: BigInt(index * count),
    count,
    offsetDeltas: Int32Array.from({ length: count }, (_, i) => i),
    timestamps: new Float64Array(count).fill(1_700_000_000_000),
    bytes: Buffer.concat(values),
    keyStarts: new Int32Array(count).fill(-1),
    keyEnds: new Int32Array(count).fill(-1),
    valueStarts: ends.map((end, i) => end - values[i].length),
    valueEnds: ends,
    headerStarts: new Int32Array(count).fill(-1),
  }
}

function programOf(compiled: Compiled, stage: number | 'fused', shard: number): Program {
  const { keyGroups } = compiled.topology
  const { shards } = compiled.settings
  const owned = stage === 'fused' ? Array.from({ length: shards }, (_, one) => one) : [shard]
  const states = compiled.stateful
    .filter((one) => stage === 'fused' || one.stage === stage)
    .flatMap(({ operator }) =>
      owned.map((one) => compiled.state(operator, shardRange(one, shards, keyGroups), null, [])),
    )
  const spec = compiled.sinks.out
  const add = (key: unknown, value: unknown): void => {
    if (spec.kind !== 'topic') return
    spec.key.encode(key)
    spec.value.encode(value)
  }
  const writer = { add, bufferedBytes: 0, flush: async () => {}, seal: async () => [] }
  return compiled.program({
    ...{ stage, shards, shard, states, writers: { out: writer }, watermarkMs: null, convicted: [] },
    processingTimeMs: 0,
  })
}

function runOnce({ compiled, batches, unfused }: Case): void {
  const first = programOf(compiled, unfused ? 0 : 'fused', 0)
  for (const batch of batches) first.consume('lines', batch)
  first.finish(1_800_000_000_000)
  if (!unfused) return
  const segments = first.takeSegments()
  for (let shard = 0; shard < compiled.settings.shards; shard++) {
    const second = programOf(compiled, 1, shard)
    for (const segment of segments) if (segment.shard === shard) second.consumeSegment(Buffer.concat(segment.chunks))
    second.finish(1_800_000_000_000)
  }
}

function measure(name: string, seconds: number): void {
  const one = cases[name]()
  for (let i = 0; i < 3; i++) runOnce(one)
  const from = process.cpuUsage()
  const until = performance.now() + seconds * 1000
  let records = 0
  while (performance.now() < until) {
    runOnce(one)
    records += one.batches.length * one.batches[0].count
  }
  const { user, system } = process.cpuUsage(from)
  const rate = (records * one.perRecord * 1e6) / (user + system)
  process.stdout.write(`${name.padEnd(22)} ${(rate / 1e6).toFixed(2)} M ${one.unit} per CPU-second\n`)
}

const [name, seconds] = process.argv.slice(2)
for (const one of name ? [name] : Object.keys(cases)) measure(one, Number(seconds ?? 2))
