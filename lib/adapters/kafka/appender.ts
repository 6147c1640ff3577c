/**
 * Appends records to a Kafka topic, for tools and tests; pipelines write through the sink.
 *
 * Each call is one record batch of one partition, acknowledged by all in-sync replicas, so its offsets are without
 * gaps. Nothing is repeated after a lost answer: `UNKNOWN_RESULT` means that the records may or may not be there.
 */
import { isPawlError, PawlError } from '../../model/errors.ts'
import { RecordBatchEncoder } from '../../model/record-batch.ts'
import type { LogRecord } from '../../model/records.ts'
import type { LogAppender } from '../../ports/log.ts'
import { isLeaderRetry, kafkaError } from './codes.ts'
import type { KafkaLink } from './link.ts'
import { patiently, readCode } from './log-errors.ts'
import { type AppendAnswer, appendBatch, logEnds } from './log-requests.ts'
import { patience } from './patience.ts'
import { TopicView } from './topic-view.ts'

/** What an appender writes to, and how patiently. */
export interface KafkaAppenderOptions {
  readonly topic: string
  /** How long to put up with leaders that move. */
  readonly patienceMs?: number | undefined
  /** Called by `close`. */
  readonly release: () => Promise<void>
}

const patienceMsDefault = 30_000
/** REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND: the leader has the records, others perhaps not. */
const perhapsWritten = new Set([7, 20])

/** NOT_LEADER_OR_FOLLOWER. */
const notLeader = 6

/** Opens nothing by itself: the first call connects. */
export class KafkaAppender implements LogAppender {
  readonly #view: TopicView
  readonly #options: KafkaAppenderOptions

  constructor(link: KafkaLink, options: KafkaAppenderOptions) {
    this.#view = new TopicView(link, options.topic)
    this.#options = options
  }

  async append(partition: number, records: readonly LogRecord[]): Promise<{ readonly baseOffset: bigint }> {
    if (records.length === 0) return this.#end(partition)
    const encoder = new RecordBatchEncoder()
    for (const { timestampMs, key, value, headers } of records) encoder.add(timestampMs, key, value, headers)
    const batch = encoder.seal()
    const wait = patience(this.#patienceMs)
    for (;;) {
      const answer = await this.#try(partition, batch)
      if (answer.error === readCode.none) return { baseOffset: answer.baseOffset }
      this.#view.forget()
      const fault = `append to ${this.#options.topic}/${partition}`
      if (perhapsWritten.has(answer.error)) throw new PawlError('UNKNOWN_RESULT', fault, { kafka: answer.error })
      if (!isLeaderRetry(answer.error) || !(await wait.wait())) throw kafkaError(answer.error, fault)
    }
  }

  async close(): Promise<void> {
    await this.#options.release()
  }

  get #patienceMs(): number {
    return this.#options.patienceMs ?? patienceMsDefault
  }

  /** One try; a broker that could not be reached counts as one that is no leader, since nothing was sent. */
  async #try(partition: number, batch: Buffer): Promise<AppendAnswer> {
    await patiently(this.#patienceMs, () => this.#view.layout())
    try {
      return await this.#view.ask(partition, appendBatch(this.#options.topic, partition, batch))
    } catch (error) {
      if (isPawlError(error) && error.code === 'BROKER_UNREACHABLE') return { error: notLeader, baseOffset: -1n }
      throw error
    }
  }

  async #end(partition: number): Promise<{ readonly baseOffset: bigint }> {
    const ends = await this.#view.offsets(await this.#view.layout(), logEnds.latest, 'read_uncommitted')
    return { baseOffset: ends[partition] }
  }
}
