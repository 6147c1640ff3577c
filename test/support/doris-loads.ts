/**
 * How the double of Doris reads the body of a stream load, and what its table models make of rows.
 *
 * JSON lines by name or by `jsonpaths`, CSV by separators and `columns`; the delete sign as a hidden column or by
 * `merge_type: MERGE`. Strict mode: a bad row is filtered, and too many of those (`max_filter_ratio`) fail the load, whose
 * error log then shows rows, each with its reason.
 */
import type { IncomingHttpHeaders } from 'node:http'

/** A row by column name; the delete sign is a column of its own until rows are merged. */
export type DorisRow = Readonly<Record<string, unknown>>

/** A table: its columns with a check each, and what new rows do to those that are there. */
export interface TableModel {
  readonly columns: Readonly<Record<string, (value: unknown) => boolean>>
  merge(shown: readonly DorisRow[], loaded: readonly DorisRow[]): readonly DorisRow[]
}

const deleteSign = '__DORIS_DELETE_SIGN__'

/** Keeps every row. */
export function duplicateModel(columns: TableModel['columns']): TableModel {
  return { columns, merge: (shown, loaded) => [...shown, ...loaded] }
}

/** Keeps a row a key. Within a load, the FIRST of two rows of a key wins: Doris promises nothing, so this one is mean. */
export function uniqueModel(key: readonly string[], columns: TableModel['columns']): TableModel {
  const keyOf = (row: DorisRow) => JSON.stringify(key.map((name) => row[name]))
  return {
    columns: { ...columns, [deleteSign]: () => true },
    merge(shown, loaded) {
      const rows = new Map(shown.map((row) => [keyOf(row), row]))
      for (const row of [...loaded].reverse()) {
        const { [deleteSign]: deleted, ...plain } = row
        if (Number(deleted ?? 0) === 1) rows.delete(keyOf(row))
        else rows.set(keyOf(row), plain)
      }
      return [...rows.values()]
    },
  }
}

/** What becomes of a body. */
export interface ParsedLoad {
  /** Those that fit the table. */
  readonly rows: readonly DorisRow[]
  /** A line of the error log for each of the others. */
  readonly faults: readonly string[]
}

/** The rows of a body, and what is wrong with others. */
export function parseLoad(model: TableModel, headers: IncomingHttpHeaders, body: string): ParsedLoad {
  const columns = headers.columns === undefined ? null : String(headers.columns).split(',')
  const delimiter = headers.format === 'csv' ? unescaped(String(headers.line_delimiter)) : '\n'
  const lines = body.split(delimiter).slice(0, -1)
  const rows = headers.format === 'csv' ? csvRows(headers, columns ?? [], lines) : jsonRows(headers, columns, lines)
  const faults = rows.map((row) => faultOf(model, row))
  return {
    rows: rows.filter((_, index) => faults[index] === null),
    faults: faults.flatMap((fault, index) =>
      fault === null ? [] : [`Reason: ${fault}. src line [${lines[index]}]; `],
    ),
  }
}

/** Whether a load of these is refused as a whole. */
export function isTooBad({ rows, faults }: ParsedLoad, headers: IncomingHttpHeaders): boolean {
  return faults.length > Number(headers.max_filter_ratio ?? 0) * (rows.length + faults.length)
}

function faultOf(model: TableModel, row: DorisRow): string | null {
  for (const [name, value] of Object.entries(row)) {
    const check = model.columns[name]
    if (check === undefined) return `column ${name} is not in the table`
    if (!check(value)) return `column_name[${name}], the value does not fit: [${value}]`
  }
  return null
}

function jsonRows(
  headers: IncomingHttpHeaders,
  columns: readonly string[] | null,
  lines: readonly string[],
): DorisRow[] {
  const paths = headers.jsonpaths === undefined ? null : (JSON.parse(String(headers.jsonpaths)) as string[])
  const hidden = headers.hidden_columns === undefined ? [] : String(headers.hidden_columns).split(',')
  const documents = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  return documents.map((document) => {
    if (paths === null || columns === null) return document
    const picked = paths.map((path, index) => [columns[index]!, document[path.slice(2)] ?? null] as const)
    return { ...Object.fromEntries(picked), ...Object.fromEntries(hidden.map((name) => [name, document[name]])) }
  })
}

function csvRows(headers: IncomingHttpHeaders, columns: readonly string[], lines: readonly string[]): DorisRow[] {
  const separator = unescaped(String(headers.column_separator))
  const names = columns.filter((name) => !name.includes('='))
  return lines.map((line) => {
    const cells = line.split(separator)
    return Object.fromEntries(names.map((name, index) => [name, cells[index] === '\\N' ? null : cells[index]]))
  })
}

const unescaped = (text: string) =>
  text.replace(/\\x([0-9a-f]{2})/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)))
