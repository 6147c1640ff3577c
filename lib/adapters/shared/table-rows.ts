/**
 * From a value of the pipeline to the line of a table's row, the same for every database that speaks SQL.
 *
 * A row names its columns; `undefined` leaves a column out (its default applies, an upsert keeps it), `null` is
 * NULL. Key columns come first in a line. An upsert's line begins with whether the row is deleted (`t`, `f`). What
 * a database could only change silently (a lone surrogate, an invalid date) is refused here, where the row can
 * still be rejected alone.
 */
import { PawlError } from '../../model/errors.ts'
import { laneOf } from './lanes.ts'
import type { EncodedRow, RowEncoder } from './row-blocks.ts'

/** What a column can take: int64 as bigint, decimals as text, JSON as an object or array. */
export type SqlValue = string | number | bigint | boolean | Date | Uint8Array | object | null | undefined

/** A row by column name. */
export type SqlRow = Readonly<Record<string, SqlValue>>

/** How rows reach the table. */
export type TableMode = 'insert' | 'upsert' | 'sql'

/** What becomes of values; kept in the staged parts, so that promotion does not depend on the pipeline file. */
export interface TableForm {
  readonly version: 1
  readonly mode: TableMode
  readonly table: string
  /** Columns that identify a row; not empty for `upsert`. */
  readonly key: readonly string[]
  /** The statement of mode `sql`, once a row. */
  readonly sql: string | null
}

/** How a pipeline file makes rows of values. */
export interface RowMaker {
  readonly row: (value: never, key: never, timestampMs: number) => SqlRow
  readonly keyRow: ((key: never) => SqlRow) | null
  readonly parameters: ((value: never, key: never, timestampMs: number) => readonly SqlValue[]) | null
}

/** The text of one value in the database's language. Throws `ENCODE_FAILED`. */
export type CellText = (value: Exclude<SqlValue, undefined>, column: string) => string

interface Shape {
  readonly columns: readonly string[]
}

/** Encodes the rows of one invocation of a sink with `lanes` lanes. */
export function rowEncoder(form: TableForm, maker: RowMaker, cell: CellText, lanes: number): RowEncoder {
  const line = (cells: readonly string[]) => `${cells.join('\t')}\n`
  const byStreamKey = (key: unknown, partition: number) => laneOf(laneText(key), partition, lanes)
  const fixed: Shape = { columns: [] }
  const shapes = shapeCache(form.key)
  if (form.mode === 'sql') {
    const parameters = maker.parameters as ((value: unknown, key: unknown, at: number) => readonly SqlValue[]) | null
    return (key, value, timestampMs, partition): EncodedRow => {
      const values = parameters?.(value, key, timestampMs) ?? []
      const cells = values.map((one, index) => cell(one ?? null, `parameter ${index + 1}`))
      return { lane: byStreamKey(key, partition), columns: fixed.columns, line: line(cells) }
    }
  }
  const row = maker.row as (value: unknown, key: unknown, timestampMs: number) => unknown
  const cellsOf = (made: SqlRow, columns: readonly string[], count: number) => {
    const cells: string[] = []
    for (let i = 0; i < count; i++) cells.push(cell(made[columns[i]] as Exclude<SqlValue, undefined>, columns[i]))
    return cells
  }
  if (form.mode === 'insert') {
    return (key, value, timestampMs, partition) => {
      const made = checkedRow(row(value, key, timestampMs), form)
      const { columns } = shapes(made)
      if (columns.length === 0) throw new PawlError('ENCODE_FAILED', `a row of ${form.table} has no column`)
      return { lane: byStreamKey(key, partition), columns, line: line(cellsOf(made, columns, columns.length)) }
    }
  }
  return (key, value, timestampMs) => {
    const deleted = value === null || value === undefined
    const made = deleted ? keyRowOf(key, form, maker) : checkedRow(row(value, key, timestampMs), form)
    checkKey(made, form)
    const { columns } = deleted ? shapes.last() : shapes(made)
    const cells = cellsOf(made, columns, deleted ? form.key.length : columns.length)
    const lane = lanes === 1 ? 0 : laneOf(form.key.map((name) => laneText(made[name])).join('\t'), 0, lanes)
    while (cells.length < columns.length) cells.push(cell(null, columns[cells.length]))
    return { lane, columns, line: line([deleted ? 't' : 'f', ...cells]) }
  }
}

