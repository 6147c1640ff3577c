/**
 * The object that describes a topic: JSON, version 1, created once.
 *
 * `logs/<topic>/topic` holds the random id of this life of the topic, the number of partitions and their first
 * offset. Objects never change, so growth is an object of its own, `logs/<topic>/growth/<id>-<partitions>`; the
 * largest counts, and those of an earlier life do not.
 */
import { PawlError } from '../../model/errors.ts'
import { offsetText, parseOffset } from '../../model/offsets.ts'
import type { Store } from '../../ports/store.ts'
import { sha256Of } from '../shared/staged-objects.ts'

/** Newest version that is read and written. */
export const topicObjectVersion = 1

/** What is known of a topic. */
export interface TopicObject {
  readonly topicId: string
  readonly partitions: number
  readonly baseOffset: bigint
}

/** Writes the topic unless it exists. */
export async function createTopicObject(store: Store, topic: string, made: TopicObject): Promise<void> {
  if (!/^(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}$/.test(topic)) {
    throw new PawlError('PIPELINE_INVALID', `${JSON.stringify(topic)} is no topic name`, { topic })
  }
  const { topicId: id, partitions, baseOffset } = made
  const text = JSON.stringify({ version: topicObjectVersion, id, partitions, baseOffset: offsetText(baseOffset) })
  await store.create(topicName(topic), [Buffer.from(`${text}\n`)])
}

/** The topic as it stands, growth included. Throws `TOPIC_MISSING`, `LOG_SEGMENT_DAMAGED`, `LOG_TOO_NEW`. */
export async function readTopicObject(store: Store, topic: string): Promise<TopicObject> {
  const bytes = await store.read(topicName(topic))
  if (bytes === null) throw new PawlError('TOPIC_MISSING', topic, { topic })
  const made = parseTopicObject(bytes, topic)
  const prefix = growthPrefix(topic, made.topicId)
  let { partitions } = made
  for await (const { name } of store.list(prefix)) {
    partitions = Math.max(partitions, Number(name.slice(prefix.length)))
  }
  return { ...made, partitions }
}

/** Grows the topic to `partitions`; a topic that has as many stays as it is. */
export async function growTopic(store: Store, topic: string, topicId: string, partitions: number): Promise<void> {
  await store.create(`${growthPrefix(topic, topicId)}${partitions.toString().padStart(6, '0')}`, [])
}

function parseTopicObject(bytes: Buffer, topic: string): TopicObject {
  try {
    const { version, id, partitions, baseOffset } = JSON.parse(bytes.toString())
    if (version > topicObjectVersion) throw new PawlError('LOG_TOO_NEW', `topic ${topic} has version ${version}`)
    if (typeof id !== 'string' || !Number.isSafeInteger(partitions)) throw new Error('fields are missing')
    return { topicId: id, partitions, baseOffset: parseOffset(baseOffset) }
  } catch (error) {
    if (error instanceof PawlError && error.code === 'LOG_TOO_NEW') throw error
    const details = { topic, bytes: bytes.length, sha256: sha256Of([bytes]) }
    throw new PawlError('LOG_SEGMENT_DAMAGED', `${topicName(topic)} describes no topic`, details, error)
  }
}

const topicName = (topic: string) => `logs/${topic}/topic`

const growthPrefix = (topic: string, topicId: string) => `logs/${topic}/growth/${topicId}-`
