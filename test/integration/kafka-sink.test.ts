import fc from 'fast-check'
import { afterEach, expect } from 'vitest'
import type { KafkaConnection } from '../../lib/adapters/kafka/connection.ts'
import { controlTopic } from '../../lib/adapters/kafka/names.ts'
import { bytes, nullable, text } from '../../lib/model/serde.ts'
import type { TopicSpec } from '../../lib/ports/spec.ts'
import { kafkaTest as test } from '../support/kafka.ts'
import { connectPlain, markerOf, seen, seenValues, sinkRig, topicSpec } from '../support/kafka-sink.ts'
import { freshTopic, kafkaClient } from '../support/kafka-topics.ts'
import { canWitness, javaPartitions, javaRead } from '../support/witness.ts'

type AnySpec = TopicSpec<unknown, unknown>
const open: KafkaConnection[] = []
afterEach(async () => {
  for (const connection of open.splice(0)) await connection.close()
})

function connect(broker: { readonly bootstrap: string }): KafkaConnection {
  const connection = connectPlain(broker.bootstrap)
  open.push(connection)
  return connection
}

test('shows an epoch when it is promoted, not when it is staged', async ({ broker }) => {
  const link = connect(broker)
  const topic = await freshTopic(broker, 3)
  const rig = await sinkRig(link, topicSpec(topic))
  expect(await rig.base()).toEqual([markerOf(rig.incarnation, 0)])
  const [one] = await rig.stage(
    1,
    [
      ['a', '1'],
      ['b', '2'],
    ],
    [['a', '3']],
  )
  expect(await seenValues(link, topic)).toEqual([])
  expect(await rig.promote(one)).toEqual({ result: 'promoted' })
  expect(await seenValues(link, topic)).toEqual(['1', '2', '3'])
  expect(await rig.sink.marker(0)).toEqual(markerOf(rig.incarnation, 1))
})

test('promotes once, however often it is asked, and answers with the marker', async ({ broker }) => {
  const link = connect(broker)
  const topic = await freshTopic(broker)
  const rig = await sinkRig(link, topicSpec(topic))
  await rig.base()
  const [one] = await rig.stage(1, [['a', '1']])
  expect(await rig.promote(one)).toEqual({ result: 'promoted' })
  for (let i = 0; i < 3; i++)
    expect(await rig.promote(one)).toEqual({ result: 'refused', found: markerOf(rig.incarnation, 1) })
  expect(await seenValues(link, topic)).toEqual(['1'])
})

test('several who register a lane at once agree, though each fences the others', async ({ broker }) => {
  const topic = await freshTopic(broker)
  const rig = await sinkRig(connect(broker), topicSpec(topic))
  const all = [rig, ...(await Promise.all(Array.from({ length: 4 }, () => rig.twin(connect(broker)))))]
  const answers = await Promise.all(
    all.map(({ sink }, n) => sink.base(0, { incarnation: `run-${n}`, epoch: 0, hash: 'genesis' })),
  )
  const found = await rig.sink.marker(0)
  expect(found?.epoch).toBe(0)
  for (const answer of answers) expect(answer).toEqual(found)
})

test('changes nothing when epoch e is promoted late, after e + 1', async ({ broker }) => {
  const link = connect(broker)
  const topic = await freshTopic(broker)
  const rig = await sinkRig(link, topicSpec(topic))
  await rig.base()
  const [one] = await rig.stage(1, [['a', '1']])
  const [two] = await rig.stage(2, [['a', '2']])
  await rig.promote(one)
  await rig.promote(two)
  expect(await rig.promote(one)).toEqual({ result: 'refused', found: markerOf(rig.incarnation, 2) })
  expect(await seenValues(link, topic)).toEqual(['1', '2'])
})

test('writes nothing before its turn', async ({ broker }) => {
  const link = connect(broker)
  const topic = await freshTopic(broker)
  const rig = await sinkRig(link, topicSpec(topic))
  await rig.base()
  const [one] = await rig.stage(1, [['a', '1']])
  const [two] = await rig.stage(2, [['a', '2']])
  expect(await rig.promote(two)).toEqual({ result: 'refused', found: markerOf(rig.incarnation, 0) })
  await rig.promote(one)
  await rig.promote(two)
  expect((await seen(link, topic)).map(({ value }) => value)).toEqual(['1', '2'])
})

