/**
 * The Kafka sink: one transaction an epoch and lane, with the rows and the lane's marker in it.
 *
 * Nothing is open in Kafka between stage and promote: the rows wait in the store, already as record batches, so
 * that no outage, however long, meets a transaction timeout. A promote takes the lane's transactional id over
 * (which fences every other promoter), reads the marker, and writes only if it is the one that the committable
 * follows. Consumers of the output must read with `read_committed`.
 */
import { assert } from '../../model/assert.ts'
import { isPawlError, PawlError } from '../../model/errors.ts'
import type { CommitPermit, Committable, Marker } from '../../model/manifest.ts'
import type { PromoteResult, Sink, SinkLimits, StageContext, StageWriter } from '../../ports/sink.ts'
import type { TopicSpec } from '../../ports/spec.ts'
import type { Store } from '../../ports/store.ts'
import { kafkaCode } from './codes.ts'
import { type ControlOptions, ensureControl, markerBatch, readMarker } from './control.ts'
import type { KafkaLink, TopicLayout } from './link.ts'
import { controlTopic, type SinkIdentity, transactionalId } from './names.ts'
import { type ReadyBatch, stagedTopics, stagedWindows } from './staged.ts'
import { stagingWriter } from './staging.ts'
import { checkedTargets, targetLookup } from './targets.ts'
import { describeConfigs } from './topic-requests.ts'
import { type Leaders, type Transaction, takeOver } from './transaction.ts'
import { findCoordinator } from './transaction-requests.ts'

/** Kafka's default; brokers allow 15 minutes unless they are told otherwise. */
export const transactionTimeoutMsDefault = 60_000
const patienceMsDefault = 30_000
/** After a take-over only replication can lag, so that a partition still unstable then is taken for hung. */
const graceMs = 500
/** What one lane certainly does in a second, on a modest network; for the limits. */
const laneBytesPerSecond = 10_000_000
const laneRowsPerSecond = 100_000

export interface KafkaSinkOptions {
  readonly spec: TopicSpec<unknown, unknown>
  readonly identity: SinkIdentity
  /** Where the staged objects of committables are. */
  readonly store: Store
  /** After which the broker aborts a transaction; at most its `transaction.max.timeout.ms`. */
  readonly transactionTimeoutMs?: number
  /** Start of the control topic's name; `pawl-control` by default. */
  readonly controlTopicPrefix?: string
  /** How long one promote puts up with a coordinator or leader that says "not now". */
  readonly patienceMs?: number
}

/**
 * Opens the sink on a connection, which stays the caller's. Throws `TRANSACTION_TIMEOUT_INVALID` when the broker
 * would refuse the transaction timeout.
 */
export async function openKafkaSink(link: KafkaLink, options: KafkaSinkOptions): Promise<Sink> {
  const timeoutMs = options.transactionTimeoutMs ?? transactionTimeoutMsDefault
  await checkTimeout(link, transactionalId(options.identity, 0), timeoutMs)
  return new KafkaSink(link, options, timeoutMs)
}

/** A lane in our hands, and the marker found in it. */
interface Taken {
  readonly transaction: Transaction
  readonly found: Marker | null
}

class KafkaSink implements Sink {
  readonly target: string
  readonly limits: SinkLimits
  readonly #link: KafkaLink
  readonly #options: KafkaSinkOptions
  readonly #topics: readonly string[]
  readonly #control: ControlOptions
  readonly #transaction: { readonly timeoutMs: number; readonly patienceMs: number }
  readonly #lookUp: ReturnType<typeof targetLookup>

  constructor(link: KafkaLink, options: KafkaSinkOptions, timeoutMs: number) {
    const { spec, identity } = options
    const patienceMs = options.patienceMs ?? patienceMsDefault
    this.#link = link
    this.#options = options
    this.#topics = spec.route?.topics ?? [spec.topic]
    this.#control = { topic: controlTopic(identity, options.controlTopicPrefix), lanes: spec.lanes, patienceMs }
    this.#transaction = { timeoutMs, patienceMs }
    this.#lookUp = targetLookup(link)
    this.target = `kafka:${this.#topics.join(',')}`
    const seconds = timeoutMs / 4000
    this.limits = { laneRowsMax: laneRowsPerSecond * seconds, laneBytesMax: laneBytesPerSecond * seconds }
  }

