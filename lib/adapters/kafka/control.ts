/**
 * The control topic: one compacted topic a sink, one partition a lane, the lane's marker its last committed record.
 *
 * Group offsets would expire after an idle week; a compacted topic keeps the last record of each key for ever. No
 * two transactional ids share a partition, so a hung transaction of one lane never hides the marker of another.
 * A marker is read after the take-over of its id, up to the high watermark noted then, and only once the last
 * stable offset has reached it: what an earlier producer committed is then seen for certain.
 */
import { PawlError } from '../../model/errors.ts'
import type { Marker } from '../../model/manifest.ts'
import { RecordBatchEncoder } from '../../model/record-batch.ts'
import { kafkaCode, kafkaError } from './codes.ts'
import { ControlPartition } from './control-partition.ts'
import type { KafkaLink, TopicLayout } from './link.ts'
import { isTorn, noteKey } from './notes.ts'
import { patience } from './patience.ts'
import type { ReadyBatch } from './staged.ts'
import { createPartitions, createTopic, describeConfigs } from './topic-requests.ts'

const markerVersion = 1
/** Offsets looked at first, from the end: some thirty markers with their transaction ends. */
const firstSpan = 64n
/** How long a topic that was just created may stay unknown to the broker asked. */
const absentPatienceMs = 2000
const createTimeoutMs = 30_000
/** Small segments, for only closed ones are compacted. */
const controlConfigs = { 'cleanup.policy': 'compact', 'segment.bytes': String(16 * 1024 * 1024) }

/** Which control topic, and how many lanes share it. */
export interface ControlOptions {
  readonly topic: string
  readonly lanes: number
  /** How long to wait for the last stable offset, or for a leader. */
  readonly patienceMs: number
}

/** Creates the topic unless it is there, checks its policy, grows it until the lane has a partition. */
export async function ensureControl(link: KafkaLink, options: ControlOptions, lane: number): Promise<void> {
  const { topic, patienceMs } = options
  const partitions = Math.max(options.lanes, lane + 1)
  if ((await link.topics([topic])).get(topic) === undefined) await makeTopic(link, topic, partitions, controlConfigs)
  const patient = patience(patienceMs)
  for (;;) {
    const layout = (await link.topics([topic])).get(topic)
    if (layout !== undefined && layout.leaders.length <= lane) await grow(link, topic, partitions)
    else if (layout !== undefined && layout.leaders[lane] >= 0) break
    if (!(await patient.wait())) throw new PawlError('SINK_UNAVAILABLE', `${topic}/${lane} has no leader`)
  }
  await checkPolicy(link, topic)
}

/** Makes a topic unless it is there. */
export async function makeTopic(
  link: KafkaLink,
  topic: string,
  partitions: number,
  configs: Readonly<Record<string, string>>,
): Promise<void> {
  const request = createTopic(topic, partitions, configs, createTimeoutMs)
  const { error, message } = await link.send('controller', request, createTimeoutMs)
  if (error !== kafkaCode.none && error !== kafkaCode.topicExists)
    throw kafkaError(error, `creation of ${topic}`, message)
}

async function grow(link: KafkaLink, topic: string, partitions: number): Promise<void> {
  const request = createPartitions(topic, partitions, createTimeoutMs)
  const { error, message } = await link.send('controller', request, createTimeoutMs)
  // INVALID_PARTITIONS: somebody else grew it; the caller looks again.
  if (error !== kafkaCode.none && error !== kafkaCode.invalidPartitions)
    throw kafkaError(error, `growth of ${topic} to ${partitions} partitions`, message)
}

async function checkPolicy(link: KafkaLink, topic: string): Promise<void> {
  const { error, message, configs } = await link.send('any', describeConfigs('topic', topic, ['cleanup.policy']))
  if (error !== kafkaCode.none) throw kafkaError(error, `settings of ${topic}`, message)
  const policy = configs.get('cleanup.policy')
  if (policy !== 'compact')
    throw new PawlError('CONTROL_TOPIC_INVALID', `${topic} has cleanup.policy=${policy}`, { topic })
}

