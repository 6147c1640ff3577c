import { afterEach, expect } from 'vitest'
import type { KafkaConnection } from '../../lib/adapters/kafka/connection.ts'
import { controlTopic } from '../../lib/adapters/kafka/names.ts'
import { openKafkaSink } from '../../lib/adapters/kafka/sink.ts'
import { memoryStore } from '../../lib/adapters/memory/store.ts'
import { type Broker, kafkaTest as test } from '../support/kafka.ts'
import {
  connectPlain,
  disturbedLink,
  markerOf,
  permitFor,
  seenValues,
  sinkRig,
  topicSpec,
} from '../support/kafka-sink.ts'
import { freshTopic, kafkaClient } from '../support/kafka-topics.ts'

const open: KafkaConnection[] = []
afterEach(async () => {
  for (const connection of open.splice(0)) await connection.close()
})

function connect(broker: Broker): KafkaConnection {
  const connection = connectPlain(broker.bootstrap)
  open.push(connection)
  return connection
}

async function configure(broker: Broker, topic: string, configs: Readonly<Record<string, string>>): Promise<void> {
  const admin = kafkaClient(broker).admin()
  await admin.connect()
  const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }))
  await admin.alterConfigs({ validateOnly: false, resources: [{ type: 2, name: topic, configEntries }] })
  await admin.disconnect()
}

test('case 20: refuses a transaction timeout beyond that of the broker when it opens', async ({ broker }) => {
  const link = connect(broker)
  // A new broker has no coordinator until somebody needs one.
  await (await sinkRig(link, topicSpec('any'))).base()
  const options = { transactionTimeoutMs: 3_600_000 }
  const opening = sinkRig(link, topicSpec('any'), options)
  await expect(opening).rejects.toThrow(/^TRANSACTION_TIMEOUT_INVALID.*3600000 ms.*900000 ms/)
})

test('case 20: refuses it at the first take-over where the broker does not tell its settings', async ({ broker }) => {
  const link = disturbedLink(connect(broker))
  link.disturb(async (request, act) =>
    request.apiName === 'DescribeConfigs' ? ({ error: 31, message: null, configs: new Map() } as never) : act(),
  )
  const rig = await sinkRig(link, topicSpec('any'), { transactionTimeoutMs: 3_600_000 })
  link.disturb((_request, act) => act())
  await expect(rig.base()).rejects.toThrow(/^TRANSACTION_TIMEOUT_INVALID/)
})

test('case 22: two pipelines with equal sink names do not fence each other', async ({ broker }) => {
  const link = connect(broker)
  const topic = await freshTopic(broker)
  const rigs = []
  for (const pipeline of ['a-b', 'a']) {
    const identity = { stage: `s-${topic}`, pipeline, sink: pipeline === 'a' ? 'b-out' : 'out' }
    const rig = await sinkRig(link, topicSpec(topic), { identity })
    await rig.base()
    rigs.push(rig)
  }
  for (let epoch = 1; epoch <= 10; epoch++) {
    const promoting = rigs.map(async (rig) => rig.promote((await rig.stage(epoch, [['k', String(epoch)]]))[0]))
    expect(await Promise.all(promoting)).toEqual([{ result: 'promoted' }, { result: 'promoted' }])
  }
  expect(await seenValues(link, topic)).toHaveLength(20)
})

test('refuses at staging what the topic would refuse: size, timestamp, a missing key', async ({ broker }) => {
  const link = connect(broker)
  const topic = await freshTopic(broker, 1, {
    'max.message.bytes': '3000',
    'message.timestamp.after.max.ms': '60000',
    'cleanup.policy': 'compact',
  })
  const rig = await sinkRig(link, topicSpec(topic))
  await rig.base()
  await expect(rig.stage(1, [['k', 'x'.repeat(3000)]])).rejects.toThrow(/^RECORD_TOO_LARGE.*3000/)
  await expect(rig.stage(1, [['k', 'x', Date.now() + 120_000]])).rejects.toThrow(/^ENCODE_FAILED.*timestamp/)
  await expect(rig.stage(1, [[null, 'x']])).rejects.toThrow(/^ENCODE_FAILED.*without a key/)
  const [one] = await rig.stage(
    1,
    Array.from({ length: 100 }, (_, i) => [`k${i}`, 'x'.repeat(1500), Date.now() + 50_000]),
  )
  expect(await rig.promote(one)).toEqual({ result: 'promoted' })
  expect(await seenValues(link, topic)).toHaveLength(100)
})

test('waits with an epoch that the topic refuses since its limit was lowered, and promotes it when it is raised', async ({
  broker,
}) => {
  const link = connect(broker)
  const topic = await freshTopic(broker)
  const rig = await sinkRig(link, topicSpec(topic))
  await rig.base()
  const [one] = await rig.stage(1, [['k', 'x'.repeat(10_000)]])
  await configure(broker, topic, { 'max.message.bytes': '2000' })
  await expect(rig.promote(one)).rejects.toMatchObject({
    code: 'ROWS_REFUSED',
    message: expect.stringMatching(`sink out, lane 0, epoch 1, topic ${topic}/0, row k: .*MESSAGE_TOO_LARGE`),
    details: { sink: 'out', lane: 0, epoch: 1, topic, partition: 0, rowKey: 'k', column: null },
  })
  expect(await rig.sink.marker(0)).toEqual(markerOf(rig.incarnation, 0))
  await configure(broker, topic, { 'max.message.bytes': '20000' })
  expect(await rig.promote(one)).toEqual({ result: 'promoted' })
  expect(await seenValues(link, topic)).toHaveLength(1)
})

