/**
 * What a pipeline file says of a table, the same for every database that speaks SQL, and what is wrong with it.
 *
 * Mistakes are told when the spec is made, not when the first epoch is promoted.
 */
import { PawlError } from '../../model/errors.ts'
import type { RejectPolicy } from '../../ports/sink.ts'
import type { RowMaker, SqlRow, SqlValue, TableForm, TableMode } from './table-rows.ts'

/** A table and how rows get there. */
export interface TableOptions<K, V> {
  /** With or without its schema: `totals`, `shop.totals`. */
  readonly table: string
  /**
   * `insert` (default) appends each row; `upsert` keeps one row a key, and a null value deletes it; `sql` runs a
   * statement of your own once a row.
   */
  readonly mode?: TableMode
  /** The row of a value; the value itself by default. */
  readonly row?: (value: V, key: K, timestampMs: number) => SqlRow
  /** Columns that identify a row, under a unique index. Needed for `upsert`; names rows in errors otherwise. */
  readonly key?: readonly string[]
  /** Key columns of a tombstone; by default the key of the stream, for a single column. */
  readonly keyRow?: (key: K) => SqlRow
  /** The statement of mode `sql`, run in the transaction of the marker. */
  readonly sql?: string
  /** The parameters of `sql`. */
  readonly parameters?: (value: V, key: K, timestampMs: number) => readonly SqlValue[]
  /** Promotion strands; rows of one key stay in one. 1 by default. */
  readonly lanes?: number
  /**
   * What becomes of a row that the table refuses: `park` (default) stops the pipeline there; `dead-letter` writes the
   * others and sends it to the pipeline's dead letters.
   */
  readonly onReject?: RejectPolicy
  /** Name of the table in which refused rows wait for the next epoch; `pawl_refused` by default. */
  readonly refusedTable?: string
  /** Name of the table of markers; `pawl_markers` by default. */
  readonly markerTable?: string
  /** How long to wait for a lock that somebody else holds. */
  readonly lockTimeoutMs?: number
  readonly statementTimeoutMs?: number
  readonly connectTimeoutMs?: number
  /** How long one promotion may take altogether; 60 s by default. */
  readonly timeoutMs?: number
}

/** The form of a table sink. Throws `PIPELINE_INVALID`. */
export function tableForm<K, V>(technology: string, options: TableOptions<K, V>): TableForm {
  const { table, mode = 'insert', key = [], sql = null } = options
  const refuse = (fault: string): never => {
    throw new PawlError('PIPELINE_INVALID', `${technology}: table ${JSON.stringify(table)}: ${fault}`)
  }
  if (table === '' || table.split('.').some((part) => part === '')) refuse('the name is empty')
  if (mode === 'upsert' && key.length === 0) refuse('mode upsert needs key, the columns that identify a row')
  if (new Set(key).size < key.length) refuse('key names a column twice')
  if ((mode === 'sql') !== (sql !== null)) refuse('mode sql and the option sql go together')
  if (mode === 'sql' && options.row !== undefined) refuse('mode sql takes parameters in place of row')
  if (mode !== 'sql' && options.parameters !== undefined) refuse('parameters belong to mode sql')
  const lanes = options.lanes ?? 1
  if (!Number.isSafeInteger(lanes) || lanes < 1) refuse(`lanes is ${lanes}`)
  return Object.freeze({ version: 1, mode, table, key: Object.freeze([...key]), sql })
}

/** How rows are made of values. */
export function tableMaker<K, V>({ row, keyRow, parameters }: TableOptions<K, V>): RowMaker {
  return { row: row ?? ((value: SqlRow) => value), keyRow: keyRow ?? null, parameters: parameters ?? null }
}
