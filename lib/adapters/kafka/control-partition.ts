/**
 * One partition of the control topic at its leader: its ends, its records, and which transactions are open in it.
 *
 * Every question is asked again while leadership moves, for as long as `patienceMs`. What is appended here stands
 * outside of all transactions: it holds whatever becomes of those around it.
 */
import { PawlError } from '../../model/errors.ts'
import { type Decoded, decodeBatches } from '../../model/record-decode.ts'
import { isLeaderRetry, kafkaCode, kafkaError } from './codes.ts'
import type { KafkaLink, TopicLayout } from './link.ts'
import { appendBatch, fetch } from './log-requests.ts'
import { describeProducers, fetchCommitted, listOffset, type OffsetKind } from './partition-requests.ts'
import { patience } from './patience.ts'
import type { WireRequest } from './wire.ts'

const fetchBytesMax = 1024 * 1024
const leaderNotAvailable = 5

/** The topic, and how long to wait for the last stable offset, or for a leader. */
export interface ControlPlace {
  readonly topic: string
  readonly patienceMs: number
}

/** The last record of a key; a value of null is a tombstone. */
export interface LastRecord {
  readonly value: string | null
  readonly offset: bigint
}

/** Questions to one partition, and notes for it; made anew for each take-over. */
export class ControlPartition {
  /** Of the topic, as it was looked up. */
  readonly topicId: string
  readonly #link: KafkaLink
  readonly #place: ControlPlace
  readonly #partition: number
  #leader: number

  constructor(link: KafkaLink, place: ControlPlace, partition: number, { topicId, leaders }: TopicLayout) {
    this.topicId = topicId
    this.#link = link
    this.#place = place
    this.#partition = partition
    this.#leader = leaders[partition]
  }

  async offset(kind: OffsetKind): Promise<bigint> {
    return (await this.#ask(listOffset(this.#place.topic, this.#partition, kind))).offset
  }

  /** True once the last stable offset has reached `end`, false when patience ends before. */
  async stable(end: bigint): Promise<boolean> {
    for (const patient = patience(this.#place.patienceMs); (await this.offset('last-stable')) < end; )
      if (!(await patient.wait())) return false
    return true
  }

  /** Where the transaction of a producer begins that has no end in this partition; null when there is none. */
  async openSince(producerId: bigint): Promise<bigint | null> {
    const { producers } = await this.#ask(describeProducers(this.#place.topic, this.#partition))
    const start = producers.find((producer) => producer.producerId === producerId)?.openSince ?? -1n
    return start < 0n ? null : start
  }

  /** The last committed record of each key in `[from, to)`; undefined where there is none. */
  async last(keys: readonly string[], from: bigint, to: bigint): Promise<(LastRecord | undefined)[]> {
    const { topic } = this.#place
    return this.#lastOf(keys, from, to, async (at) => {
      const answer = await this.#ask(fetchCommitted(topic, this.#partition, at, fetchBytesMax))
      if (answer.lastStable < to)
        throw new PawlError('SINK_UNAVAILABLE', `${topic}/${this.#partition} went back to ${answer.lastStable}`)
      const options = { topic, partition: this.#partition, start: at, end: to, aborted: answer.aborted }
      return decodeBatches(answer.records, options)
    })
  }

  /** The last record of a key from `from` on, whatever became or becomes of its transaction. */
  async lastUncommitted(key: string, from: bigint): Promise<LastRecord | undefined> {
    const to = await this.offset('high-watermark')
    const { topicId } = this
    const partition = this.#partition
    const [last] = await this.#lastOf([key], from, to, async (offset) => {
      const isolation = 'read_uncommitted'
      const request = { topicId, partition, offset, isolation, bytesMax: fetchBytesMax, waitMs: 0 } as const
      const { records } = await this.#ask(fetch(request))
      return decodeBatches(records, { topic: this.#place.topic, partition, start: offset, end: to })
    })
    return last
  }

  /** Appends outside of all transactions; acknowledged by all in-sync replicas, perhaps written more than once. */
  async append(batch: Buffer): Promise<void> {
    await this.#ask(appendBatch(this.#place.topic, this.#partition, batch))
  }

  async #lastOf(
    keys: readonly string[],
    from: bigint,
    to: bigint,
    read: (at: bigint) => Promise<Decoded>,
  ): Promise<(LastRecord | undefined)[]> {
    const bytes = keys.map((key) => Buffer.from(key))
    const found: (LastRecord | undefined)[] = keys.map(() => undefined)
    for (let at = from; at < to; ) {
      const { batches, next } = await read(at)
      for (const batch of batches) {
        for (let row = 0; row < batch.count; row++) {
          if (batch.keyStarts[row] < 0) continue
          const key = batch.bytes.subarray(batch.keyStarts[row], batch.keyEnds[row])
          const index = bytes.findIndex((wanted) => wanted.equals(key))
          if (index < 0) continue
          const start = batch.valueStarts[row]
          const value = start < 0 ? null : batch.bytes.toString('utf8', start, batch.valueEnds[row])
          found[index] = { value, offset: batch.baseOffset + BigInt(batch.offsetDeltas[row]) }
        }
      }
      // Below the end an empty answer means that compaction left nothing.
      if (next <= at) break
      at = next
    }
    return found
  }

  async #ask<T extends { readonly error: number }>(request: WireRequest<T>): Promise<T> {
    const { topic, patienceMs } = this.#place
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
