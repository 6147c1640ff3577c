/**
 * `delta({...})`: the spec of a Delta table as a sink.
 *
 * Plain data until a place opens it; mistakes in it are told when it is made. How a table's files are reached is given by
 * the entry, since no adapter knows another.
 */
import { PawlError } from '../../model/errors.ts'
import type { CustomSinkSpec } from '../../ports/spec.ts'
import { type ColumnSpecs, type ParquetColumn, parquetColumns } from '../shared/parquet-columns.ts'
import type { TableForm } from './schema.ts'
import { deltaSink, type TablePlace } from './sink.ts'
import type { DeltaRow } from './staging.ts'

/** A Delta table, and what is written into it. */
export interface DeltaTableOptions<K, V> {
  /** A directory, or `s3://bucket/prefix`. Made, with the columns, when it is not there. */
  readonly table: string
  /** Types by column, in the order of a new table; nullable unless said otherwise. */
  readonly columns: ColumnSpecs
  /** Columns by whose values files are apart; of the types string, integer, long, decimal, boolean, date, timestamp. */
  readonly partitionBy?: readonly string[]
  /** The row of a value; the value itself by default. A member that is no column is refused. */
  readonly row?: (value: V, key: K, timestampMs: number) => Readonly<Record<string, unknown>>
  /** Promotion strands, each a log entry an epoch; 1 by default, since all of them write the one log. */
  readonly lanes?: number
  /** A checkpoint each so many versions, unless the table's `delta.checkpointInterval` says otherwise; 100 by default. */
  readonly checkpointEvery?: number
}

/** Describes a Delta table. Throws `PIPELINE_INVALID` for options that contradict each other. */
export function deltaSpec<V, K>(options: DeltaTableOptions<K, V>, place: TablePlace): CustomSinkSpec<K, V> {
  const { table, lanes = 1, checkpointEvery = 100 } = options
  const form = formOf(options)
  for (const [name, count] of Object.entries({ lanes, checkpointEvery })) {
    if (!Number.isSafeInteger(count) || count < 1) throw mistake(table, `${name} is ${count}`)
  }
  const row = (options.row ?? ((value: object) => value)) as DeltaRow
  return Object.freeze({
    kind: 'sink',
    type: 'delta',
    guarantee: 'exactly-once',
    lanes,
    open: async (sink, context) => deltaSink(sink, context, { table, form, row, checkpointEvery, place }),
  } satisfies CustomSinkSpec<K, V>)
}

function formOf<K, V>({ table, columns: specs, partitionBy = [] }: DeltaTableOptions<K, V>): TableForm {
  if (table === '') throw mistake(table, 'the name is empty')
  const columns = parquetColumns(specs, `delta: table ${JSON.stringify(table)}`)
  const byName = new Map(columns.map((column) => [column.name, column]))
  for (const name of partitionBy) refusePartition(table, name, byName.get(name))
  if (new Set(partitionBy).size < partitionBy.length) throw mistake(table, 'partitionBy names a column twice')
  if (partitionBy.length === columns.length) throw mistake(table, 'partitionBy names all columns')
  return Object.freeze({ columns, partitionBy: Object.freeze([...partitionBy]) })
}

function refusePartition(table: string, name: string, column: ParquetColumn | undefined): void {
  if (column === undefined) throw mistake(table, `partitionBy names ${name}, which is no column`)
  if (['json', 'binary', 'double'].includes(column.type)) {
    throw mistake(table, `partitionBy names ${name}, a ${column.type}`)
  }
}

function mistake(table: string, fault: string): PawlError {
  return new PawlError('PIPELINE_INVALID', `delta: table ${JSON.stringify(table)}: ${fault}`)
}