  async stage(context: StageContext): Promise<StageWriter> {
    return stagingWriter(this.#options.spec, await this.#lookUp(this.#topics), context)
  }

  async base(lane: number, marker: Marker): Promise<Marker> {
    await ensureControl(this.#link, this.#control, lane)
    const { transaction, found } = await this.#takeOver(lane, [])
    if (found !== null) return found
    const layouts = await this.#link.topics([this.#control.topic])
    await this.#write(transaction, lane, marker, [], layouts)
    return marker
  }

  async promote(committable: Committable, permit: CommitPermit): Promise<PromoteResult> {
    const { lane, parts, prev, epoch } = committable
    assert(permit.epoch === epoch, `the permit for epoch ${permit.epoch} does not promote epoch ${epoch}`)
    const topics = stagedTopics(parts).map(({ topic }) => topic)
    const { transaction, found } = await this.#takeOver(lane, topics)
    if (!sameMarker(found, prev)) return { result: 'refused', found }
    const layouts = await this.#link.topics([this.#control.topic, ...topics])
    const marker = { incarnation: permit.incarnation, epoch, hash: permit.manifest.sha256 }
    await this.#write(transaction, lane, marker, parts, layouts)
    return { result: 'promoted' }
  }

  async marker(lane: number): Promise<Marker | null> {
    return this.#stable(await this.#read(lane, this.#control), lane)
  }

  async close(): Promise<void> {}

  /** Takes the lane's id over, then reads its marker. `topics`: where else the lane may have written. */
  async #takeOver(lane: number, topics: readonly string[]): Promise<Taken> {
    const transaction = await this.#begin(lane)
    const { before } = transaction
    const found = await this.#read(lane, before === null ? this.#control : { ...this.#control, patienceMs: graceMs })
    if (found !== 'unstable') return { transaction, found }
    if (before === null) return { transaction, found: this.#stable(found, lane) }
    await this.#mend(transaction, lane, topics)
    const again = await this.#begin(lane)
    return { transaction: again, found: this.#stable(await this.#read(lane, this.#control), lane) }
  }

  /**
   * Ends what the coordinator ended without telling all partitions (a broker that restarts in that moment takes
   * partitions for deleted whose metadata it has not read yet; they would stay unreadable for ever). A transaction
   * of the same producer over those partitions, ended the same way, ends the hung one with it.
   */
  async #mend(transaction: Transaction, lane: number, topics: readonly string[]): Promise<void> {
    const layouts = await this.#link.topics([...new Set([...this.#topics, ...topics])])
    const targets = [...layouts].map(([topic, { leaders }]) => ({ topic, partitions: [...leaders.keys()] }))
    await transaction.addPartitions([...targets, { topic: this.#control.topic, partitions: [lane] }])
    await (transaction.before === 'committed' ? transaction.commit() : transaction.abort())
  }

  #begin(lane: number): Promise<Transaction> {
    return takeOver(this.#link, transactionalId(this.#options.identity, lane), this.#transaction)
  }

  #read(lane: number, control: ControlOptions): Promise<Marker | null | 'unstable'> {
    return readMarker(this.#link, control, lane, transactionalId(this.#options.identity, lane))
  }

  #stable(found: Marker | null | 'unstable', lane: number): Marker | null {
    if (found !== 'unstable') return found
    const place = `${this.#control.topic}/${lane}`
    throw new PawlError('SINK_UNAVAILABLE', `an open transaction keeps the end of ${place} from being read`)
  }

  /** Rows and marker, all or nothing. */
  async #write(
    transaction: Transaction,
    lane: number,
    marker: Marker,
    parts: Committable['parts'],
    layouts: ReadonlyMap<string, TopicLayout>,
  ): Promise<void> {
    const id = transactionalId(this.#options.identity, lane)
    const targets = checkedTargets(stagedTopics(parts), layouts)
    const leaders: Leaders = new Map([...layouts].map(([topic, layout]) => [topic, layout.leaders]))
    try {
      await transaction.addPartitions([...targets, { topic: this.#control.topic, partitions: [lane] }])
      let ready: ReadyBatch[] = [markerBatch(this.#control, lane, id, marker)]
      for await (const window of stagedWindows(this.#options.store, parts)) {
        await transaction.send([...ready, ...window], leaders)
        ready = []
      }
      if (ready.length > 0) await transaction.send(ready, leaders)
    } catch (error) {
      // Only a courtesy to readers: the next take-over, or the timeout, aborts as well.
      if (!isFenced(error)) await transaction.abort().catch(() => undefined)
      throw error
    }
    await transaction.commit()
  }
}

function sameMarker(found: Marker | null, prev: Marker): boolean {
  return found?.incarnation === prev.incarnation && found.epoch === prev.epoch && found.hash === prev.hash
}

function isFenced(error: unknown): boolean {
  return isPawlError(error) && error.kind === 'Fenced'
}

/** Brokers that do not tell their settings answer the same question at the first take-over. */
async function checkTimeout(link: KafkaLink, id: string, timeoutMs: number): Promise<void> {
  const coordinator = await link.send('any', findCoordinator(id))
  if (coordinator.error !== kafkaCode.none) return
  const request = describeConfigs('broker', String(coordinator.node), ['transaction.max.timeout.ms'])
  const { error, configs } = await link.send(coordinator.node, request)
  if (error !== kafkaCode.none) return
  const maxMs = Number(configs.get('transaction.max.timeout.ms') ?? Number.POSITIVE_INFINITY)
  if (timeoutMs <= maxMs) return
  throw new PawlError('TRANSACTION_TIMEOUT_INVALID', `${timeoutMs} ms, while the broker allows ${maxMs} ms`, {
    timeoutMs,
    maxMs,
  })
}
