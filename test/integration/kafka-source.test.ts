import { gzipSync, zstdCompressSync } from 'node:zlib'
import { compressFrameSync } from 'lz4-napi'
import { compressSync } from 'snappy'
import { afterEach, expect } from 'vitest'
import { securityOf } from '../../lib/adapters/kafka/auth.ts'
import { KafkaConnection } from '../../lib/adapters/kafka/connection.ts'
import type { LogSource } from '../../lib/ports/log.ts'
import { compressed, encoded } from '../model/record-batches.ts'
import { kafkaTest as test } from '../support/kafka.ts'
import { offsets, openSource, readAll, until, untilEnd, values } from '../support/kafka-source.ts'
import { asAdmin, freshTopic, send, sendBatch, transact, transactionalProducer } from '../support/kafka-topics.ts'

const closing: { close(): Promise<unknown> }[] = []
afterEach(async () => {
  for (const open of closing.splice(0)) await open.close()
})

async function source(...args: Parameters<typeof openSource>): Promise<LogSource> {
  const opened = await openSource(...args)
  closing.push(opened)
  return opened
}

const numbered = (count: number) => Array.from({ length: count }, (_, i) => ({ value: `${i}` }))

test('reads any range of a partition, exactly its records, whatever the size of a fetch', async ({ broker }) => {
  const topic = await freshTopic(broker)
  for (let i = 0; i < 10; i++) await send(broker, topic, numbered(37))
  const log = await source(broker, topic, { fetchBytesMax: 300 })
  for (const [start, end] of [
    [0n, 370n],
    [0n, 1n],
    [36n, 38n],
    [5n, 300n],
    [369n, 370n],
    [9n, 9n],
  ]) {
    const expected = Array.from({ length: Number(end - start) }, (_, i) => `${start + BigInt(i)}`)
    const rows = await readAll(log, { start, end })
    expect(offsets(rows)).toEqual(expected)
    expect(values(rows)).toEqual(expected.map((offset) => `${Number(offset) % 37}`))
  }
})

test('brings the same records where the memory of an answer is used for the next', async ({ broker }) => {
  const topic = await freshTopic(broker)
  const wanted = Array.from({ length: 6000 }, (_, i) => `${i} `.padEnd(200, String(i)))
  for (let at = 0; at < 6000; at += 500)
    await send(
      broker,
      topic,
      wanted.slice(at, at + 500).map((value) => ({ value })),
    )
  const log = await source(broker, topic, { fetchBytesMax: 250_000 })
  expect(values(await readAll(log))).toEqual(wanted)
})

test('waits at the broker for committed records, and not for those behind it', async ({ broker }) => {
  const topic = await freshTopic(broker, 2)
  const log = await source(broker, topic)
  await send(broker, topic, [{ value: '0', partition: 1 }])
  const past = new Map([[0, 0n]])
  const started = performance.now()
  await log.arrival!(past.set(1, 0n), 20_000)
  expect(performance.now() - started).toBeLessThan(10_000)
  await log.arrival!(past.set(1, 1n), 300)
  const other = await source(broker, topic)
  let arrived = false
  const waiting = other.arrival!(past, 20_000).then(() => {
    arrived = true
  })
  const transaction = await transactionalProducer(broker).then((producer) => producer.transaction())
  await transaction.send({ topic, messages: [{ value: '1', partition: 0 }] })
  await new Promise((resolve) => setTimeout(resolve, 300))
  expect(arrived).toBe(false)
  await transaction.commit()
  await waiting
})

test('brings keys, values, timestamps and headers as they were written', async ({ broker }) => {
  const topic = await freshTopic(broker)
  const headers = { name: Buffer.from('wert'), empty: Buffer.alloc(0) }
  await send(broker, topic, [{ key: 'schlüssel', value: 'größe', timestamp: '1234567890123', headers }])
  const [row] = await readAll(await source(broker, topic))
  const latin1 = (text: string) => Buffer.from(text).toString('latin1')
  expect(row).toEqual({
    offset: 0n,
    timestampMs: 1234567890123,
    key: latin1('schlüssel'),
    value: latin1('größe'),
    headers: [
      ['name', 'wert'],
      ['empty', ''],
    ],
  })
})

