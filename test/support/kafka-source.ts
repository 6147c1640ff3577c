/**
 * Opens Kafka sources in tests and reads them to the end.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type KafkaOptions, kafka } from '../../lib/adapters/kafka/cluster.ts'
import { bytes } from '../../lib/model/serde.ts'
import type { LogBounds, LogSource } from '../../lib/ports/log.ts'
import type { TopicSpec } from '../../lib/ports/spec.ts'
import { type Row, rowsOfBatch } from '../model/record-batches.ts'
import type { Broker } from './kafka.ts'

/** A topic with every default, as a source. */
export function sourceSpec(
  topic: string,
  isolation: TopicSpec<unknown, unknown>['isolation'] = 'read_committed',
): TopicSpec<unknown, unknown> {
  const serde = bytes() as TopicSpec<unknown, unknown>['key']
  const asSource = { start: { at: 'earliest' as const }, isolation, onLostOffsets: 'fail' as const, group: null }
  return {
    kind: 'topic',
    topic,
    key: serde,
    value: serde,
    ...asSource,
    lanes: 1,
    route: null,
    headers: null,
    cluster: null,
  }
}

export interface OpenOptions extends Partial<KafkaOptions> {
  readonly isolation?: TopicSpec<unknown, unknown>['isolation']
}

export async function openSource(
  broker: Pick<Broker, 'bootstrap'>,
  topic: string,
  { isolation, ...options }: OpenOptions = {},
): Promise<LogSource> {
  const context = { pipeline: 'p', incarnation: 'i', stage: 'test', directory: null }
  const spec = kafka({ brokers: broker.bootstrap, ...options })
  // A source has nothing to do with the store.
  return spec.openSource(sourceSpec(topic, isolation), context as Parameters<typeof spec.openSource>[1])
}

/** Every row of a range; partition 0 and the whole log as of now by default. */
export async function readAll(
  source: LogSource,
  range: {
    readonly partition?: number
    readonly start?: bigint
    readonly end?: bigint
    readonly topicId?: string
  } = {},
): Promise<Row[]> {
  const partition = range.partition ?? 0
  const bounds =
    range.start === undefined || range.end === undefined ? (await source.bounds()).partitions[partition] : null
  const rows: Row[] = []
  const [start, end] = [range.start ?? bounds!.start, range.end ?? bounds!.end]
  for await (const batch of source.read({ partition, start, end, topicId: range.topicId }))
    rows.push(...rowsOfBatch(batch))
  return rows
}

export function values(rows: readonly Row[]): (string | null)[] {
  return rows.map(({ value }) => value)
}

export function offsets(rows: readonly Row[]): string[] {
  return rows.map(({ offset }) => offset.toString())
}

/** Waits until the end of partition 0 is as given: end markers of transactions come a little later. */
export async function untilEnd(source: LogSource, end: bigint): Promise<LogBounds> {
  return until(
    () => source.bounds(),
    ({ partitions }) => partitions[0].end === end,
  )
}

/** Asks until the answer fits; gives up after a minute. */
export async function until<T>(ask: () => Promise<T>, fits: (answer: T) => boolean): Promise<T> {
  for (const deadline = Date.now() + 60_000; ; await sleep(20)) {
    const answer = await ask()
    if (fits(answer)) return answer
    if (Date.now() > deadline) throw new Error(`still not as expected: ${String(answer)}`)
  }
}