test('refuses where another incarnation has been, and where the hash differs', async ({ broker }) => {
  const link = connect(broker)
  const topic = await freshTopic(broker)
  const first = await sinkRig(link, topicSpec(topic))
  await first.base()
  const reborn = await sinkRig(link, topicSpec(topic), { identity: first.identity })
  expect(await reborn.base()).toEqual([markerOf(first.incarnation, 0)])
  const [one] = await reborn.stage(1, [['a', '1']])
  const own = { ...one, prev: markerOf(reborn.incarnation, 0) }
  expect(await reborn.promote(own)).toEqual({ result: 'refused', found: markerOf(first.incarnation, 0) })
  const [other] = await first.stage(1, [['a', '1']])
  const rewound = { ...other, prev: { ...other.prev, hash: 'of another chain' } }
  expect(await first.promote(rewound)).toEqual({ result: 'refused', found: markerOf(first.incarnation, 0) })
  expect(await seenValues(link, topic)).toEqual([])
})

test('case 19: a committable without rows moves the marker and shows nothing', async ({ broker }) => {
  const link = connect(broker)
  const topic = await freshTopic(broker)
  const rig = await sinkRig(link, topicSpec(topic))
  await rig.base()
  const [one] = await rig.stage(1, [['a', '1']])
  expect(await rig.promote({ ...one, parts: [], rows: 0, bytes: 0 })).toEqual({ result: 'promoted' })
  expect(await seenValues(link, topic)).toEqual([])
  expect(await rig.sink.marker(0)).toEqual(markerOf(rig.incarnation, 1))
})

test('case 25, case 26: fifty epochs back to back use one transactional id and lose none', async ({ broker }) => {
  const link = connect(broker)
  const topic = await freshTopic(broker, 2)
  const rig = await sinkRig(link, topicSpec(topic))
  await rig.base()
  for (let epoch = 1; epoch <= 50; epoch++) {
    const [committable] = await rig.stage(epoch, [[`k${epoch}`, String(epoch)]])
    expect(await rig.promote(committable)).toEqual({ result: 'promoted' })
  }
  expect(await seenValues(link, topic)).toEqual(Array.from({ length: 50 }, (_, i) => String(i + 1)).sort())
  const control = await seen(link, controlTopic(rig.identity))
  expect(new Set(control.map(({ key }) => key)).size).toBe(1)
})

test('finds the marker behind thousands of others, and before a long tail of aborted ones', async ({ broker }) => {
  const link = connect(broker)
  const topic = await freshTopic(broker)
  const rig = await sinkRig(link, topicSpec(topic))
  await rig.base()
  const control = controlTopic(rig.identity)
  const producer = kafkaClient(broker).producer({ transactionalId: `filler-${topic}`, maxInFlightRequests: 1 })
  await producer.connect()
  const fill = async (end: 'commit' | 'abort') => {
    const transaction = await producer.transaction()
    const messages = Array.from({ length: 3000 }, (_, i) => ({ key: `other-${i}`, value: 'x' }))
    await transaction.send({ topic: control, messages: [...messages, { key: 'nobody', value: null }] })
    await transaction[end]()
  }
  await fill('commit')
  await fill('abort')
  await producer.disconnect()
  expect(await rig.sink.marker(0)).toEqual(markerOf(rig.incarnation, 0))
  const [one] = await rig.stage(1, [['a', '1']])
  expect(await rig.promote(one)).toEqual({ result: 'promoted' })
  expect(await rig.sink.marker(0)).toEqual(markerOf(rig.incarnation, 1))
})

test('finds the marker in a compacted control partition', async ({ broker }) => {
  const link = connect(broker)
  const topic = await freshTopic(broker)
  const rig = await sinkRig(link, topicSpec(topic))
  await rig.base()
  const control = controlTopic(rig.identity)
  const admin = kafkaClient(broker).admin()
  await admin.connect()
  const eager = { 'segment.ms': '100', 'min.cleanable.dirty.ratio': '0.001', 'cleanup.policy': 'compact' }
  const configEntries = Object.entries(eager).map(([name, value]) => ({ name, value }))
  await admin.alterConfigs({ validateOnly: false, resources: [{ type: 2, name: control, configEntries }] })
  for (let epoch = 1; epoch <= 40; epoch++) {
    const [committable] = await rig.stage(epoch, [['a', String(epoch)]])
    await rig.promote(committable)
  }
  for (let epoch = 41; (await seen(link, control)).length > 30; epoch++) {
    const [committable] = await rig.stage(epoch, [['a', String(epoch)]])
    expect(await rig.promote(committable)).toEqual({ result: 'promoted' })
    expect(await rig.sink.marker(0)).toEqual(markerOf(rig.incarnation, epoch))
    await new Promise((resolve) => setTimeout(resolve, 150))
  }
  await admin.disconnect()
})

