import { randomUUID } from 'node:crypto'
import { afterAll, expect } from 'vitest'
import type { KafkaConnection } from '../../lib/adapters/kafka/connection.ts'
import { controlTopic, transactionalId } from '../../lib/adapters/kafka/names.ts'
import { openKafkaSink } from '../../lib/adapters/kafka/sink.ts'
import { memoryStore } from '../../lib/adapters/memory/store.ts'
import { contractCases } from '../../lib/testing/contracts/contract.ts'
import { sinkContract } from '../../lib/testing/contracts/sink.ts'
import { contractLanes, contractRowSpec, type SinkControls } from '../../lib/testing/contracts/sink-subject.ts'
import { type Broker, kafkaTest as test } from '../support/kafka.ts'
import { connectPlain, seen, topicSpec } from '../support/kafka-sink.ts'
import { freshTopic, kafkaClient } from '../support/kafka-topics.ts'

const open: KafkaConnection[] = []
afterAll(async () => {
  for (const connection of open.splice(0)) await connection.close()
})

let broker: Broker

/** A topic of its own, all lanes in one partition, so that a reader sees the order of promotion. */
async function fresh() {
  const topic = await freshTopic(broker)
  const identity = { stage: 'contract', pipeline: randomUUID(), sink: 'rows' }
  const store = memoryStore()
  const spec = topicSpec(topic, { ...contractRowSpec, topic, lanes: contractLanes })
  const connect = () => {
    const connection = connectPlain(broker.bootstrap)
    open.push(connection)
    return connection
  }
  const controls = controlsOf(connect(), topic, controlTopic(identity), identity, store)
  return {
    open: async () => ({ sink: await openKafkaSink(connect(), { spec, identity, store }), store, controls }),
  }
}

function controlsOf(
  link: KafkaConnection,
  topic: string,
  control: string,
  identity: Parameters<typeof transactionalId>[0],
  store: ReturnType<typeof memoryStore>,
): SinkControls {
  const objectsOf = (committable: Parameters<SinkControls['loseStaging']>[0]) =>
    committable.parts.flatMap(({ objects }) => objects.map(({ name }) => name))
  return {
    visible: async () => (await seen(link, topic)).map(({ key, value, timestampMs }) => ({ key, value, timestampMs })),
    backup: async () => {
      const copies = new Map([
        [topic, await seen(link, topic)],
        [control, await seen(link, control)],
      ])
      return () => restore(link, copies)
    },
    dropMarker: (lane) =>
      write(control, [{ partition: lane, key: transactionalId(identity, lane), value: null, timestamp: '0' }]),
    loseStaging: (committable) => store.delete(objectsOf(committable)),
    damageStaging: async (committable) => store.damage(objectsOf(committable)[0]),
  }
}

/** Puts topics in place of those that are there, as tools for backups do: with the records, not with the ids. */
async function restore(
  link: KafkaConnection,
  copies: ReadonlyMap<string, Awaited<ReturnType<typeof seen>>>,
): Promise<void> {
  const admin = kafkaClient(broker).admin()
  await admin.connect()
  for (const [topic, records] of copies) {
    const numPartitions = (await link.topics([topic])).get(topic)!.leaders.length
    await admin.deleteTopics({ topics: [topic] })
    while ((await link.topics([topic])).size > 0);
    const configEntries = numPartitions > 1 ? [{ name: 'cleanup.policy', value: 'compact' }] : []
    await admin.createTopics({ topics: [{ topic, numPartitions, configEntries }], waitForLeaders: true })
    await write(
      topic,
      records.map(({ partition, key, value, timestampMs }) => ({ partition, key, value, timestamp: `${timestampMs}` })),
    )
  }
  await admin.disconnect()
}

async function write(
  topic: string,
  messages: { partition: number; key: string | null; value: string | null; timestamp: string }[],
): Promise<void> {
  const producer = kafkaClient(broker).producer()
  await producer.connect()
  await producer.send({ topic, messages })
  await producer.disconnect()
}

const implementation = {
  name: 'Kafka',
  fresh,
  differences: {
    'has one effect when several promote at once':
      'promoters fence one another, so that some are told TRANSACTION_FENCED in place of the marker',
  },
}

for (const { name, run } of contractCases(sinkContract, implementation)) {
  test(`a Kafka sink: ${name}`, async ({ broker: shared }) => {
    broker = shared
    await expect(run()).resolves.toBeUndefined()
  })
}
