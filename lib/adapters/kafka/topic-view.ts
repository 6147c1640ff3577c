/**
 * A topic as its leaders see it: where partitions are, and where their logs begin and end.
 *
 * The layout is remembered until a leader says that it is none; whoever asks then sees the new one. The topic id is
 * looked up afresh by `look`, so a topic that was deleted and created again is noticed.
 */
import { PawlError } from '../../model/errors.ts'
import { partitionMissing } from '../shared/log-ranges.ts'
import type { KafkaLink, TopicLayout } from './link.ts'
import { readCode, readRefused } from './log-errors.ts'
import { awaitRecords, type Isolation, listOffsets } from './log-requests.ts'
import type { WireRequest } from './wire.ts'

export class TopicView {
  readonly topic: string
  readonly #link: KafkaLink
  #layout: TopicLayout | null = null
  readonly #waiting = new Map<number, Promise<void>>()

  constructor(link: KafkaLink, topic: string) {
    this.#link = link
    this.topic = topic
  }

  /** The layout as the cluster has it now. Throws `TOPIC_MISSING`. */
  async look(): Promise<TopicLayout> {
    this.#layout = null
    const layout = (await this.#link.topics([this.topic])).get(this.topic)
    if (layout === undefined) throw new PawlError('TOPIC_MISSING', this.topic, { topic: this.topic })
    this.#layout = layout
    return layout
  }

  /** The layout that is remembered, or a look. */
  async layout(): Promise<TopicLayout> {
    return this.#layout ?? this.look()
  }

  /** Forgets the layout, for a leader that has moved. */
  forget(): void {
    this.#layout = null
  }

  /** Sends to the leader of a partition; an error makes the next attempt look the leader up. */
  async ask<T>(partition: number, request: WireRequest<T>): Promise<T> {
    const { leaders } = await this.layout()
    if (partition >= leaders.length) throw partitionMissing(this.topic, partition)
    return this.#askNode(leaders[partition], request)
  }

  /**
   * Offsets of all partitions of `layout` by timestamp; each leader is asked once, at once. Errors, also of a single
   * partition, are thrown: `LOG_UNAVAILABLE` while a leader moves.
   */
  async offsets(layout: TopicLayout, timestamp: bigint, isolation: Isolation): Promise<bigint[]> {
    const byLeader = Map.groupBy(layout.leaders.keys(), (partition) => layout.leaders[partition])
    const answers = await Promise.all(
      [...byLeader].map(([node, partitions]) =>
        this.#askNode(node, listOffsets(this.topic, partitions, timestamp, isolation)),
      ),
    )
    const offsets = new Array<bigint>(layout.leaders.length)
    for (const { partition, error, offset } of answers.flat()) {
      if (error !== readCode.none) {
        this.forget()
        throw readRefused(error, `offsets of ${this.topic}/${partition}`, { topic: this.topic, partition })
      }
      offsets[partition] = offset
    }
    return offsets
  }

  /** Resolves when one of the leaders has records at or behind the offsets, or has waited long enough. */
  async arrival(offsets: ReadonlyMap<number, bigint>, waitMs: number, isolation: Isolation): Promise<void> {
    const { topicId, leaders } = await this.layout()
    const byLeader = Map.groupBy(offsets, ([partition]) => leaders[partition] ?? -1)
    await Promise.race(
      [...byLeader].map(([node, mine]) => {
        // One that still waits was asked for the same: nothing has come there since.
        const waiting =
          this.#waiting.get(node) ??
          this.#askNode(node, awaitRecords({ topicId, isolation, waitMs }, mine)).finally(() =>
            this.#waiting.delete(node),
          )
        this.#waiting.set(node, waiting)
        return waiting
      }),
    )
  }

  async #askNode<T>(node: number, request: WireRequest<T>): Promise<T> {
    try {
      if (node < 0) throw new PawlError('LOG_UNAVAILABLE', `${this.topic} has a partition without a leader`)
      return await this.#link.send(node, request)
    } catch (error) {
      this.forget()
      throw error
    }
  }
}