test('refuses with no marker when the control topic was deleted, or created again', async ({ broker }) => {
  const link = connect(broker)
  const topic = await freshTopic(broker)
  const rig = await sinkRig(link, topicSpec(topic))
  await rig.base()
  const [one] = await rig.stage(1, [['a', '1']])
  await rig.promote(one)
  const [two] = await rig.stage(2, [['a', '2']])
  const control = controlTopic(rig.identity)
  const admin = kafkaClient(broker).admin()
  await admin.connect()
  await admin.deleteTopics({ topics: [control] })
  while ((await link.topics([control])).size > 0);
  expect(await rig.sink.marker(0)).toBeNull()
  expect(await rig.promote(two)).toEqual({ result: 'refused', found: null })
  const configEntries = [{ name: 'cleanup.policy', value: 'compact' }]
  await admin.createTopics({ topics: [{ topic: control, numPartitions: 1, configEntries }], waitForLeaders: true })
  await admin.disconnect()
  expect(await rig.promote(two)).toEqual({ result: 'refused', found: null })
  expect(await seenValues(link, topic)).toEqual(['1'])
})

test('refuses a control topic that is not compacted', async ({ broker }) => {
  const link = connect(broker)
  const rig = await sinkRig(link, topicSpec(await freshTopic(broker)))
  const admin = kafkaClient(broker).admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic: controlTopic(rig.identity), numPartitions: 1 }], waitForLeaders: true })
  await admin.disconnect()
  await expect(rig.base()).rejects.toThrow(/^CONTROL_TOPIC_INVALID.*cleanup.policy=delete/)
})

test('grows the control topic with the lanes, and keeps the markers', async ({ broker }) => {
  const link = connect(broker)
  const topic = await freshTopic(broker)
  const narrow = await sinkRig(link, topicSpec(topic))
  await narrow.base()
  const [one] = await narrow.stage(1, [['a', '1']])
  await narrow.promote(one)
  const { identity, incarnation } = narrow
  const wide = await sinkRig(link, topicSpec(topic, { lanes: 3 }), { identity, incarnation })
  expect(await wide.base()).toEqual([1, 0, 0].map((epoch) => markerOf(incarnation, epoch)))
  expect((await link.topics([controlTopic(identity)])).get(controlTopic(identity))?.leaders).toHaveLength(3)
})

test('lanes promote by themselves, side by side, and an untouched lane keeps its marker', async ({ broker }) => {
  const link = connect(broker)
  const topic = await freshTopic(broker, 4)
  const rig = await sinkRig(link, topicSpec(topic, { lanes: 4 }))
  await rig.base()
  const rows = Array.from({ length: 400 }, (_, i): [string, string] => [`k${i}`, String(i)])
  const committables = await rig.stage(1, rows)
  expect(committables).toHaveLength(4)
  const results = await Promise.all(committables.map((committable) => rig.promote(committable)))
  expect(results).toEqual(committables.map(() => ({ result: 'promoted' })))
  const [only] = await rig.stage(2, [['k0', 'again']])
  await rig.promote(only)
  for (let lane = 0; lane < 4; lane++)
    expect(await rig.sink.marker(lane)).toEqual(markerOf(rig.incarnation, lane === only.lane ? 2 : 1))
  expect(await seenValues(link, topic)).toEqual([...rows.map(([, value]) => value), 'again'].sort())
})

