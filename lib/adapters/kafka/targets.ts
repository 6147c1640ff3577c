/**
 * What the topics of a sink are and what they accept, as of now.
 *
 * Layouts are looked up for each invocation; settings are remembered for a minute, by topic id.
 */
import { PawlError } from '../../model/errors.ts'
import { kafkaCode, kafkaError } from './codes.ts'
import type { KafkaLink, TopicLayout } from './link.ts'
import type { StagedTopic } from './staged.ts'
import type { StagingTarget } from './staging.ts'
import { describeConfigs } from './topic-requests.ts'
import type { TopicPartitions } from './transaction-requests.ts'

const rememberedMs = 60_000
/** Kafka's default for `max.message.bytes`. */
const messageBytesDefault = 1_048_588

const settingNames = [
  'cleanup.policy',
  'max.message.bytes',
  'message.timestamp.type',
  'message.timestamp.before.max.ms',
  'message.timestamp.after.max.ms',
  // Brokers before 3.6 know only this one.
  'message.timestamp.difference.max.ms',
] as const
type Settings = ReadonlyMap<string, string | null>

/** Looks up staging targets. Throws `TOPIC_MISSING`, `AUTHORIZATION_FAILED`. */
export function targetLookup(link: KafkaLink): (topics: readonly string[]) => Promise<StagingTarget[]> {
  const remembered = new Map<string, { readonly settings: Settings; readonly untilMs: number }>()
  const settingsOf = async (topic: string, topicId: string): Promise<Settings> => {
    const known = remembered.get(topicId)
    if (known !== undefined && performance.now() < known.untilMs) return known.settings
    const answer = await link.send('any', describeConfigs('topic', topic, settingNames))
    if (answer.error !== kafkaCode.none) throw kafkaError(answer.error, `settings of ${topic}`, answer.message)
    remembered.set(topicId, { settings: answer.configs, untilMs: performance.now() + rememberedMs })
    return answer.configs
  }
  return async (topics) => {
    const layouts = await link.topics(topics)
    return Promise.all(
      topics.map(async (topic) => {
        const { topicId, leaders } = presentLayout(layouts, topic)
        return stagingTarget(topic, topicId, leaders.length, await settingsOf(topic, topicId))
      }),
    )
  }
}

function stagingTarget(topic: string, topicId: string, partitions: number, settings: Settings): StagingTarget {
  const number = (name: string, otherwise: number) => Number(settings.get(name) ?? otherwise)
  const appended = settings.get('message.timestamp.type') === 'LogAppendTime'
  const difference = number('message.timestamp.difference.max.ms', Number.POSITIVE_INFINITY)
  const nowMs = Date.now()
  return {
    topic,
    topicId,
    partitions,
    messageBytesMax: number('max.message.bytes', messageBytesDefault),
    timestampMinMs: appended
      ? Number.NEGATIVE_INFINITY
      : nowMs - Math.min(difference, number('message.timestamp.before.max.ms', Number.POSITIVE_INFINITY)),
    timestampMaxMs: appended
      ? Number.POSITIVE_INFINITY
      : nowMs + Math.min(difference, number('message.timestamp.after.max.ms', Number.POSITIVE_INFINITY)),
    keyRequired: (settings.get('cleanup.policy') ?? '').includes('compact'),
  }
}

/**
 * The partitions of a committable, whose topics must be those that the lane wrote to last (`written`), or else
 * those that the rows were staged for; null for `written` takes them as they are. Throws `TOPIC_MISSING`,
 * `TOPIC_RECREATED`.
 */
export function checkedTargets(
  staged: readonly StagedTopic[],
  layouts: ReadonlyMap<string, TopicLayout>,
  written: Readonly<Record<string, string>> | null,
): TopicPartitions[] {
  return staged.map(({ topic, topicId, partitions }) => {
    const layout = presentLayout(layouts, topic)
    const expected = written === null ? layout.topicId : (written[topic] ?? topicId)
    if (layout.topicId !== expected || Math.max(...partitions) >= layout.leaders.length)
      throw new PawlError('TOPIC_RECREATED', `output topic ${topic}, with what it held`, {
        topic,
        expected,
        found: layout.topicId,
      })
    return { topic, partitions: [...partitions] }
  })
}

function presentLayout(layouts: ReadonlyMap<string, TopicLayout>, topic: string): TopicLayout {
  const layout = layouts.get(topic)
  if (layout === undefined) throw new PawlError('TOPIC_MISSING', `topic ${topic}`, { topic })
  return layout
}
