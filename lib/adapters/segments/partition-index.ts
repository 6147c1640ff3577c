/**
 * Which segments a partition has, known from names and headers alone.
 *
 * Segments never change and lie end to end, so what was once seen stays true: the next segment can only have the
 * name of the current end. A look therefore costs one probe for the first segment (is the start still there?)
 * and one for the next (did the end move?); the listing is read once, and again when the first segment is gone.
 */
import type { Store } from '../../ports/store.ts'
import {
  baseOfName,
  decodeSegmentHeader,
  type SegmentHeader,
  segmentDamaged,
  segmentHeaderBytes,
  segmentName,
  segmentPrefix,
} from './segment.ts'

/** A new index of one partition; `baseOffset` is where it starts while it has no segments. */
export class PartitionIndex {
  readonly #store: Store
  readonly #topic: string
  readonly #partition: number
  readonly #baseOffset: bigint
  /** Base offsets of all segments, ascending. */
  #bases: bigint[] = []
  #end: bigint
  #listed: Promise<void> | null = null

  constructor(store: Store, place: { topic: string; partition: number; baseOffset: bigint }) {
    this.#store = store
    this.#topic = place.topic
    this.#partition = place.partition
    this.#baseOffset = place.baseOffset
    this.#end = place.baseOffset
  }

  get start(): bigint {
    return this.#bases[0] ?? this.#baseOffset
  }

  get end(): bigint {
    return this.#end
  }

  /** Base offsets of all known segments, ascending. */
  get bases(): readonly bigint[] {
    return this.#bases
  }

  /** Brings start and end up to date. Throws `LOG_SEGMENT_DAMAGED`. */
  async refresh(): Promise<void> {
    const known = this.#listed !== null
    this.#listed ??= this.#list()
    await this.#awaitListing()
    if (known && this.#bases.length > 0) await this.#relistIfTruncated()
    for (let next = await this.header(this.#end); next !== null; next = await this.header(this.#end)) {
      this.extend(next.base, next.end)
    }
  }

  /** Notes a segment that was just seen or made at the end; one that is known already changes nothing. */
  extend(base: bigint, end: bigint): void {
    if (base !== this.#end) return
    this.#bases.push(base)
    this.#end = end
  }

  /** Reads the listing again, since a segment has gone. */
  async relist(): Promise<void> {
    this.#listed = this.#list()
    await this.#awaitListing()
  }

  /** Base of the segment that holds `offset`, which lies within the log. */
  baseFor(offset: bigint): bigint {
    let low = 0
    let high = this.#bases.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (this.#bases[middle]! <= offset) low = middle
      else high = middle - 1
    }
    return this.#bases[low]!
  }

  /** The header of the segment with this base; null when there is none. */
  async header(base: bigint): Promise<SegmentHeader | null> {
    const place = this.placeOf(base)
    const bytes = await this.#store.read(segmentName(place), { start: 0, end: segmentHeaderBytes })
    return bytes === null ? null : decodeSegmentHeader(bytes, place)
  }

  placeOf(base: bigint): { topic: string; partition: number; base: bigint } {
    return { topic: this.#topic, partition: this.#partition, base }
  }

  async #awaitListing(): Promise<void> {
    try {
      await this.#listed
    } catch (error) {
      this.#listed = null
      throw error
    }
  }

  async #relistIfTruncated(): Promise<void> {
    const first = await this.#store.read(segmentName(this.placeOf(this.start)), { start: 0, end: 1 })
    if (first === null) await this.relist()
  }

  async #list(): Promise<void> {
    const bases: bigint[] = []
    for await (const { name } of this.#store.list(segmentPrefix(this.#topic, this.#partition))) {
      const base = baseOfName(name)
      if (base !== null) bases.push(base)
    }
    const last = bases.at(-1)
    const header = last === undefined ? null : await this.header(last)
    if (last !== undefined && header === null) throw segmentDamaged('it vanished', this.placeOf(last))
    this.#bases = bases
    this.#end = header?.end ?? this.#baseOffset
  }
}