test('keeps tombstones, empty values, headers and timestamps', async ({ broker }) => {
  const link = connect(broker)
  const topic = await freshTopic(broker)
  const headers: AnySpec['headers'] = (value) =>
    value === ''
      ? [
          ['h', null],
          ['é', Buffer.from('x')],
        ]
      : []
  const key = nullable(text()) as AnySpec['key']
  const rig = await sinkRig(link, topicSpec(topic, { key, value: nullable(text()) as AnySpec['value'], headers }))
  await rig.base()
  const [one] = await rig.stage(1, [
    ['k', null, 5],
    ['k', '', 6],
    ['', 'v', 7],
    [null, 'w', -1, 9],
  ])
  await rig.promote(one)
  const facts = (await seen(link, topic)).map(({ key, value, timestampMs, headers }) => [
    key,
    value,
    timestampMs,
    headers,
  ])
  expect(facts).toEqual([
    ['k', null, 5, []],
    [
      'k',
      '',
      6,
      [
        ['h', null],
        ['é', 'x'],
      ],
    ],
    ['', 'v', 7, []],
    [null, 'w', -1, []],
  ])
})

test('case 41, case 42, case 43: a plain consumer finds the keys where the Java client would put them', async ({
  broker,
}) => {
  const link = connect(broker)
  for (const [key, partitions, expected] of [
    ['100:48069', 12, 9],
    ['TT0124', 15, 10],
    ['fd7af248-ce5c-46a5-93d7-1c0c9005b99d', 32, 26],
    ['wu', 10, 0],
  ] as const) {
    const topic = await freshTopic(broker, partitions)
    const rig = await sinkRig(link, topicSpec(topic, { key: bytes() as AnySpec['key'] }))
    await rig.base()
    const [one] = await rig.stage(1, [[Buffer.from(key), 'v']])
    await rig.promote(one)
    expect(await seen(link, topic)).toMatchObject([{ partition: expected, key, value: 'v' }])
  }
})

test('a route fills several topics in one transaction', async ({ broker }) => {
  const link = connect(broker)
  const topics = [await freshTopic(broker, 2), await freshTopic(broker, 3)]
  const route = { topics, choose: (value: unknown) => topics[Number(value) % 2] }
  const rig = await sinkRig(link, topicSpec(topics[0], { route, lanes: 2 }))
  await rig.base()
  for (const committable of await rig.stage(
    1,
    ['0', '1', '2', '3', '4', '5'].map((value) => [`k${value}`, value]),
  ))
    await rig.promote(committable)
  expect(await seenValues(link, topics[0])).toEqual(['0', '2', '4'])
  expect(await seenValues(link, topics[1])).toEqual(['1', '3', '5'])
})

test('a large epoch of many batches and objects arrives whole and in order', async ({ broker }) => {
  const link = connect(broker)
  const topic = await freshTopic(broker, 3)
  const rig = await sinkRig(link, topicSpec(topic))
  await rig.base()
  const pad = 'x'.repeat(50_000)
  const rows = Array.from({ length: 900 }, (_, i): [string, string] => [`k${i % 10}`, `${i}:${pad}`])
  const [one] = await rig.stage(1, rows.slice(0, 500), rows.slice(500))
  expect(one.bytes).toBeGreaterThan(40_000_000)
  await rig.promote(one)
  const records = await seen(link, topic)
  expect(records).toHaveLength(900)
  const last = new Map<string | null, number>()
  for (const { key, value } of records) {
    const number = Number.parseInt(value!, 10)
    expect(number).toBeGreaterThan(last.get(key) ?? -1)
    last.set(key, number)
  }
})

test.skipIf(!canWitness())(
  'the Java client sees the same rows, and would have put them in the same partitions',
  async ({ broker }) => {
    const link = connect(broker)
    const topic = await freshTopic(broker, 7)
    const rig = await sinkRig(
      link,
      topicSpec(topic, { key: bytes() as AnySpec['key'], value: nullable(text()) as AnySpec['value'], lanes: 2 }),
    )
    await rig.base()
    const rows = fc
      .sample(fc.uint8Array({ maxLength: 40 }), 500)
      .map((key, i): [Uint8Array, string | null] => [key, i % 9 ? `v${i}` : null])
    const committables = await rig.stage(1, rows)
    await rig.promote(committables[0])
    for (const committable of committables) await rig.promote(committable)
    const places = javaPartitions(rows.map(([key]) => [key, 7]))
    const expected = rows.map(([key, value], i) => ({ partition: places[i], key: Buffer.from(key).toString(), value }))
    const order = (records: readonly object[]) => records.map((record) => JSON.stringify(record)).sort()
    expect(order(javaRead(broker.bootstrap, topic))).toEqual(order(expected))
  },
)