/** A marker as it was found. */
export interface FoundMarker {
  readonly marker: Marker
  /** Ids of the topics that rows went to up to its epoch, by name. */
  readonly topicIds: TopicIds
  /** The transaction after it was committed, and aborted where its end had been missing for too long. */
  readonly torn: boolean
}
/** Topic ids by topic name. */
export type TopicIds = Readonly<Record<string, string>>

/** The marker (null: a tombstone) as a record of the lane's partition, to be sent in the transaction of the rows. */
export function markerBatch(
  options: ControlOptions,
  lane: number,
  id: string,
  { marker, topicIds }: { readonly marker: Marker | null; readonly topicIds: TopicIds },
): ReadyBatch {
  const encoder = new RecordBatchEncoder({ capacity: 1024 })
  const text = marker === null ? null : JSON.stringify({ version: markerVersion, ...plain(marker), topicIds })
  encoder.add(Date.now(), id, text)
  return { topic: options.topic, partition: lane, batch: encoder.seal({ transactional: true }), rows: 1 }
}

function plain({ incarnation, epoch, hash }: Marker): Marker {
  return { incarnation, epoch, hash }
}

/** The request by which `ensureControl` makes the topic, as a person would write it. */
export function controlRequest({ topic, lanes }: ControlOptions): string {
  const configs = Object.entries(controlConfigs).map(([name, value]) => ` --config ${name}=${value}`)
  return `kafka-topics.sh --create --if-not-exists --topic ${topic} --partitions ${lanes}${configs.join('')}`
}

/**
 * The marker of a lane, null when there is none (or no topic, or a tombstone in its place); `'unstable'` when an
 * open transaction has kept the end of the partition from being read for as long as `patienceMs`. `known`: the
 * control topic as it was just looked up.
 */
export async function readMarker(
  link: KafkaLink,
  options: ControlOptions,
  lane: number,
  id: string,
  known?: TopicLayout,
): Promise<FoundMarker | null | 'unstable'> {
  const partition = await controlPartition(link, options, lane, known)
  if (partition === null) return null
  const [end, start, stable] = await Promise.all([
    partition.offset('high-watermark'),
    partition.offset('earliest'),
    partition.offset('last-stable'),
  ])
  // It never goes back, so an early look is as good as a late one.
  if (stable < end && !(await partition.stable(end))) return 'unstable'
  let note: string | null | undefined
  for (let to = end, span = firstSpan; to > start; span *= 16n) {
    const from = span < to - start ? to - span : start
    const [last, noted] = await partition.last([id, noteKey(id)], from, to)
    note ??= noted?.value
    if (last?.value === null) return null
    if (last !== undefined) {
      const torn = isTorn(note, partition.topicId, last.offset)
      return { ...parseMarker(last.value, `${options.topic}/${lane}`), torn }
    }
    to = from
  }
  return null
}

/** The lane's partition; null when there is none. `known`: the control topic as it was just looked up. */
export async function controlPartition(
  link: KafkaLink,
  options: ControlOptions,
  lane: number,
  known?: TopicLayout,
): Promise<ControlPartition | null> {
  const layout = known ?? (await present(link, options.topic))
  return layout?.leaders[lane] === undefined ? null : new ControlPartition(link, options, lane, layout)
}

async function present(link: KafkaLink, topic: string): Promise<TopicLayout | undefined> {
  for (const patient = patience(absentPatienceMs); ; ) {
    const layout = (await link.topics([topic])).get(topic)
    if (layout !== undefined || !(await patient.wait())) return layout
  }
}

function parseMarker(text: string, place: string): Omit<FoundMarker, 'torn'> {
  const unknown = (cause?: unknown) =>
    new PawlError('MARKER_UNKNOWN', `${place} holds ${text.slice(0, 200)}`, {}, cause)
  let value: Partial<Marker> & { readonly version?: number; readonly topicIds?: TopicIds }
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw unknown(error)
  }
  const { version, incarnation, epoch, hash, topicIds = {} } = value ?? {}
  if (version !== markerVersion || typeof incarnation !== 'string' || !Number.isSafeInteger(epoch)) throw unknown()
  if (typeof hash !== 'string') throw unknown()
  return { marker: { incarnation, epoch: epoch!, hash }, topicIds }
}
