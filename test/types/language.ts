/** What must compile without a single type argument, and what must not. Checked by `types.test.ts`. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import {
  bytes,
  deadLetter,
  json,
  type KeyedStream,
  nullable,
  pipeline,
  type RejectedRecord,
  type Stream,
  text,
  topic,
  tumbling,
  type WindowResult,
} from '../../lib/index.ts'

interface Bid {
  readonly auction: number
  readonly price: number
  readonly at: number
}

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

/** Fails to compile unless the types are the same. */
function same<A, B>(..._proof: Equal<A, B> extends true ? [] : [never]): void {}

const lines = pipeline('p').from(topic('lines', { value: text() }))
same<typeof lines, Stream<string, Uint8Array | null>>()
const counts = topic('counts', { key: text(), value: json<number>() })

// --- types flow
const lengths = lines.map((line) => line.length)
same<typeof lengths, Stream<number, Uint8Array | null>>()
const shouted = lines.map('shout', (line, { key, offset }) => ({ line: line.toUpperCase(), key, offset }))
same<typeof shouted, Stream<{ line: string; key: Uint8Array | null; offset: bigint }, Uint8Array | null>>()
const words = lines.flatMap((line) => line.split(' ')).filter((word) => word !== '')
same<typeof words, Stream<string, Uint8Array | null>>()
const letters = lines.flatMap(function* (line) {
  yield line.length
})
same<typeof letters, Stream<number, Uint8Array | null>>()
const keyed = words.keyBy((word) => word)
same<typeof keyed, KeyedStream<string, string>>()
const counted = keyed.count('counts')
same<typeof counted, Stream<number, string>>()
const branch = counted
  .to('out', counts)
  .to('again', counts)
  .map((count) => count > 3)
same<typeof branch, Stream<boolean, string>>()

// --- a predicate narrows
const tombstones = pipeline('p').from(topic('t', { key: text(), value: nullable(text()) }))
same<typeof tombstones, Stream<string | null, string>>()
const present = tombstones.filter((value) => value !== null)
same<typeof present, Stream<string, string>>()
const named = tombstones.filter('present', (value) => value !== null)
same<typeof named, Stream<string, string>>()

// --- folds
const sums = keyed.aggregate('sums', { create: () => 0, add: (sum, word) => sum + word.length })
same<typeof sums, Stream<number, string>>()
const averages = keyed.aggregate('averages', {
  create: () => ({ count: 0, sum: 0 }),
  add: ({ count, sum }, word) => ({ count: count + 1, sum: sum + word.length }),
  result: ({ count, sum }, { key }) => `${key}: ${sum / count}`,
})
same<typeof averages, Stream<string, string>>()
const longest = keyed.reduce('longest', (a, b) => (a.length > b.length ? a : b), { emit: 'record' })
same<typeof longest, Stream<string, string>>()

// --- windows
const bids = pipeline('p').from(topic('bids', { value: json<Bid>() }), {
  timestamp: (bid, { timestampMs }) => bid.at ?? timestampMs,
})
const windowed = bids
  .keyBy((bid) => bid.auction)
  .window(tumbling({ sizeMs: 10_000 }))
  .aggregate('totals', {
    create: () => 0,
    add: (sum, bid) => sum + bid.price,
    result: (sum, { key, window }) => ({ auction: key, sum, from: window.startMs }),
  })
same<typeof windowed, WindowResult<{ auction: number; sum: number; from: number }, number, Bid>>()
const withLate = windowed.sideOutput('late', (late) =>
  late.map((bid) => bid.price).to('late-prices', topic('late', { key: json<number>(), value: json<number>() })),
)
same<typeof withLate, Stream<{ auction: number; sum: number; from: number }, number>>()

// --- keys without a shuffle, branches, merges
const rekeyed = bids.withKey((bid) => `${bid.auction}`)
same<typeof rekeyed, Stream<Bid, string>>()
const merged = lengths.merge(lines.map((line) => line.length + 1))
same<typeof merged, Stream<number, Uint8Array | null>>()
const both = counted.to('out', counts).also(windowed).also(withLate)
same<typeof both, Stream<number, string>>()

