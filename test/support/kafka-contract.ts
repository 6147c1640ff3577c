/**
 * The sink contract against a topic of its own, all lanes in one partition, so that a reader sees the order of promotion.
 */
import { randomUUID } from 'node:crypto'
import type { KafkaConnection } from '../../lib/adapters/kafka/connection.ts'
import { controlTopic, transactionalId } from '../../lib/adapters/kafka/names.ts'
import { openKafkaSink } from '../../lib/adapters/kafka/sink.ts'
import { memoryStore } from '../../lib/adapters/memory/store.ts'
import type { Store } from '../../lib/ports/store.ts'
import {
  contractLanes,
  contractRowSpec,
  type SinkControls,
  type SinkSubject,
} from '../../lib/testing/contracts/sink-subject.ts'
import type { Broker } from './kafka-broker.ts'
import { connectPlain, seen, topicSpec } from './kafka-sink.ts'
import { freshTopic, kafkaClient } from './kafka-topics.ts'
import { stagingControls } from './table-contract.ts'

/** A place for one case; clients of the sink reach the broker at `bootstrap`, the test goes around that. */
export async function freshKafka(
  broker: Broker,
  bootstrap = broker.bootstrap,
  more: Pick<SinkControls, 'disturb'> = {},
) {
  const topic = await freshTopic(broker)
  const open: KafkaConnection[] = []
  const identity = { stage: 'contract', pipeline: randomUUID(), sink: 'rows' }
  const store = memoryStore()
  const spec = topicSpec(topic, { ...contractRowSpec, topic, lanes: contractLanes })
  const connect = (to: string) => {
    const connection = connectPlain(to)
    open.push(connection)
    return connection
  }
  const controls: SinkControls = {
    ...controlsOf(broker, connect(broker.bootstrap), topic, identity),
    ...stagingControls(store),
    ...more,
  }
  const over = (other: Store) => openKafkaSink(connect(bootstrap), { spec, identity, store: other })
  return {
    async open(): Promise<SinkSubject> {
      return { sink: await over(store), store, controls, over }
    },
    async dispose() {
      for (const connection of open) await connection.close()
    },
  }
}

function controlsOf(
  broker: Broker,
  link: KafkaConnection,
  topic: string,
  identity: Parameters<typeof transactionalId>[0],
) {
  const control = controlTopic(identity)
  return {
    visible: async () => (await seen(link, topic)).map(({ key, value, timestampMs }) => ({ key, value, timestampMs })),
    backup: async () => {
      const copies = new Map([
        [topic, await seen(link, topic)],
        [control, await seen(link, control)],
      ])
      return () => restore(broker, link, copies)
    },
    dropMarker: (lane: number) =>
      write(broker, control, [{ partition: lane, key: transactionalId(identity, lane), value: null, timestamp: '0' }]),
  }
}

/** Puts topics in place of those that are there, as tools for backups do: with the records, not with the ids. */
async function restore(
  broker: Broker,
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
      broker,
      topic,
      records.map(({ partition, key, value, timestampMs }) => ({ partition, key, value, timestamp: `${timestampMs}` })),
    )
  }
  await admin.disconnect()
}

async function write(
  broker: Broker,
  topic: string,
  messages: { partition: number; key: string | null; value: string | null; timestamp: string }[],
): Promise<void> {
  const producer = kafkaClient(broker).producer()
  await producer.connect()
  await producer.send({ topic, messages })
  await producer.disconnect()
}
