/**
 * Topics and records for tests against a Kafka broker, by kafkajs's public client.
 *
 * Every topic has a name of its own, since the broker is shared.
 */
import { randomUUID } from 'node:crypto'
import { type Admin, Kafka, logLevel, type Message, type Producer } from 'kafkajs'
import type { KafkaLink } from '../../lib/adapters/kafka/link.ts'
import { appendBatch } from '../../lib/adapters/kafka/log-requests.ts'
import type { Broker } from './kafka.ts'

// kafkajs computes timers of negative length, of which Node warns.
process.removeAllListeners('warning')

export function kafkaClient(broker: Pick<Broker, 'bootstrap'>): Kafka {
  return new Kafka({
    brokers: [broker.bootstrap],
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 5, retries: 30, maxRetryTime: 500 },
  })
}

/** A new topic; answers with its name. */
export async function freshTopic(
  broker: Pick<Broker, 'bootstrap'>,
  partitions = 1,
  configs: Readonly<Record<string, string>> = {},
): Promise<string> {
  const topic = `test-${randomUUID()}`
  const admin = kafkaClient(broker).admin()
  await admin.connect()
  const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }))
  await admin.createTopics({ topics: [{ topic, numPartitions: partitions, configEntries }], waitForLeaders: true })
  await admin.disconnect()
  return topic
}

/** Runs `use` with an admin client. */
export async function asAdmin<T>(broker: Pick<Broker, 'bootstrap'>, use: (admin: Admin) => Promise<T>): Promise<T> {
  const admin = kafkaClient(broker).admin()
  await admin.connect()
  try {
    return await use(admin)
  } finally {
    await admin.disconnect()
  }
}

/** Records in one batch, outside any transaction. */
export async function send(
  broker: Pick<Broker, 'bootstrap'>,
  topic: string,
  messages: readonly Message[],
): Promise<void> {
  const producer = kafkaClient(broker).producer({ allowAutoTopicCreation: false })
  await producer.connect()
  await producer.send({ topic, messages: [...messages] })
  await producer.disconnect()
}

/** Moves the start of a partition's log up to `offset`. */
export async function deleteRecords(
  broker: Pick<Broker, 'bootstrap'>,
  topic: string,
  partition: number,
  offset: bigint,
): Promise<void> {
  await asAdmin(broker, async (admin) => {
    // Loads the leaders, without which kafkajs cannot delete.
    await admin.fetchTopicOffsets(topic)
    await admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: offset.toString() }] })
  })
}

/** A producer with a transactional id of its own, connected; the caller disconnects it. */
export async function transactionalProducer(broker: Pick<Broker, 'bootstrap'>): Promise<Producer> {
  const producer = kafkaClient(broker).producer({
    transactionalId: `test-${randomUUID()}`,
    maxInFlightRequests: 1,
    idempotent: true,
    allowAutoTopicCreation: false,
  })
  await producer.connect()
  return producer
}

/** One transaction with the values, in order, in partition 0. */
export async function transact(
  producer: Producer,
  topic: string,
  values: readonly string[],
  end: 'commit' | 'abort',
): Promise<void> {
  const transaction = await producer.transaction()
  for (const value of values) await transaction.send({ topic, messages: [{ value, partition: 0 }] })
  await transaction[end]()
}

/** A batch as it is, to partition 0; refused by the broker if it is no valid one. */
export async function sendBatch(link: KafkaLink, topic: string, batch: Buffer): Promise<void> {
  const leader = (await link.topics([topic])).get(topic)!.leaders[0]
  const { error } = await link.send(leader, appendBatch(topic, 0, batch))
  if (error !== 0) throw new Error(`the broker refused the batch: ${error}`)
}
