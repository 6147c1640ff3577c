/**
 * One lane of a Kafka sink: a transactional id, its partition of the control topic, and what is done with both.
 *
 * Take over, look at the marker, write: in this order, in one transaction, or not at all. The marker is read after
 * the take-over, when no earlier producer of the id can commit any more.
 */
import { isPawlError, PawlError } from '../../model/errors.ts'
import type { Marker, StagedPart } from '../../model/manifest.ts'
import type { Store } from '../../ports/store.ts'
import { giveBack } from '../shared/lent-memory.ts'
import { type ControlOptions, controlPartition, type FoundMarker, markerBatch, readMarker } from './control.ts'
import type { KafkaLink, TopicLayout } from './link.ts'
import { mending } from './mending.ts'
import { type ReadyBatch, stagedTopics, stagedWindows } from './staged.ts'
import { checkedTargets } from './targets.ts'
import { type Leaders, type Transaction, type TransactionOptions, takeOver } from './transaction.ts'
import type { TopicPartitions } from './transaction-requests.ts'

/** What a lane is: its id, its place in the control topic, its limits. */
export interface KafkaLaneOptions {
  readonly id: string
  readonly lane: number
  readonly control: ControlOptions
  /** Topics that the sink writes to now. */
  readonly topics: readonly string[]
  readonly timeoutMs: number
}

/** A lane in our hands. */
export interface TakenLane {
  readonly transaction: Transaction
  /** The marker found in it. */
  readonly found: FoundMarker | null
  /** The control topic and the topics asked for, as they are now. */
  readonly layouts: ReadonlyMap<string, TopicLayout>
}

/** What goes into a transaction beside the marker. */
export interface StagedRows {
  readonly parts: readonly StagedPart[]
  readonly store: Store
  /** The sink lost epochs: it may be another one, restored from a backup. */
  readonly healing: boolean
}

/** Takes over, reads, writes; one object a lane and sink, used by any number of promotes. */
export class KafkaLane {
  readonly #link: KafkaLink
  readonly #options: KafkaLaneOptions
  readonly #transaction: TransactionOptions

  constructor(link: KafkaLink, options: KafkaLaneOptions) {
    this.#link = link
    this.#options = options
    const { timeoutMs, control } = options
    this.#transaction = { timeoutMs, patienceMs: control.patienceMs, coordinator: { node: null } }
  }

  /** The marker, without taking the lane over. */
  async marker(): Promise<Marker | null> {
    const { control, lane, id } = this.#options
    return this.#stable(await readMarker(this.#link, control, lane, id))?.marker ?? null
  }

  /** Takes the id over, then reads the marker. `topics`: where rows are to go. */
  async takeOver(topics: readonly string[]): Promise<TakenLane> {
    const { control, lane, id } = this.#options
    const { transaction, layouts } = await this.#begin(topics)
    const found = this.#stable(await readMarker(this.#link, control, lane, id, layouts.get(control.topic)))
    return { transaction, found, layouts }
  }

  /**
   * Rows and marker, all or nothing. Throws `UNKNOWN_RESULT` when the answer to the commit was lost, and what
   * stands in the way of the rows: `TOPIC_MISSING`, `TOPIC_RECREATED`, `OBJECT_MISSING`, `OBJECT_DAMAGED`,
   * `ROWS_REFUSED`; `TRANSACTION_FENCED` when somebody else took the id over.
   *
   * The marker holds the ids of the topics written to, so that one that was created again, and so lost its rows, is
   * noticed whenever it happened. One restored from a backup has another id as well: `healing` accepts it, and
   * the epochs that follow do so because of the marker.
   */
  async write(taken: TakenLane, marker: Marker | null, rows: StagedRows): Promise<void> {
    const { transaction, layouts, found } = taken
    const { parts, store, healing } = rows
    const { control, lane, id } = this.#options
    const targets = checkedTargets(stagedTopics(parts), layouts, healing ? null : (found?.topicIds ?? {}))
    const written = targets.map(({ topic }) => [topic, layouts.get(topic)!.topicId])
    const topicIds = { ...found?.topicIds, ...Object.fromEntries(written) }
    const leaders: Leaders = new Map([...layouts].map(([topic, layout]) => [topic, layout.leaders]))
    try {
      await transaction.addPartitions([...targets, { topic: control.topic, partitions: [lane] }])
      let ready: ReadyBatch[] = [markerBatch(control, lane, id, { marker, topicIds })]
      for await (const window of stagedWindows(store, parts)) {
        await transaction.send([...ready, ...window], leaders)
        for (const { batch } of window) giveBack(batch)
        ready = []
      }
      if (ready.length > 0) await transaction.send(ready, leaders)
    } catch (error) {
      // Only a courtesy to readers: the next take-over, or the timeout, aborts as well.
      if (!isPawlError(error) || error.kind !== 'Fenced') await transaction.abort().catch(() => undefined)
      throw error
    }
    await transaction.commit()
  }

  async #begin(topics: readonly string[]): Promise<Omit<TakenLane, 'found'>> {
    const { id, control, lane } = this.#options
    const looking = this.#link.topics([control.topic, ...topics])
    const mend = mending(id, {
      control: async () => controlPartition(this.#link, control, lane, (await looking).get(control.topic)),
      targets: () => this.#everywhere(topics),
    })
    const both = [takeOver(this.#link, id, this.#transaction, mend), looking] as const
    // Neither may go on behind the back of a caller who has seen the other fail.
    await Promise.allSettled(both)
    const [transaction, layouts] = await Promise.all(both)
    return { transaction, layouts }
  }

  /** All partitions that the lane may have written to. */
  async #everywhere(topics: readonly string[]): Promise<TopicPartitions[]> {
    const { control, lane } = this.#options
    const layouts = await this.#link.topics([...new Set([...this.#options.topics, ...topics])])
    const targets = [...layouts].map(([topic, { leaders }]) => ({ topic, partitions: [...leaders.keys()] }))
    return [...targets, { topic: control.topic, partitions: [lane] }]
  }

  #stable(found: FoundMarker | null | 'unstable'): FoundMarker | null {
    if (found !== 'unstable') return found
    const place = `${this.#options.control.topic}/${this.#options.lane}`
    throw new PawlError('SINK_UNAVAILABLE', `an open transaction keeps the end of ${place} from being read`)
  }
}
