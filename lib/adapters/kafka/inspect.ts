/**
 * What a topic is, and what the principal may do with it, for a doctor. Reads, and creates nothing.
 *
 * Source of the bits: `AclOperation` of Kafka; `authorizedOperations` has bit n set for operation n.
 */
import type { TopicOperation, TopicReport } from '../../ports/surroundings.ts'
import { kafkaCode } from './codes.ts'
import type { KafkaLink } from './link.ts'
import { metadata } from './metadata.ts'
import { describeConfigs } from './topic-requests.ts'

const bits: readonly (readonly [operation: TopicOperation, bit: number])[] = [
  ['Read', 3],
  ['Write', 4],
  ['Describe', 8],
  ['DescribeConfigs', 10],
]
const notTold = -2_147_483_648
const denied = 29
const settings = ['cleanup.policy', 'retention.ms']

/** Throws `BROKER_UNREACHABLE`, `AUTHENTICATION_FAILED`. */
export async function inspectTopics(link: KafkaLink, topics: readonly string[]): Promise<TopicReport[]> {
  const { topics: found } = await link.send('any', metadata(topics, true))
  return Promise.all(
    found.map(async ({ topic, error, operations }): Promise<TopicReport> => {
      const none = {
        topic,
        exists: error === denied,
        operations: error === denied ? new Set<never>() : null,
        configs: null,
      }
      return error === kafkaCode.none
        ? { ...none, exists: true, ...operationsOf(operations), configs: await configsOf(link, topic) }
        : none
    }),
  )
}

function operationsOf(mask: number): Pick<TopicReport, 'operations'> {
  if (mask === notTold) return { operations: null }
  return { operations: new Set(bits.flatMap(([operation, bit]) => ((mask >> bit) & 1 ? [operation] : []))) }
}

async function configsOf(link: KafkaLink, topic: string): Promise<TopicReport['configs']> {
  const { error, configs } = await link.send('any', describeConfigs('topic', topic, settings))
  return error === kafkaCode.none ? configs : null
}
