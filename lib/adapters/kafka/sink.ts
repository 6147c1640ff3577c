/**
 * The Kafka sink: one transaction an epoch and lane, with the rows and the lane's marker in it.
 *
 * Nothing is open in Kafka between stage and promote: the rows wait in the store, already as record batches, so
 * that no outage, however long, meets a transaction timeout. A promote takes the lane's transactional id over
 * (which fences every other promoter), reads the marker, and writes only if it is the one that the committable
 * follows. Consumers of the output must read with `read_committed`.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { isPawlError, PawlError } from '../../model/errors.ts'
import type { CommitPermit, Committable, Marker } from '../../model/manifest.ts'
import type { PromoteResult, Sink, SinkLimits, StageContext, StageWriter } from '../../ports/sink.ts'
import type { TopicSpec } from '../../ports/spec.ts'
import type { Store } from '../../ports/store.ts'
import { markerAfter, sameMarker } from '../shared/markers.ts'
import { kafkaCode } from './codes.ts'
import { type ControlOptions, controlRequest, ensureControl } from './control.ts'
import { KafkaLane } from './lane.ts'
import type { KafkaLink } from './link.ts'
import { controlTopic, type SinkIdentity, transactionalId } from './names.ts'
import { namedRefusal } from './refused.ts'
import { stagedTopics } from './staged.ts'
import { stagingWriter } from './staging.ts'
import { targetLookup } from './targets.ts'
import { describeConfigs } from './topic-requests.ts'
import { findCoordinator } from './transaction-requests.ts'

/** Kafka's default; brokers allow 15 minutes unless they are told otherwise. */
export const transactionTimeoutMsDefault = 60_000
/** Two that register one lane at once fence each other, so each waits at random before it tries again. */
const registrationTriesMax = 10
const registrationPauseMs = { first: 50, max: 2000 } as const
const patienceMsDefault = 30_000
/** What one lane certainly does in a second, on a modest network; for the limits. */
const laneBytesPerSecond = 10_000_000
const laneRowsPerSecond = 100_000

/** What a sink needs beside a connection. */
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

class KafkaSink implements Sink {
  readonly target: string
  readonly limits: SinkLimits
  readonly #link: KafkaLink
  readonly #options: KafkaSinkOptions
  readonly #topics: readonly string[]
  readonly #control: ControlOptions
  readonly #timeoutMs: number
  readonly #lookUp: ReturnType<typeof targetLookup>
  readonly #lanes = new Map<number, KafkaLane>()

  constructor(link: KafkaLink, options: KafkaSinkOptions, timeoutMs: number) {
    const { spec, identity } = options
    this.#link = link
    this.#options = options
    this.#topics = spec.route?.topics ?? [spec.topic]
    const patienceMs = options.patienceMs ?? patienceMsDefault
    this.#control = { topic: controlTopic(identity, options.controlTopicPrefix), lanes: spec.lanes, patienceMs }
    this.#timeoutMs = timeoutMs
    this.#lookUp = targetLookup(link)
    this.target = `kafka:${this.#topics.join(',')}`
    // Invariant 12 of the design: within a quarter of the transaction timeout.
    const seconds = timeoutMs / 4000
    this.limits = { laneRowsMax: laneRowsPerSecond * seconds, laneBytesMax: laneBytesPerSecond * seconds }
  }

  async stage(context: StageContext): Promise<StageWriter> {
    return stagingWriter(this.#options.spec, await this.#lookUp(this.#topics), context)
  }

  async base(lane: number, marker: Marker): Promise<Marker> {
    return (await this.reassign(lane, null, marker)) ?? marker
  }

  async prepare({ dryRun }: { readonly dryRun: boolean }): Promise<readonly string[]> {
    if (!dryRun) await ensureControl(this.#link, this.#control, this.#control.lanes - 1)
    return [controlRequest(this.#control)]
  }

  /** From none to one is how a lane is registered. */
  async reassign(lane: number, from: Marker | null, to: Marker | null): Promise<Marker | null> {
    await ensureControl(this.#link, this.#control, lane)
    for (let tries = 1; ; tries++) {
      try {
        return await this.#reassignOnce(lane, from, to)
      } catch (error) {
        // Another run takes the lane over at this moment: whoever comes later finds its marker.
        if (tries >= registrationTriesMax || !wasDisturbed(error)) throw error
        await sleep(Math.random() * Math.min(registrationPauseMs.max, registrationPauseMs.first * 2 ** tries))
      }
    }
  }

  async #reassignOnce(lane: number, from: Marker | null, to: Marker | null): Promise<Marker | null> {
    const taken = await this.#lane(lane).takeOver([])
    const found = taken.found?.marker ?? null
    if (!sameMarker(found, from)) return found
    await this.#lane(lane).write(taken, to, { parts: [], store: this.#options.store, healing: false })
    return to
  }

  /** Absent staging is an error in any case; `healing` only accepts topics with new ids. */
  async promote(
    committable: Committable,
    permit: CommitPermit,
    { healing = false }: { readonly healing?: boolean } = {},
  ): Promise<PromoteResult> {
    const { lane, parts, prev } = committable
    const marker = markerAfter(committable, permit)
    const taken = await this.#lane(lane).takeOver(stagedTopics(parts).map(({ topic }) => topic))
    const found = taken.found?.marker ?? null
    if (taken.found?.torn) throw new PawlError('TRANSACTION_TORN', `lane ${lane} after epoch ${found?.epoch}`, { lane })
    if (!sameMarker(found, prev)) return { result: 'refused', found }
    try {
      await this.#lane(lane).write(taken, marker, { parts, store: this.#options.store, healing })
    } catch (error) {
      throw isPawlError(error) && error.code === 'ROWS_REFUSED' ? namedRefusal(error, committable) : error
    }
    return { result: 'promoted' }
  }

  marker(lane: number): Promise<Marker | null> {
    return this.#lane(lane).marker()
  }

  async close(): Promise<void> {}

  #lane(lane: number): KafkaLane {
    const known = this.#lanes.get(lane)
    if (known !== undefined) return known
    const id = transactionalId(this.#options.identity, lane)
    const options = { id, lane, control: this.#control, topics: this.#topics, timeoutMs: this.#timeoutMs }
    const opened = new KafkaLane(this.#link, options)
    this.#lanes.set(lane, opened)
    return opened
  }
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

/** Fenced by a rival, or answered by the broker with something that passes, as when two take one id over at once. */
function wasDisturbed(error: unknown): boolean {
  if (!isPawlError(error)) return false
  return error.kind === 'Fenced' || (error.kind === 'Retryable' && typeof error.details.kafka === 'number')
}
