/**
 * A Kafka topic as a log source: bounds, start positions, bounded reads, and progress for monitoring tools.
 *
 * Offsets are the pipeline's own; no consumer group is joined, so nothing rebalances and nothing is committed by
 * reading. Under read_committed the end of a partition is its last stable offset, which no later abort can take
 * back. Group offsets are written when asked and read only as a start position.
 */
import { PawlError } from '../../model/errors.ts'
import type { LogBatch } from '../../model/records.ts'
import type { LogBounds, LogSource, StartPosition } from '../../ports/log.ts'
import { explicitOffsets } from '../shared/start-positions.ts'
import type { KafkaLink } from './link.ts'
import { patiently, readCode, readRefused } from './log-errors.ts'
import { commitGroup, fetchGroup, findGroup, type GroupOffsets, type Isolation, logEnds } from './log-requests.ts'
import { readRange } from './range-read.ts'
import { TopicView } from './topic-view.ts'
import type { WireRequest } from './wire.ts'

/** What a source reads, and how. */
export interface KafkaSourceOptions {
  readonly topic: string
  readonly isolation: Isolation
  /** Bytes of one fetch; two may be held. */
  readonly fetchBytesMax?: number
  /** How long to put up with brokers that are gone or leaders that move, for each request. */
  readonly patienceMs?: number
  /** Whoever reads keeps nothing of a batch (see `Serde.copies`): its memory may hold the next answer. */
  readonly reuse?: boolean
  /** Called by `close`. */
  readonly release?: () => Promise<void>
}

const defaults: Required<Omit<KafkaSourceOptions, 'topic' | 'isolation'>> = {
  fetchBytesMax: 2 * 1024 * 1024,
  patienceMs: 30_000,
  reuse: false,
  release: async () => undefined,
}

/** Opens nothing by itself: the first call connects. */
export class KafkaSource implements LogSource {
  readonly #link: KafkaLink
  readonly #view: TopicView
  readonly #options: Required<KafkaSourceOptions>

  constructor(link: KafkaLink, options: KafkaSourceOptions) {
    this.#link = link
    this.#options = {
      ...options,
      fetchBytesMax: options.fetchBytesMax ?? defaults.fetchBytesMax,
      patienceMs: options.patienceMs ?? defaults.patienceMs,
      reuse: options.reuse ?? defaults.reuse,
      release: options.release ?? defaults.release,
    }
    this.#view = new TopicView(link, options.topic)
  }

  async bounds(): Promise<LogBounds> {
    return patiently(this.#options.patienceMs, async () => {
      const layout = await this.#view.look()
      const [starts, ends] = await Promise.all([
        this.#view.offsets(layout, logEnds.earliest, this.#options.isolation),
        this.#view.offsets(layout, logEnds.latest, this.#options.isolation),
      ])
      const partitions = starts.map((start, partition) => ({ partition, start, end: ends[partition] }))
      return { topicId: layout.topicId, partitions }
    })
  }

  async resolve(position: StartPosition): Promise<ReadonlyMap<number, bigint>> {
    const bounds = await this.bounds()
    const { partitions } = bounds
    switch (position.at) {
      case 'earliest':
        return new Map(partitions.map(({ partition, start }) => [partition, start]))
      case 'latest':
        return new Map(partitions.map(({ partition, end }) => [partition, end]))
      case 'offsets':
        return explicitOffsets(this.#options.topic, position.offsets, bounds)
      case 'timestamp':
        return this.#since(position.timestampMs, bounds)
      case 'group':
        return this.#committed(position.group, bounds)
    }
  }

  async *read(range: {
    readonly partition: number
    readonly start: bigint
    readonly end: bigint
    readonly topicId?: string
    readonly bytesMax?: number
  }): AsyncGenerator<LogBatch, void, undefined> {
    if (range.start >= range.end) return
    const { patienceMs } = this.#options
    const topicId = range.topicId ?? (await patiently(patienceMs, () => this.#view.layout())).topicId
    const { bytesMax: fetchBytesMax = this.#options.fetchBytesMax } = range
    yield* readRange(this.#view, range, { ...this.#options, fetchBytesMax, topicId })
  }

  async arrival(offsets: ReadonlyMap<number, bigint>, waitMs: number): Promise<void> {
    await this.#view.arrival(offsets, waitMs, this.#options.isolation)
  }

  async publish(group: string, offsets: ReadonlyMap<number, bigint>): Promise<void> {
    if (offsets.size === 0) return
    await this.#askGroup(group, commitGroup(group, this.#options.topic, offsets), ({ errors }) => errors)
  }

  async close(): Promise<void> {
    await this.#options.release()
  }

  /** A partition without a record that young begins at its end. */
  async #since(timestampMs: number, bounds: LogBounds): Promise<ReadonlyMap<number, bigint>> {
    if (!Number.isSafeInteger(timestampMs) || timestampMs < 0)
      throw new PawlError('START_POSITION_INVALID', `timestamp ${timestampMs} is no time since 1970 in milliseconds`)
    const offsets = await patiently(this.#options.patienceMs, async () =>
      this.#view.offsets(await this.#view.layout(), BigInt(timestampMs), this.#options.isolation),
    )
    return new Map(
      bounds.partitions.map(({ partition, end }) => {
        const offset = offsets[partition]
        return [partition, offset < 0n || offset > end ? end : offset]
      }),
    )
  }

  /** A partition for which the group has no offset begins at its start, so that nothing is skipped. */
  async #committed(group: string, bounds: LogBounds): Promise<ReadonlyMap<number, bigint>> {
    const { topic } = this.#options
    const partitions = bounds.partitions.map(({ partition }) => partition)
    const answer = await this.#askGroup(group, fetchGroup(group, topic, partitions), groupErrors)
    const offsets = new Map(answer.partitions.map(({ partition, offset }) => [partition, offset]))
    if (answer.partitions.every(({ offset }) => offset < 0n))
      throw new PawlError('START_POSITION_INVALID', `group ${group} has no offsets of ${topic}`, { topic, group })
    return new Map(
      bounds.partitions.map(({ partition, start, end }) => {
        const offset = offsets.get(partition) ?? -1n
        if (offset < 0n) return [partition, start]
        if (offset >= start && offset <= end) return [partition, offset]
        const fault = `offset ${offset} of group ${group} for ${topic}/${partition} lies outside [${start}, ${end}]`
        throw new PawlError('START_POSITION_INVALID', fault, { topic, partition, group, offset: offset.toString() })
      }),
    )
  }

  /** Finds the coordinator and asks it; again while an error in the answer is transient. */
  async #askGroup<T>(group: string, request: WireRequest<T>, errors: (answer: T) => readonly number[]): Promise<T> {
    return patiently(this.#options.patienceMs, async () => {
      const found = await this.#link.send('any', findGroup(group))
      if (found.error !== readCode.none) throw readRefused(found.error, `coordinator of group ${group}`)
      const answer = await this.#link.send(found.node, request)
      const error = errors(answer).find((code) => code !== readCode.none)
      if (error !== undefined) throw readRefused(error, `group ${group}`, { group })
      return answer
    })
  }
}

function groupErrors(answer: GroupOffsets): readonly number[] {
  return [answer.error, ...answer.partitions.map(({ error }) => error)]
}