test('case 39: tombstones and empty values, null and empty keys stay distinct', async ({ broker }) => {
  const topic = await freshTopic(broker)
  await send(broker, topic, [
    { key: 'k', value: null },
    { key: 'k', value: '' },
    { key: null, value: 'v' },
    { key: '', value: 'v' },
  ])
  const rows = await readAll(await source(broker, topic))
  expect(rows.map(({ key, value }) => [key, value])).toEqual([
    ['k', null],
    ['k', ''],
    [null, 'v'],
    ['', 'v'],
  ])
})

test('case 29: a range of aborted records and markers ends without a record', async ({ broker }) => {
  const topic = await freshTopic(broker)
  const producer = await transactionalProducer(broker)
  await transact(producer, topic, ['a', 'b'], 'abort')
  await transact(producer, topic, ['c'], 'commit')
  await producer.disconnect()
  const log = await source(broker, topic)
  await untilEnd(log, 5n)
  expect(await readAll(log, { start: 0n, end: 3n })).toEqual([])
  expect(await readAll(log, { start: 2n, end: 3n })).toEqual([])
  expect(await readAll(log, { start: 4n, end: 5n })).toEqual([])
  expect(values(await readAll(log))).toEqual(['c'])
})

test('cases 31, 32: markers leave holes in the offsets and count for the end', async ({ broker }) => {
  const topic = await freshTopic(broker)
  const producer = await transactionalProducer(broker)
  for (const value of ['a', 'b', 'c']) await transact(producer, topic, [value], 'commit')
  await producer.disconnect()
  const log = await source(broker, topic)
  await untilEnd(log, 6n)
  const rows = await readAll(log)
  expect(offsets(rows)).toEqual(['0', '2', '4'])
  expect(values(rows)).toEqual(['a', 'b', 'c'])
})

test('shows neither aborted nor open transactions that overlap, also with keys of eight zeros', async ({ broker }) => {
  const topic = await freshTopic(broker)
  const [one, two, three] = await Promise.all([1, 2, 3].map(() => transactionalProducer(broker)))
  const key = Buffer.alloc(8)
  const to = (value: string) => ({ topic, messages: [{ key, value, partition: 0 }] })
  const aborted = await one.transaction()
  await aborted.send(to('aborted 1'))
  const committed = await two.transaction()
  await committed.send(to('committed 1'))
  await send(broker, topic, [{ key, value: 'plain', partition: 0 }])
  await aborted.send(to('aborted 2'))
  await committed.send(to('committed 2'))
  await aborted.abort()
  await committed.commit()
  await transact(one, topic, ['committed 3'], 'commit')
  const committedLog = await source(broker, topic)
  await untilEnd(committedLog, 9n)
  const open = await three.transaction()
  await open.send(to('open'))
  const expected = ['committed 1', 'plain', 'committed 2', 'committed 3']
  expect((await committedLog.bounds()).partitions[0].end).toBe(9n)
  expect(values(await readAll(committedLog))).toEqual(expected)
  // Every split of the range sees the same, whichever transactions it cuts through.
  for (let cut = 1n; cut < 9n; cut++) {
    const parts = [
      await readAll(committedLog, { start: 0n, end: cut }),
      await readAll(committedLog, { start: cut, end: 9n }),
    ]
    expect(values(parts.flat())).toEqual(expected)
  }
  const everything = await source(broker, topic, { isolation: 'read_uncommitted' })
  const all = ['aborted 1', 'committed 1', 'plain', 'aborted 2', 'committed 2', 'committed 3', 'open']
  expect(values(await readAll(everything))).toEqual(all)
  await open.abort()
  for (const producer of [one, two, three]) await producer.disconnect()
})