test('names the row that a topic refuses: the largest of a batch, or the one that the broker names', async ({
  broker,
}) => {
  const link = connect(broker)
  const topic = await freshTopic(broker)
  const rig = await sinkRig(link, topicSpec(topic))
  await rig.base()
  const now = Date.now()
  const [sizes, times] = [
    await rig.stage(1, [
      ['a', 'x', now],
      ['b', 'x'.repeat(3000), now],
      ['c', 'xx', now],
    ]),
    await rig.stage(2, [
      ['a', 'x', now],
      ['b', 'xx', now],
      ['late', 'x', now - 86_400_000],
      [null, 'x', now - 86_400_000],
    ]),
  ]
  await configure(broker, topic, { 'max.message.bytes': '2000' })
  const large = await rig.promote(sizes[0]).catch((error: unknown) => error)
  expect(large).toMatchObject({ code: 'ROWS_REFUSED', details: { rowKey: 'b', epoch: 1 } })
  expect(String(large)).toContain('row b, in a batch of 3 rows: ')
  await configure(broker, topic, { 'message.timestamp.before.max.ms': '3600000' })
  await rig.promote(sizes[0])
  const late = await rig.promote(times[0]).catch((error: unknown) => error)
  expect(late).toMatchObject({ code: 'ROWS_REFUSED', details: { rowKey: 'late', epoch: 2 } })
  await configure(broker, topic, { 'max.message.bytes': '20000' })
  expect(await rig.promote(times[0])).toEqual({ result: 'promoted' })
  expect(await seenValues(link, topic)).toHaveLength(7)
})

test('a missing topic is refused by code when staged, and when promoted', async ({ broker }) => {
  const link = connect(broker)
  const absent = await sinkRig(link, topicSpec('no-such-topic'))
  await absent.base()
  await expect(absent.stage(1, [['k', 'v']])).rejects.toThrow(/^TOPIC_MISSING.*no-such-topic/)
  const topic = await freshTopic(broker)
  const rig = await sinkRig(link, topicSpec(topic))
  await rig.base()
  const [one] = await rig.stage(1, [['k', 'v']])
  const admin = kafkaClient(broker).admin()
  await admin.connect()
  await admin.deleteTopics({ topics: [topic] })
  while ((await link.topics([topic])).size > 0);
  await expect(rig.promote(one)).rejects.toThrow(/^TOPIC_MISSING/)
  await admin.createTopics({ topics: [{ topic, numPartitions: 1 }], waitForLeaders: true })
  await admin.disconnect()
  await expect(rig.promote(one)).rejects.toThrow(/^TOPIC_RECREATED/)
  expect(await rig.sink.marker(0)).toEqual(markerOf(rig.incarnation, 0))
})

test('rows keep the partitions they were staged for when the topic grows', async ({ broker }) => {
  const link = connect(broker)
  const topic = await freshTopic(broker, 2)
  const rig = await sinkRig(link, topicSpec(topic))
  await rig.base()
  const [one] = await rig.stage(1, [
    ['a', '1'],
    ['b', '2'],
    ['c', '3'],
  ])
  const admin = kafkaClient(broker).admin()
  await admin.connect()
  await admin.createPartitions({ topicPartitions: [{ topic, count: 7 }] })
  await admin.disconnect()
  expect(await rig.promote(one)).toEqual({ result: 'promoted' })
  expect(await seenValues(link, topic)).toEqual(['1', '2', '3'])
})

test('shows nothing of an epoch of which one object is missing or damaged, also when healing', async ({ broker }) => {
  const link = connect(broker)
  const topic = await freshTopic(broker)
  const rig = await sinkRig(link, topicSpec(topic))
  await rig.base()
  const big = 'x'.repeat(800_000)
  const invocation = Array.from({ length: 15 }, (_, i): [string, string] => ['k', `${i}${big}`])
  const [one] = await rig.stage(1, invocation, invocation)
  const [, second] = one.parts.flatMap(({ objects }) => objects)
  const whole = rig.store.snapshot()
  rig.store.damage(second.name)
  await expect(rig.promote(one)).rejects.toThrow(/^OBJECT_DAMAGED/)
  rig.store.restore(whole)
  rig.store.drop(second.name)
  const healing = rig.sink.promote(one, permitFor(rig.incarnation, 1), { healing: true })
  await expect(healing).rejects.toThrow(/^OBJECT_MISSING/)
  expect(await seenValues(link, topic)).toEqual([])
  rig.store.restore(whole)
  expect(await rig.promote(one)).toEqual({ result: 'promoted' })
  expect(await seenValues(link, topic)).toHaveLength(30)
})

