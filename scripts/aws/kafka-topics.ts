/**
 * Topics of the demo: made, fed with lines, and read as a foreign reader sees them.
 */
import kafkajs, { type Kafka } from 'kafkajs'

const partitions = 4

/** A client with short pauses. */
export function kafkaOf(bootstrapServers: string): Kafka {
  return new kafkajs.Kafka({
    brokers: bootstrapServers.split(','),
    logLevel: kafkajs.logLevel.NOTHING,
    retry: { initialRetryTime: 20, retries: 20, maxRetryTime: 500 },
  })
}

/** Makes source and target of the word count; leaves them if they are there. */
export async function createTopics(bootstrapServers: string): Promise<void> {
  const admin = kafkaOf(bootstrapServers).admin()
  await admin.connect()
  try {
    const topics = ['lines', 'word-counts'].map((topic) => ({ topic, numPartitions: partitions }))
    await admin.createTopics({ topics, waitForLeaders: true })
  } finally {
    await admin.disconnect()
  }
}

/** Appends lines, evenly over the partitions. */
export async function appendLines(bootstrapServers: string, lines: readonly string[]): Promise<void> {
  const producer = kafkaOf(bootstrapServers).producer({ idempotent: true, allowAutoTopicCreation: false })
  await producer.connect()
  try {
    for (let at = 0; at < lines.length; at += 5_000) {
      const some = lines.slice(at, at + 5_000)
      const messages = some.map((value, i) => ({ value, partition: i % partitions }))
      await producer.send({ topic: 'lines', messages })
    }
  } finally {
    await producer.disconnect()
  }
}