test('case 30: a range that ends in a hole of compaction is read to its end', async ({ broker }) => {
  const configs = { 'cleanup.policy': 'compact', 'segment.ms': '50', 'min.cleanable.dirty.ratio': '0.001' }
  const topic = await freshTopic(broker, 1, { ...configs, 'delete.retention.ms': '0', 'max.compaction.lag.ms': '100' })
  await send(broker, topic, [{ key: 'first', value: 'stays' }])
  for (let i = 0; i < 20; i++) await send(broker, topic, [{ key: 'same', value: `${i}` }])
  const log = await source(broker, topic)
  const end = await until(
    async () => {
      // Only segments that are no longer written are compacted.
      await send(broker, topic, [{ key: 'other', value: 'x' }])
      return readAll(log, { start: 0n, end: 20n })
    },
    (rows) => rows.length === 1,
  )
  expect(offsets(end)).toEqual(['0'])
  expect(await readAll(log, { start: 3n, end: 11n })).toEqual([])
  expect(values(await readAll(log, { start: 3n, end: 21n }))).toEqual(['19'])
})

test.for(['gzip', 'snappy', 'lz4', 'zstd'])(
  'reads %s batches as the Java code writes them',
  async (codec, { broker }) => {
    const topic = await freshTopic(broker, 1, { 'compression.type': codec })
    const large = 'x'.repeat(200_000)
    await send(broker, topic, [...numbered(500), { value: large }])
    await send(broker, topic, [{ value: 'last' }])
    const rows = await readAll(await source(broker, topic), { start: 100n, end: 502n })
    expect(values(rows)).toEqual([
      ...numbered(500)
        .slice(100)
        .map(({ value }) => value),
      large,
      'last',
    ])
  },
)

test('reads batches of all codecs side by side, raw snappy as librdkafka writes it too', async ({ broker }) => {
  const topic = await freshTopic(broker)
  const link = new KafkaConnection({ brokers: [broker.bootstrap], clientId: 'test', security: securityOf({}) })
  closing.push(link)
  const codecs = [gzipSync, compressSync, compressFrameSync, zstdCompressSync]
  for (const [i, compress] of codecs.entries()) {
    const batch = encoded([`a${i}`, `b${i}`].map((value) => ({ timestampMs: 5, key: null, value })))
    await sendBatch(link, topic, batch)
    await sendBatch(
      link,
      topic,
      compressed(batch, i + 1, (bytes) => compress(bytes) as Buffer),
    )
  }
  const expected = codecs.flatMap((_, i) => [`a${i}`, `b${i}`, `a${i}`, `b${i}`])
  expect(values(await readAll(await source(broker, topic)))).toEqual(expected)
})

test('cases 35, 37: readers join no group and commit nothing, so each reads exactly its range', async ({ broker }) => {
  const topic = await freshTopic(broker, 2)
  await send(
    broker,
    topic,
    Array.from({ length: 100 }, (_, i) => ({ value: `${i}`, partition: i % 2 })),
  )
  const groups = () => asAdmin(broker, async (admin) => (await admin.listGroups()).groups.length)
  const before = await groups()
  const logs = await Promise.all([source(broker, topic), source(broker, topic)])
  const reads = logs.flatMap((log) => [0, 1].map((partition) => readAll(log, { partition, start: 10n, end: 40n })))
  for (const [i, rows] of (await Promise.all(reads)).entries())
    expect(values(rows)).toEqual(Array.from({ length: 30 }, (_, n) => `${(n + 10) * 2 + (i % 2)}`))
  expect(await groups()).toBe(before)
})

test('sees partitions that are added, each from its beginning', async ({ broker }) => {
  const topic = await freshTopic(broker, 1)
  const log = await source(broker, topic)
  expect((await log.bounds()).partitions).toHaveLength(1)
  await asAdmin(broker, (admin) => admin.createPartitions({ topicPartitions: [{ topic, count: 3 }] }))
  const grown = await until(
    () => log.bounds(),
    ({ partitions }) => partitions.length === 3,
  )
  expect(grown.partitions.map(({ partition, start, end }) => [partition, start, end])).toEqual([
    [0, 0n, 0n],
    [1, 0n, 0n],
    [2, 0n, 0n],
  ])
  await send(broker, topic, [{ value: 'new', partition: 2 }])
  expect(values(await readAll(log, { partition: 2 }))).toEqual(['new'])
})
