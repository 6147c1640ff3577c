import { afterEach, expect } from 'vitest'
import type { LogSource, StartPosition } from '../../lib/ports/log.ts'
import { kafkaTest as test } from '../support/kafka.ts'
import { openSource, readAll, until } from '../support/kafka-source.ts'
import { asAdmin, deleteRecords, freshTopic, kafkaClient, send } from '../support/kafka-topics.ts'

const closing: LogSource[] = []
afterEach(async () => {
  for (const open of closing.splice(0)) await open.close()
})

async function source(...args: Parameters<typeof openSource>): Promise<LogSource> {
  const opened = await openSource(...args)
  closing.push(opened)
  return opened
}

/** Offsets by partition, as text. */
async function resolved(log: LogSource, position: StartPosition): Promise<string> {
  const offsets = await log.resolve(position)
  return [...offsets].map(([partition, offset]) => `${partition}:${offset}`).join(' ')
}

test('resolves earliest, latest and explicit offsets', async ({ broker }) => {
  const topic = await freshTopic(broker, 2)
  await send(
    broker,
    topic,
    [0, 0, 0, 1].map((partition) => ({ value: 'v', partition })),
  )
  await deleteRecords(broker, topic, 0, 2n)
  const log = await source(broker, topic)
  expect(await resolved(log, { at: 'earliest' })).toBe('0:2 1:0')
  expect(await resolved(log, { at: 'latest' })).toBe('0:3 1:1')
  expect(await resolved(log, { at: 'offsets', offsets: { 0: '3', 1: '0' } })).toBe('0:3 1:0')
  const invalid = (offsets: Record<number, string>) =>
    expect(log.resolve({ at: 'offsets', offsets })).rejects.toMatchObject({ code: 'START_POSITION_INVALID' })
  await invalid({ 0: '1', 1: '0' })
  await invalid({ 0: '3' })
  await invalid({ 0: '3', 1: '2' })
})

test('resolves a timestamp to the first record that is not older', async ({ broker }) => {
  const topic = await freshTopic(broker, 2)
  await send(
    broker,
    topic,
    [100, 200, 300].map((timestamp) => ({ value: 'v', partition: 0, timestamp: `${timestamp}` })),
  )
  const log = await source(broker, topic)
  expect(await resolved(log, { at: 'timestamp', timestampMs: 150 })).toBe('0:1 1:0')
  expect(await resolved(log, { at: 'timestamp', timestampMs: 200 })).toBe('0:1 1:0')
  expect(await resolved(log, { at: 'timestamp', timestampMs: 301 })).toBe('0:3 1:0')
  await expect(log.resolve({ at: 'timestamp', timestampMs: -1 })).rejects.toMatchObject({
    code: 'START_POSITION_INVALID',
  })
})

test('publishes progress for monitoring tools, and starts where a group stands', async ({ broker }) => {
  const topic = await freshTopic(broker, 3)
  await send(
    broker,
    topic,
    [0, 0, 0, 1, 1, 2].map((partition) => ({ value: 'v', partition })),
  )
  const log = await source(broker, topic)
  const group = `${topic}-group`
  await expect(log.resolve({ at: 'group', group })).rejects.toThrow(/START_POSITION_INVALID.*no offsets/)
  await log.publish?.(
    group,
    new Map([
      [0, 2n],
      [1, 2n],
    ]),
  )
  const seen = await asAdmin(broker, (admin) => admin.fetchOffsets({ groupId: group, topics: [topic] }))
  const byPartition = seen[0].partitions.map(({ partition, offset }) => `${partition}:${offset}`).sort()
  expect(byPartition).toEqual(['0:2', '1:2', '2:-1'])
  // Nothing was committed for partition 2, so it is read from its start rather than skipped.
  expect(await resolved(log, { at: 'group', group })).toBe('0:2 1:2 2:0')
  await deleteRecords(broker, topic, 0, 3n)
  await expect(log.resolve({ at: 'group', group })).rejects.toThrow(/START_POSITION_INVALID.*lies outside \[3, 3\]/)
})

