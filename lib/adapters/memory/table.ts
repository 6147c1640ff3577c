/**
 * The rows and markers that a memory sink shows: a tiny database with transactions.
 *
 * Apart from the sink because it outlives the process that promotes, can be backed up, restored and damaged by
 * tests, and because the proofs of the simulator promote into it in wrong ways on purpose. A transaction is one
 * synchronous function: nothing comes between its reading of the marker and its writing of the rows.
 */
import type { Marker, RefusedRow } from '../../model/manifest.ts'
import type { Header } from '../../model/records.ts'

/** One visible row. */
export interface MemoryRow {
  readonly epoch: number
  readonly lane: number
  /** Topic or name of the sink. */
  readonly target: string
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly timestampMs: number
  readonly headers: readonly Header[]
}

/** State of a table; immutable. */
export interface MemoryTableSnapshot {
  readonly rows: readonly MemoryRow[]
  readonly markers: ReadonlyMap<number, Marker>
  readonly refused: readonly RefusedInLane[]
}

/** A recorded refusal. */
export interface RefusedInLane extends RefusedRow {
  readonly lane: number
}

/** Rows and markers of one sink. */
export interface MemoryTable {
  /** Rows in the order in which they became visible, of one lane or of all. */
  visible(lane?: number): readonly MemoryRow[]
  marker(lane: number): Marker | null
  /** Refusals that are recorded and not forgotten. */
  refused(lane: number): readonly RefusedInLane[]
  forget(ids: readonly string[]): void
  /** Runs one atomic transaction on a lane: adds rows and sets the marker, or changes nothing for null. */
  transact(lane: number, body: (found: Marker | null) => MemoryWrite | null): void
  snapshot(): MemoryTableSnapshot
  /** Goes back to a snapshot, as a restored backup does. */
  restore(snapshot: MemoryTableSnapshot): void
  /** Loses the marker of a lane. */
  dropMarker(lane: number): void
}

/** What a transaction changes. */
export interface MemoryWrite {
  readonly rows: readonly MemoryRow[]
  /** Absent: the marker stays. Null: the lane has none any more. */
  readonly marker?: Marker | null
  readonly refused?: readonly RefusedInLane[]
}

/** An empty table. */
export function memoryTable(): MemoryTable {
  let rows: MemoryRow[] = []
  let markers = new Map<number, Marker>()
  let refused: RefusedInLane[] = []
  return {
    visible: (lane) => (lane === undefined ? rows : rows.filter((row) => row.lane === lane)),
    marker: (lane) => markers.get(lane) ?? null,
    refused: (lane) => refused.filter((row) => row.lane === lane),
    forget(ids) {
      refused = refused.filter(({ id }) => !ids.includes(id))
    },
    transact(lane, body) {
      const write = body(markers.get(lane) ?? null)
      if (write === null) return
      for (const row of write.rows) rows.push(row)
      refused.push(...(write.refused ?? []))
      if (write.marker === null) markers.delete(lane)
      else if (write.marker !== undefined) markers.set(lane, write.marker)
    },
    snapshot: () => ({ rows: [...rows], markers: new Map(markers), refused: [...refused] }),
    restore(snapshot) {
      rows = [...snapshot.rows]
      markers = new Map(snapshot.markers)
      refused = [...snapshot.refused]
    },
    dropMarker(lane) {
      markers.delete(lane)
    },
  }
}
