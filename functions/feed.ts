/**
 * Feeds the quick start: makes the topics that it is told of, and appends lines of words to the first of them.
 *
 * For a first hour without a client inside the network of the brokers. Its event says how many lines; none makes the
 * topics alone. Lines are numbered and their words drawn by number, so that a count can be checked by hand.
 */
import { kafka } from '../lib/adapters/kafka/cluster.ts'
import { secretCredentials } from '../lib/adapters/secretsmanager/credentials.ts'
import { kafkaOptionsOf } from './brokers.ts'
import type { KafkaEnvironment } from './environment.ts'

const partitions = 4
const words = ['ratchet', 'pawl', 'tooth', 'gear', 'catch', 'wheel', 'spring', 'shaft', 'cam', 'lever']

/** What Lambda calls; answers with how many lines were appended. */
export async function run({ lines = 0 }: { readonly lines?: number }): Promise<{ readonly lines: number }> {
  const { PAWL_KAFKA = '', FEED_TOPICS = '' } = process.env
  const cluster = kafka(kafkaOptionsOf(JSON.parse(PAWL_KAFKA) as KafkaEnvironment, secretCredentials))
  const topics = FEED_TOPICS.split(',')
  for (const topic of topics) await cluster.createTopic(topic, partitions)
  const appender = await cluster.openAppender(topics[0])
  try {
    for (let partition = 0; partition < partitions; partition++) {
      const mine = Array.from(
        { length: Math.ceil((lines - partition) / partitions) },
        (_, i) => i * partitions + partition,
      )
      const records = mine.map((n) => ({ key: null, value: Buffer.from(lineOf(n)), timestampMs: Date.now() }))
      await appender.append(partition, records)
    }
  } finally {
    await appender.close()
  }
  return { lines }
}

/** Line number `n`: two words, by its last two digits. */
function lineOf(n: number): string {
  return `${words[n % 10]} ${words[Math.floor(n / 10) % 10]}`
}
