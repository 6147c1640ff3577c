/**
 * The pipelines that the simulations run, each with input of its own.
 *
 * Small on purpose: what they have between them is every kind of operator, one and several sources, sinks, lanes
 * and shuffles, records that are late, refused, empty or null.
 */
import { deadLetter, json, nullable, pipeline, text, topic, tumbling } from '../../lib/index.ts'
import type { RejectedRecord } from '../../lib/model/manifest.ts'
import { prng } from '../../lib/model/prng.ts'
import type { PipelineGuarantee } from '../../lib/model/settings.ts'
import type { MemoryRow, RowRefusal } from '../../lib/testing/index.ts'
import { memory, record, type SimulationInput } from '../../lib/testing/index.ts'

/** A pipeline with what it reads. */
export interface Sample {
  readonly pipeline: unknown
  readonly input: SimulationInput
}

const textTopic = (name: string) => topic(name, { key: nullable(text()), value: text() })
const lanes = (name: string, count: number) => topic(name, { key: text(), value: json<number>(), lanes: count })

const words = ['pawl', 'ratchet', 'tooth', 'gear', 'catch']
const line = (i: number) => [words[i % 5], words[(i * 3 + 1) % 5], words[(i * i) % 5]].slice(0, 1 + (i % 3)).join(' ')
const linesOf = (count: number) => Array.from({ length: count }, (_, i) => line(i))

/** Lines to words to counts, in two lanes. */
export const wordCount = (count = 40, laneCount = 2): Sample => ({
  pipeline: pipeline('word-count')
    .from(textTopic('lines'))
    .flatMap('split', (value) => value.split(' '))
    .keyBy('word', (word) => word)
    .count('count')
    .to('counts', lanes('counts', laneCount)),
  input: { lines: linesOf(count) },
})

interface Bid {
  readonly auction: string
  readonly price: number
  readonly atMs: number
}

/** Event-time windows whose records jump about, some of them too late for their window. */
export const windows = (count = 40): Sample => ({
  pipeline: pipeline('windows')
    .from(topic('bids', { key: nullable(text()), value: json<Bid>() }), {
      timestamp: (bid) => bid.atMs,
      maxOutOfOrdernessMs: 300,
      idleAfterMs: 5000,
    })
    .keyBy('auction', (bid) => bid.auction)
    .window(tumbling({ sizeMs: 1000, allowedLatenessMs: 500 }))
    .aggregate('total', {
      create: () => 0,
      add: (sum, bid) => sum + bid.price,
      result: (sum, { window }) => ({ sum, startMs: window.startMs }),
    })
    .sideOutput('late', (late) => late.map('price', (bid) => bid.price).to('late-bids', lanes('late-bids', 1)))
    .to('totals', topic('totals', { key: text(), value: json<{ sum: number; startMs: number }>(), lanes: 2 })),
  input: {
    bids: Array.from({ length: count }, (_, i) => ({
      auction: words[i % 3],
      price: i,
      atMs: -2000 + i * 90 - (i % 7 === 0 ? 2500 : 0) - (i % 4 === 0 ? 250 : 0),
    })),
  },
})

/** Two sources that meet in one keyed operator. */
export const merged = (count = 30): Sample => {
  const both = pipeline('merged')
  return {
    pipeline: both
      .from(textTopic('left'))
      .merge('both', both.from(textTopic('right')))
      .flatMap('split', (value) => value.split(' '))
      .keyBy('word', (word) => word)
      .reduce('longest', (longest, word) => (word.length > longest.length ? word : longest), { emit: 'record' })
      .to('longest-words', topic('longest-words', { key: text(), value: text(), lanes: 3 })),
    input: { left: linesOf(count), right: linesOf(count).reverse() },
  }
}

const refusing = (value: string, part: string) => {
  if (value.includes(part)) throw new RangeError(`${part} is refused`)
  return value
}

/** Two sinks and a third one for records that do not decode or that an operator refuses, before and after a shuffle. */
export const deadLetters = (count = 30): Sample => {
  const letters = topic('letters', { key: nullable(text()), value: json<RejectedRecord>(), lanes: 2 })
  const values = pipeline('dead-letters', { onError: deadLetter('letters', letters) })
    .from(topic('orders', { key: nullable(text()), value: json<string>() }))
    .map('check', (value) => refusing(value, 'gear'))
  return {
    pipeline: values.to('orders-out', topic('orders-out', { key: nullable(text()), value: text() })).also(
      values
        .keyBy('first', (value) => value.slice(0, 1))
        .aggregate('joined', { create: () => '', add: (all, value) => refusing(all + value.length, '77') })
        .to('joined-out', topic('joined-out', { key: text(), value: text() })),
    ),
    input: {
      orders: linesOf(count).map((value, i) =>
        i % 9 === 4 ? record({ value: null, raw: Buffer.from('{broken') }) : value,
      ),
    },
  }
}

