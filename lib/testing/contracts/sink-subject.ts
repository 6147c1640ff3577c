/**
 * What the checks of the sink contract stand on: a client, the controls of its sink, and a driver of epochs.
 *
 * The driver does what the protocol does around a sink: it registers lanes, stages each task under a name of its
 * own, assembles, and keeps the marker that each lane must show next. Committing is a matter of the ledger, so
 * here an epoch counts as committed once the driver made its committables.
 */
import assert from 'node:assert/strict'
import type { CommitPermit, Committable, Marker, StagedPart } from '../../model/manifest.ts'
import { nullable, type Serde, text } from '../../model/serde.ts'
import type { PromoteResult, Sink, StageContext } from '../../ports/sink.ts'
import type { Store } from '../../ports/store.ts'
import type { ContractPlace } from './contract.ts'

/** One client of the sink, and what a test can see of it and do to it. */
export interface SinkSubject {
  readonly sink: Sink
  /** Where this client stages and reads back. */
  readonly store: Store
  readonly controls: SinkControls
  /**
   * What staging and promotion may let this process hold beyond a fixed amount, for `sinkSizeContract`: stated by a sink
   * that holds what it was given, and bounds that by its `limits`.
   */
  readonly heldBytesMax?: { readonly stage?: number; readonly promote?: number }
  /** A client like this one over another store; needed by `sinkFaultContract`. */
  over?(store: Store): Promise<Sink>
}

/** What tests see of a sink and do to it behind its back. */
export interface SinkControls {
  /** What a reader sees now; rows of one lane in order. */
  visible(): Promise<readonly VisibleRow[]>
  /** Takes a backup of the sink (not of the store); the result restores it. */
  backup(): Promise<() => Promise<void>>
  dropMarker(lane: number): Promise<void>
  /** Loses or damages what is staged for a committable, wherever that is. */
  loseStaging(committable: Committable): Promise<void>
  damageStaging(committable: Committable): Promise<void>
  /** How many rows are visible, where `visible` would be too many of them. */
  count?(): Promise<number>
  /**
   * Cuts the `nth` exchange with the sink's server from now on, counted from 0: before it takes effect, or in place of
   * its answer. The result ends that, and tells whether it came to it. Needed by `sinkFaultContract`.
   */
  disturb?(nth: number, when: 'before' | 'after'): Promise<() => Promise<boolean>>
}

/** A row as a reader of the sink sees it. */
export interface VisibleRow {
  readonly key: string | null
  readonly value: string | null
  readonly timestampMs: number
}

/** A row on its way in; `partition` decides the lane of a row without a key. */
export interface InputRow {
  readonly key?: string
  readonly value: string | null
  readonly timestampMs?: number
  readonly partition?: number
}

/** A value that the serde of the contract refuses. */
export const unencodable = 'unencodable'

const picky: Serde<string> = {
  ...text(),
  encode(value) {
    if (value === unencodable) throw new RangeError(unencodable)
    return value
  },
}

/** Serdes that the sink under test is made with. */
export const contractRowSpec = Object.freeze({
  topic: 'rows',
  key: nullable(text()) as Serde<unknown>,
  value: nullable(picky) as Serde<unknown>,
  route: null,
  headers: null,
})

/** Lanes that the sink under test has. */
export const contractLanes = 3

/** A check of one client, driven through epochs, in a place for more clients. */
export type SinkCheck = (driver: SinkDriver, place: ContractPlace<SinkSubject>) => Promise<void>

/** No two invocations share a name, whichever driver they are of. */
let invocations = 0

/** Drives a sink as the protocol does. */
export class SinkDriver {
  readonly subject: SinkSubject
  readonly incarnation: string
  /** What each lane's marker is after the epochs committed so far. */
  readonly markers = new Map<number, Marker>()

  constructor(subject: SinkSubject, incarnation = 'a1b2c3d4e5f60718293a4b5c6d7e8f90') {
    this.subject = subject
    this.incarnation = incarnation
  }

  get sink(): Sink {
    return this.subject.sink
  }

  /** The marker that a promoted epoch leaves. */
  markerOf(epoch: number, chain = ''): Marker {
    const hash = Buffer.from(`${this.incarnation}${chain}${epoch}`).toString('hex').padEnd(64, '0').slice(-64)
    return { incarnation: this.incarnation, epoch, hash }
  }

  /** Gives every lane its base marker. */
  async register(): Promise<void> {
    for (let lane = 0; lane < contractLanes; lane++) {
      this.markers.set(lane, await this.sink.base(lane, this.markerOf(0)))
    }
  }

  /** A context of a new invocation. */
  context(epoch: number): StageContext {
    const prefix = `pipelines/p/${this.incarnation}/attempts/e${epoch}/i${invocations++}/`
    return { store: this.subject.store, prefix, incarnation: this.incarnation, epoch, lanes: contractLanes }
  }

  /** Stages the rows of one invocation. */
  async stage(epoch: number, rows: Iterable<InputRow>): Promise<StagedPart[]> {
    const writer = await this.sink.stage(this.context(epoch))
    for (const { key = null, value, timestampMs = 1000 + epoch, partition = 0 } of rows) {
      writer.add(key, value, timestampMs, partition)
    }
    return writer.seal()
  }

  /** Stages the tasks of an epoch and makes committables of what they staged. */
  async commit(epoch: number, ...tasks: readonly Iterable<InputRow>[]): Promise<Committable[]> {
    const staged: StagedPart[][] = []
    for (const rows of tasks) staged.push(await this.stage(epoch, rows))
    return this.commitParts(epoch, staged.flat())
  }

  /** Makes committables of staged parts, which are in task order. */
  async commitParts(epoch: number, staged: readonly StagedPart[], chain = ''): Promise<Committable[]> {
    const committables: Committable[] = []
    for (const [lane, prev] of this.markers) {
      const mine = staged.filter((part) => part.lane === lane)
      if (mine.length === 0) continue
      committables.push({
        sink: 'rows',
        lane,
        target: this.sink.target,
        epoch,
        prev,
        parts: this.sink.assemble ? await this.sink.assemble(mine, this.context(epoch)) : mine,
        rows: mine.reduce((sum, part) => sum + part.rows, 0),
        bytes: mine.reduce((sum, part) => sum + part.bytes, 0),
      })
      this.markers.set(lane, this.markerOf(epoch, chain))
    }
    return committables
  }

  /** Promotes through this or another client. */
  promote(committable: Committable, options: PromoteOptions = {}): Promise<PromoteResult> {
    const { sink = this.sink, chain = '', healing } = options
    const { hash } = this.markerOf(committable.epoch, chain)
    const permit = {
      incarnation: this.incarnation,
      epoch: committable.epoch,
      manifest: { name: `manifest-${committable.epoch}`, bytes: 1, sha256: hash },
    } as CommitPermit
    return sink.promote(committable, permit, healing === undefined ? undefined : { healing })
  }

  /** Commits an epoch and promotes all of its lanes. */
  async run(epoch: number, ...tasks: readonly Iterable<InputRow>[]): Promise<Committable[]> {
    const committables = await this.commit(epoch, ...tasks)
    for (const committable of committables) {
      assert.equal((await this.promote(committable)).result, 'promoted')
    }
    return committables
  }

  /** Visible values, sorted by lane order alone: those of one key or lane stay in order. */
  async values(): Promise<(string | null)[]> {
    return (await this.subject.controls.visible()).map(({ value }) => value)
  }
}

/** How to promote. */
export interface PromoteOptions {
  readonly sink?: Sink
  /** Names another history of manifests. */
  readonly chain?: string
  readonly healing?: boolean
}