test('heals a sink restored from a backup, whose topics have other ids, and goes on after it', async ({ broker }) => {
  const link = connect(broker)
  const topic = await freshTopic(broker)
  const rig = await sinkRig(link, topicSpec(topic))
  await rig.base()
  const epochs = []
  for (let epoch = 1; epoch <= 4; epoch++) epochs.push((await rig.stage(epoch, [['k', String(epoch)]]))[0])
  for (const committable of epochs.slice(0, 3)) await rig.promote(committable)
  // The backup is of epoch 1: its marker in a new control topic, its row in a new topic.
  const control = controlTopic(rig.identity)
  await recreate(broker, link, topic)
  const admin = kafkaClient(broker).admin()
  await admin.connect()
  await admin.deleteTopics({ topics: [control] })
  while ((await link.topics([control])).size > 0);
  await admin.disconnect()
  expect(await rig.sink.base(0, markerOf(rig.incarnation, 1))).toEqual(markerOf(rig.incarnation, 1))
  const producer = kafkaClient(broker).producer()
  await producer.connect()
  await producer.send({ topic, messages: [{ key: 'k', value: '1' }] })
  await producer.disconnect()

  const [, two, three, four] = epochs
  await expect(rig.promote(two)).rejects.toThrow(/^TOPIC_RECREATED/)
  for (const lost of [two, three]) {
    const permit = permitFor(rig.incarnation, lost.epoch)
    expect(await rig.sink.promote(lost, permit, { healing: true })).toEqual({ result: 'promoted' })
  }
  expect(await rig.promote(four)).toEqual({ result: 'promoted' })
  expect(await rig.sink.marker(0)).toEqual(markerOf(rig.incarnation, 4))
  expect(await seenValues(link, topic)).toEqual(['1', '2', '3', '4'])
})

test('notices an output topic that was created again between two epochs', async ({ broker }) => {
  const link = connect(broker)
  const topic = await freshTopic(broker)
  const rig = await sinkRig(link, topicSpec(topic))
  await rig.base()
  const [one] = await rig.stage(1, [['k', '1']])
  await rig.promote(one)
  await recreate(broker, link, topic)
  const [two] = await rig.stage(2, [['k', '2']])
  await expect(rig.promote(two)).rejects.toThrow(/^TOPIC_RECREATED/)
  expect(await rig.sink.marker(0)).toEqual(markerOf(rig.incarnation, 1))
})

async function recreate(broker: Broker, link: KafkaConnection, topic: string): Promise<void> {
  const admin = kafkaClient(broker).admin()
  await admin.connect()
  await admin.deleteTopics({ topics: [topic] })
  while ((await link.topics([topic])).size > 0);
  await admin.createTopics({ topics: [{ topic, numPartitions: 1 }], waitForLeaders: true })
  await admin.disconnect()
}

test('does not read a marker past a hung transaction, and says which partition hangs', async ({ broker }) => {
  const link = connect(broker)
  const topic = await freshTopic(broker)
  const rig = await sinkRig(link, topicSpec(topic), { patienceMs: 300 })
  await rig.base()
  const control = controlTopic(rig.identity)
  const producer = kafkaClient(broker).producer({ transactionalId: `hung-${topic}`, maxInFlightRequests: 1 })
  await producer.connect()
  const transaction = await producer.transaction()
  await transaction.send({ topic: control, messages: [{ key: 'foreign', value: 'x' }] })
  await expect(rig.sink.marker(0)).rejects.toThrow(new RegExp(`^SINK_UNAVAILABLE.*${control}/0`))
  const [one] = await rig.stage(1, [['k', 'v']])
  await expect(rig.promote(one)).rejects.toThrow(/^SINK_UNAVAILABLE/)
  await transaction.abort()
  await producer.disconnect()
  expect(await rig.promote(one)).toEqual({ result: 'promoted' })
})

test('a marker that Pawl did not write is told, and a tombstone is none', async ({ broker }) => {
  const link = connect(broker)
  const rig = await sinkRig(link, topicSpec(await freshTopic(broker)))
  await rig.base()
  const [record] = [{ key: `pawl-test-${rig.identity.pipeline.replaceAll('-', '--')}-out-0`, value: '{"version":9}' }]
  const producer = kafkaClient(broker).producer()
  await producer.connect()
  await producer.send({ topic: controlTopic(rig.identity), messages: [record] })
  await expect(rig.sink.marker(0)).rejects.toThrow(/^MARKER_UNKNOWN.*version/)
  await producer.send({ topic: controlTopic(rig.identity), messages: [{ ...record, value: null }] })
  expect(await rig.sink.marker(0)).toBeNull()
  await producer.disconnect()
})

test('tells limits that follow the transaction timeout', async ({ broker }) => {
  const identity = { stage: 's', pipeline: 'p', sink: 'k' }
  const options = { spec: topicSpec('any'), identity, store: memoryStore(), transactionTimeoutMs: 8000 }
  const { limits } = await openKafkaSink(connect(broker), options)
  expect(limits).toEqual({ laneRowsMax: 200_000, laneBytesMax: 20_000_000 })
})
