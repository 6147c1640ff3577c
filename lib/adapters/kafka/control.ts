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
import { decodeBatches } from '../../model/record-decode.ts'
import { isLeaderRetry, kafkaCode, kafkaError } from './codes.ts'
import type { KafkaLink, TopicLayout } from './link.ts'
import { fetchCommitted, listOffset, type OffsetKind } from './partition-requests.ts'
import { patience } from './patience.ts'
import type { ReadyBatch } from './staged.ts'
import { createPartitions, createTopic, describeConfigs } from './topic-requests.ts'
import type { WireRequest } from './wire.ts'

const markerVersion = 1
/** Offsets looked at first, from the end: some thirty markers with their transaction ends. */
const firstSpan = 64n
const fetchBytesMax = 1024 * 1024
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
}
/** Topic ids by topic name. */
export type TopicIds = Readonly<Record<string, string>>

/** The marker (null: a tombstone) as a record of the lane's partition, to be sent in the transaction of the rows. */
export function markerBatch(
  options: ControlOptions,
  lane: number,
  id: string,
  { marker, topicIds }: Omit<FoundMarker, 'marker'> & { readonly marker: Marker | null },
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
  const layout = known ?? (await present(link, options.topic))
  const leader = layout?.leaders[lane]
  if (leader === undefined) return null
  const partition = new ControlPartition(link, options, lane, leader)
  const [end, start] = await Promise.all([partition.offset('high-watermark'), partition.offset('earliest')])
  if (!(await partition.stable(end))) return 'unstable'
  for (let to = end, span = firstSpan; to > start; span *= 16n) {
    const from = span < to - start ? to - span : start
    const value = await partition.lastValue(id, from, to)
    if (value !== undefined) return value === null ? null : parseMarker(value, `${options.topic}/${lane}`)
    to = from
  }
  return null
}

async function present(link: KafkaLink, topic: string): Promise<TopicLayout | undefined> {
  for (const patient = patience(absentPatienceMs); ; ) {
    const layout = (await link.topics([topic])).get(topic)
    if (layout !== undefined || !(await patient.wait())) return layout
  }
}

function parseMarker(text: string, place: string): FoundMarker {
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

/** Reads of one control partition from its leader, repeated while leadership moves. */
class ControlPartition {
  readonly #link: KafkaLink
  readonly #options: ControlOptions
  readonly #partition: number
  #leader: number

  constructor(link: KafkaLink, options: ControlOptions, partition: number, leader: number) {
    this.#link = link
    this.#options = options
    this.#partition = partition
    this.#leader = leader
  }

  async offset(kind: OffsetKind): Promise<bigint> {
    return (await this.#ask(listOffset(this.#options.topic, this.#partition, kind))).offset
  }

  /** True once the last stable offset has reached `end`, false when patience ends before. */
  async stable(end: bigint): Promise<boolean> {
    for (const patient = patience(this.#options.patienceMs); (await this.offset('last-stable')) < end; )
      if (!(await patient.wait())) return false
    return true
  }

  /** The value of the last committed record of `key` in `[from, to)`; undefined when there is none. */
  async lastValue(key: string, from: bigint, to: bigint): Promise<string | null | undefined> {
    const { topic } = this.#options
    const keyBytes = Buffer.from(key)
    let found: string | null | undefined
    for (let at = from; at < to; ) {
      const answer = await this.#ask(fetchCommitted(topic, this.#partition, at, fetchBytesMax))
      if (answer.lastStable < to)
        throw new PawlError('SINK_UNAVAILABLE', `${topic}/${this.#partition} went back to ${answer.lastStable}`)
      const options = { topic, partition: this.#partition, start: at, end: to, aborted: answer.aborted }
      const { batches, next } = decodeBatches(answer.records, options)
      for (const batch of batches) {
        for (let row = 0; row < batch.count; row++) {
          if (batch.keyStarts[row] < 0) continue
          if (!keyBytes.equals(batch.bytes.subarray(batch.keyStarts[row], batch.keyEnds[row]))) continue
          const start = batch.valueStarts[row]
          found = start < 0 ? null : batch.bytes.toString('utf8', start, batch.valueEnds[row])
        }
      }
      // Below the last stable offset an empty answer means that compaction left nothing.
      if (next <= at) break
      at = next
    }
    return found
  }

  async #ask<T extends { readonly error: number }>(request: WireRequest<T>): Promise<T> {
    const { topic, patienceMs } = this.#options
    for (const patient = patience(patienceMs); ; ) {
      const answer = this.#leader < 0 ? null : await this.#link.send(this.#leader, request)
      if (answer?.error === kafkaCode.none) return answer
      const error = answer?.error ?? leaderNotAvailable
      if (!isLeaderRetry(error) || !(await patient.wait()))
        throw kafkaError(error, `${request.apiName} of ${topic}/${this.#partition}`)
      this.#leader = (await this.#link.topics([topic])).get(topic)?.leaders[this.#partition] ?? -1
    }
  }
}

const leaderNotAvailable = 5