// --- any and schemas
declare const loose: Stream<ReturnType<typeof JSON.parse>, string>
loose.map((value) => value.name.first).to('x', topic('x', { key: text(), value: json<string>() }))
declare const schema: StandardSchemaV1<unknown, Bid>
const checked = pipeline('p').from(topic('bids', { value: json(schema) }))
same<typeof checked, Stream<Bid, Uint8Array | null>>()

// --- error policies
pipeline('p', { onError: deadLetter('dead', topic('dead', { value: json<RejectedRecord>() })) })
pipeline('p', { onError: 'skip', checkpoint: { intervalMs: 5 }, epoch: { spanMax: 10 } })

// --- what must not compile

// @ts-expect-error an async map
lines.map(async (line) => line)
// @ts-expect-error a promise with an id before it
lines.map('later', (line) => Promise.resolve(line))
// @ts-expect-error an async predicate
lines.filter(async (line) => line !== '')
// @ts-expect-error promises in a list
lines.flatMap((line) => [Promise.resolve(line)])
// @ts-expect-error an async generator
lines.flatMap(async function* (line) {
  yield line
})
// @ts-expect-error an async key
lines.withKey(async (line) => line)
// @ts-expect-error a key that is no string or number
words.keyBy((word) => ({ word }))
// @ts-expect-error a key that may be missing
words.keyBy((_word, { key }) => key)
// @ts-expect-error count exists only on a keyed stream
words.count('counts')
// @ts-expect-error so does window
words.window(tumbling({ sizeMs: 1 }))
// @ts-expect-error and map only on a stream
keyed.map((word) => word)
// @ts-expect-error a keyed stream has no sink before it is folded
keyed.to('out', counts)
// @ts-expect-error state needs an id
keyed.count()
// @ts-expect-error a sink needs an id
counted.to(counts)
// @ts-expect-error the sink takes numbers
averages.to('out', counts)
// @ts-expect-error the sink takes string keys
lengths.to('out', counts)
const byAuction = bids.keyBy((bid) => bid.auction).count('c')
// @ts-expect-error a number key into a text sink
byAuction.to('out', counts)
// @ts-expect-error null is not taken by a sink without nullable
tombstones.to('out', topic('out', { key: text(), value: text() }))
// @ts-expect-error streams of different values do not merge
lines.merge(lengths)
// @ts-expect-error nor do streams of different keys
bids.merge(rekeyed)
// @ts-expect-error keyed streams neither
keyed.merge(bids.keyBy((bid) => bid.auction))
// @ts-expect-error an async fold
keyed.aggregate('x', { create: () => 0, add: async (sum) => sum })
// @ts-expect-error an async result
keyed.aggregate('x', { create: () => 0, add: (sum) => sum + 1, result: async (sum) => sum })
// @ts-expect-error an accumulator of another type
keyed.aggregate('x', { create: () => 0, add: () => 'one' })
// @ts-expect-error records are not emitted one by one from windows
keyed.window(tumbling({ sizeMs: 1 })).count('x', { emit: 'record' })
// @ts-expect-error a window needs a size
tumbling({ allowedLatenessMs: 1 })
// @ts-expect-error a timestamp is a number
pipeline('p').from(topic('bids', { value: json<Bid>() }), { timestamp: (bid) => `${bid.at}` })
// @ts-expect-error no such guarantee
pipeline('p', { guarantee: 'twice' })
pipeline('p', { guarantee: 'at-most-once' })
// @ts-expect-error a dead-letter sink takes rejected records
pipeline('p', { onError: deadLetter('dead', topic('dead', { value: text() })) })
// @ts-expect-error whose key may be null
pipeline('p', { onError: deadLetter('dead', topic('dead', { key: text(), value: json<RejectedRecord>() })) })
// @ts-expect-error the context is read only
lines.map((line, context) => (context.timestampMs = line.length))
// @ts-expect-error a pipeline has no methods before its source
pipeline('p').map((value) => value)
// @ts-expect-error an unknown option
pipeline('p', { checkpoints: {} })
// @ts-expect-error a serde of another type
topic('x', { key: text(), value: bytes() }).value.encode('text')
// @ts-expect-error a result of a window is no keyed stream
windowed.count('again')