test('refuses to publish for a group that has members of its own', async ({ broker }) => {
  const topic = await freshTopic(broker)
  const group = `${topic}-group`
  const consumer = kafkaClient(broker).consumer({ groupId: group, maxWaitTimeInMs: 100 })
  await consumer.connect()
  await consumer.subscribe({ topic })
  await consumer.run({ eachMessage: async () => undefined })
  const log = await source(broker, topic, { patienceMs: 100 })
  const answer = await until(
    () =>
      log.publish!(group, new Map([[0, 0n]])).then(
        () => null,
        (error: unknown) => error as { code: string },
      ),
    (error) => error !== null,
  )
  expect(answer?.code).toBe('GROUP_IN_USE')
  await consumer.disconnect()
})

test('case 33: an offset below the start of the log is refused, never skipped', async ({ broker }) => {
  const topic = await freshTopic(broker)
  for (const value of ['a', 'b', 'c']) await send(broker, topic, [{ value }])
  await deleteRecords(broker, topic, 0, 2n)
  const log = await source(broker, topic)
  expect((await log.bounds()).partitions[0]).toEqual({ partition: 0, start: 2n, end: 3n })
  await expect(readAll(log, { start: 1n, end: 3n })).rejects.toMatchObject({
    code: 'LOG_OFFSET_LOST',
    details: { topic, partition: 0, start: '1', logStart: '2' },
  })
  expect(await readAll(log, { start: 2n, end: 3n })).toHaveLength(1)
})

test('an offset above the end of the log is refused', async ({ broker }) => {
  const topic = await freshTopic(broker)
  await send(broker, topic, [{ value: 'a' }])
  const log = await source(broker, topic, { patienceMs: 200 })
  await expect(readAll(log, { start: 0n, end: 3n })).rejects.toMatchObject({ code: 'LOG_SHRUNK' })
  await expect(readAll(log, { start: 2n, end: 3n })).rejects.toMatchObject({ code: 'LOG_SHRUNK' })
})

test('a topic that was created again has another id, and is refused by ranges of the old one', async ({ broker }) => {
  const topic = await freshTopic(broker)
  const values = Array.from({ length: 200 }, (_, i) => ({ value: `${i}` }))
  for (let i = 0; i < 5; i++) await send(broker, topic, values)
  const log = await source(broker, topic, { fetchBytesMax: 1000 })
  const before = await log.bounds()
  const reading = log.read({ partition: 0, start: 0n, end: 1000n })[Symbol.asyncIterator]()
  expect((await reading.next()).done).toBe(false)
  await asAdmin(broker, async (admin) => {
    await admin.deleteTopics({ topics: [topic] })
    await until(
      () => admin.listTopics(),
      (topics) => !topics.includes(topic),
    )
    await admin.createTopics({ topics: [{ topic, numPartitions: 1 }], waitForLeaders: true })
  })
  for (let i = 0; i < 5; i++) await send(broker, topic, values)
  const rest = async () => {
    while (!(await reading.next()).done);
  }
  await expect(rest()).rejects.toMatchObject({ code: 'TOPIC_RECREATED' })
  const after = await log.bounds()
  expect(after.topicId).not.toBe(before.topicId)
  const { topicId } = before
  await expect(readAll(log, { start: 0n, end: 9n, topicId })).rejects.toMatchObject({ code: 'TOPIC_RECREATED' })
  expect(await readAll(log, { start: 0n, end: 9n, topicId: after.topicId })).toHaveLength(9)
})

test('a topic or a partition that does not exist is named', async ({ broker }) => {
  const log = await source(broker, 'no-such-topic')
  await expect(log.bounds()).rejects.toThrow(/TOPIC_MISSING.*no-such-topic/)
  await expect(readAll(log, { start: 0n, end: 1n })).rejects.toThrow(/TOPIC_MISSING.*no-such-topic/)
  const topic = await freshTopic(broker)
  await expect(readAll(await source(broker, topic), { partition: 7, start: 0n, end: 1n })).rejects.toThrow(
    /TOPIC_MISSING.*partition 7/,
  )
})