/** Rows of the same columns share a shape; key columns first, the others in the order of the first such row. */
function shapeCache(key: readonly string[]): ((row: SqlRow) => Shape) & { last(): Shape } {
  const known = new Map<string, Shape>()
  let last: Shape = { columns: key }
  const shapeOf = (row: SqlRow): Shape => {
    let count = 0
    for (const name in row) if (row[name] !== undefined) count++
    if (count === last.columns.length && last.columns.every((name) => row[name] !== undefined)) return last
    const others = Object.keys(row).filter((name) => row[name] !== undefined && !key.includes(name))
    const columns = [...key.filter((name) => row[name] !== undefined), ...others]
    const id = [...columns].sort().join('\0')
    last = known.get(id) ?? { columns }
    known.set(id, last)
    return last
  }
  return Object.assign(shapeOf, { last: () => last })
}

function checkedRow(made: unknown, { table }: TableForm): SqlRow {
  if (typeof made === 'object' && made !== null && !Array.isArray(made)) return made as SqlRow
  const what = made === null ? 'null' : Array.isArray(made) ? 'an array' : `a ${typeof made}`
  throw new PawlError('ENCODE_FAILED', `a row of ${table} is ${what} in place of an object of columns`, { table })
}

function checkKey(row: SqlRow, { table, key }: TableForm): void {
  for (const column of key) {
    if (row[column] !== undefined && row[column] !== null) continue
    throw new PawlError('ENCODE_FAILED', `a row of ${table} has no value for key column ${column}`, { table, column })
  }
}

/** Key columns of a tombstone: made by the pipeline file, or the key itself where that is plain. */
function keyRowOf(key: unknown, { table, key: columns }: TableForm, { keyRow }: RowMaker): SqlRow {
  if (keyRow !== null) return (keyRow as (key: unknown) => SqlRow)(key)
  const [column] = columns
  if (columns.length === 1 && column !== undefined) return { [column]: key as SqlValue }
  if (typeof key === 'object' && key !== null) return key as SqlRow
  throw new PawlError('ENCODE_FAILED', `a tombstone for ${table} needs keyRow, since its key has several columns`, {
    table,
  })
}

/** What decides the lane: equal values have equal texts, whatever the dialect. */
export function laneText(key: unknown): string | Uint8Array | null {
  if (key === null || key === undefined) return null
  if (typeof key === 'string' || key instanceof Uint8Array) return key
  if (key instanceof Date) return key.toISOString()
  return typeof key === 'object' ? JSON.stringify(key) : String(key)
}

/** Refuses a value that no column can hold as it is. */
export function cellRefused(column: string, fault: string): PawlError {
  return new PawlError('ENCODE_FAILED', `column ${column}: ${fault}`, { column })
}

/** A date as ISO 8601 in UTC. Throws `ENCODE_FAILED` for an invalid one, and outside the years 1 to 9999. */
export function dateText(value: Date, column: string): string {
  const text = Number.isNaN(value.getTime()) ? '' : value.toISOString()
  if (text.length !== 24 || text.startsWith('0000')) throw cellRefused(column, 'the date is invalid')
  return text
}

/** An object or array as JSON. Throws `ENCODE_FAILED` for what has no form in JSON. */
export function jsonCell(value: object, column: string): string {
  const text: string | undefined = JSON.stringify(value)
  if (text === undefined) throw cellRefused(column, `a ${typeof value} has no form in SQL`)
  return text
}