/** Bytes as they are, tombstones and empty values among them. */
export const passthrough = (count = 40): Sample => ({
  pipeline: pipeline('passthrough')
    .from(topic('in'))
    .to('out', topic('out', { lanes: 2 })),
  input: {
    in: Array.from({ length: count }, (_, i) =>
      record({
        key: i % 3 === 0 ? null : Buffer.from(words[i % 5]),
        value: i % 4 === 0 ? null : Buffer.from(i % 4 === 1 ? '' : `value ${i}`),
      }),
    ),
  },
})

/** Keyed twice: counts by word, then the words of each count. */
export const keyedTwice = (count = 30): Sample => ({
  pipeline: pipeline('keyed-twice')
    .from(textTopic('lines'))
    .flatMap('split', (value) => value.split(' '))
    .keyBy('word', (word) => word)
    .count('count')
    .keyBy('parity', (value) => (value % 2 === 0 ? 'even' : 'odd'))
    .aggregate('sum', { create: () => 0, add: (sum, value) => sum + value })
    .to('sums', lanes('sums', 2)),
  input: { lines: linesOf(count) },
})

/** How a sink of `sinkMix` is, drawn from a seed. */
interface DrawnSink {
  readonly id: string
  readonly lanes: number
  readonly kind: 'exact' | 'refusing' | 'weak'
}

/** Lines with one word in five, and every second count. */
function unwelcome({ value }: MemoryRow): RowRefusal | null {
  const bad = /ratchet|^[24680]$/.test(value?.toString() ?? '')
  return bad ? { code: '23514', column: null, reason: 'not welcome' } : null
}

/** Two or three sinks of different guarantees and lanes, and a mode that allows them. */
export const sinkMix = (guarantee: PipelineGuarantee, sinks: readonly DrawnSink[], count = 24): Sample => {
  const letters = topic('letters', { key: nullable(text()), value: json<RejectedRecord>(), lanes: 2 })
  const values = pipeline('sink-mix', { guarantee, onError: deadLetter('letters', letters) })
    .from(textTopic('lines'))
    .map('check', (value) => refusing(value, 'gear tooth'))
  const specOf = ({ lanes: laneCount, kind }: DrawnSink) =>
    memory({
      ...{ key: nullable(text()), value: text(), lanes: laneCount },
      ...{
        exact: {},
        refusing: { onReject: 'dead-letter' as const, refuses: unwelcome },
        weak: { guarantee: 'at-least-once' as const },
      }[kind],
    })
  const counts = values.keyBy('word', (value) => value.slice(0, 2)).count('count')
  const [first, ...others] = sinks
  const branch = values.to(first.id, specOf(first))
  const all = others.reduce((stream, sink, i) => {
    const branchOf = i % 2 === 0 ? counts.map(`text-${i}`, (value) => `${value}`) : values
    return stream.also(branchOf.to(sink.id, specOf(sink))) as typeof stream
  }, branch)
  return { pipeline: all, input: { lines: linesOf(count) } }
}

/** A mix by seed: every mode, every kind of sink that it allows. */
export function drawnMix(seed: number): Sample {
  const random = prng(seed ^ 0x5eed)
  const guarantee = random.pick<PipelineGuarantee>(['exactly-once', 'at-least-once', 'at-most-once'])
  const kinds: DrawnSink['kind'][] =
    guarantee === 'exactly-once' ? ['exact', 'refusing'] : ['exact', 'refusing', 'weak', 'weak']
  const sinks = Array.from({ length: 2 + random.int(2) }, (_, i) => ({
    id: `out-${i}`,
    lanes: 1 + random.int(3),
    kind: random.pick(kinds),
  }))
  return sinkMix(guarantee, sinks)
}

/** All of them, by name; `seed` draws what a sample leaves open. */
export const samples: Readonly<Record<string, (seed: number) => Sample>> = {
  'word count': () => wordCount(),
  'windows with late output': () => windows(),
  'two sources merged': () => merged(),
  'two sinks and dead letters': () => deadLetters(),
  'stateless passthrough': () => passthrough(),
  'two key-bys': () => keyedTwice(),
  'a mix of sinks in a mode': drawnMix,
}
