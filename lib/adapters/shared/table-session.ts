/**
 * What a table sink needs of one connection to a database; each dialect makes its own.
 *
 * Apart from the sink, since what writes rows and the dialects know sessions, and not sinks.
 */
import type { PawlError } from '../../model/errors.ts'
import type { Marker, RefusedRow } from '../../model/manifest.ts'
import type { RowBlock } from './row-blocks.ts'
import type { PooledSession } from './session-pool.ts'
import type { TableForm } from './table-rows.ts'

/** Whose marker: the primary key of the marker table. */
export interface LaneKey {
  readonly stage: string
  readonly pipeline: string
  readonly sink: string
  readonly lane: number
}

/** One connection to a database. Everything throws `PawlError`s; `details.row` is a row's index in its block. */
export interface TableSession extends PooledSession {
  begin(): Promise<void>
  /** Within a transaction; holds the lock of the row until it ends. Null: no row, or no table of markers. */
  lockMarker(key: LaneKey): Promise<Marker | null>
  /** Without a transaction. */
  readMarker(key: LaneKey): Promise<Marker | null>
  /** Without a transaction: makes the table of markers and the row, unless they are there. */
  createMarker(key: LaneKey, marker: Marker): Promise<void>
  moveMarker(key: LaneKey, marker: Marker): Promise<void>
  /** Within a transaction, as `moveMarker`. */
  removeMarker(key: LaneKey): Promise<void>
  /** Without a transaction: makes the table of markers, unless it is there. */
  createMarkerTable(): Promise<void>
  /** Writes a block within a transaction, which is as it was before when the block is refused. */
  write(form: TableForm, block: RowBlock): Promise<void>
  /** What `write` throws for this block, without keeping anything of it. */
  refusal(form: TableForm, block: RowBlock): Promise<PawlError | null>
  /** Within a transaction: the columns, joined, of the constraint that a refusal names; null where it names none. */
  columnsOf(form: TableForm, refusal: PawlError): Promise<string | null>
  /** Without a transaction: makes the table of refused rows, unless it is there. */
  createRefusedTable(): Promise<void>
  /** Within the transaction of the marker. */
  recordRefused(key: LaneKey, rows: readonly RefusedRow[]): Promise<void>
  /** Without a transaction; by epoch and row. None where there is no such table. */
  readRefused(key: LaneKey, rowsMax: number): Promise<readonly RefusedRow[]>
  /** Without a transaction. */
  forgetRefused(key: LaneKey, ids: readonly string[]): Promise<void>
  /** Throws `UNKNOWN_RESULT` when the answer is lost. */
  commit(): Promise<void>
  rollback(): Promise<void>
}
