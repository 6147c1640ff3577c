/**
 * Topics and records for tests against a Kafka broker, by kafkajs's public client.
 *
 * Every topic has a name of its own, since the broker is shared.
 */
import { randomUUID } from 'node:crypto'
import { Kafka, logLevel } from 'kafkajs'
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
