/**
 * From staged blocks to the body of a stream load: JSON lines or CSV, read from the store piece by piece.
 *
 * A cell is staged as JSON text, which holds no raw tab or newline. For an upsert only the last row of each key is
 * sent: within one load Doris does not promise which of two rows of a key wins. A tombstone has its key columns and
 * the delete sign alone.
 */
import type { StagedPart } from '../../model/manifest.ts'
import type { Store } from '../../ports/store.ts'
import { blocksOf, type RowBlock } from '../shared/row-blocks.ts'
import { cellRefused, dateText, jsonCell, type SqlValue, type TableForm } from '../shared/table-rows.ts'

/** What becomes of rows; kept in the staged parts, so that promotion does not depend on the pipeline file. */
export interface DorisForm extends TableForm {
  readonly format: 'json' | 'csv'
  /** Columns of the file in order, then expressions (`day=date(at)`), as Doris's header `columns`; null: by name. */
  readonly columns: readonly string[] | null
}

const columnSeparator = '\x01'
const lineDelimiter = '\x02'
const deleteSign = '__DORIS_DELETE_SIGN__'
const nullCell = '\\N'
const pieceBytes = 256 * 1024

/** A value as JSON text. Throws `ENCODE_FAILED` for what no column holds as it is. */
export function cellText(value: Exclude<SqlValue, undefined>, column: string): string {
  if (value === null) return 'null'
  if (typeof value === 'bigint') return `"${value}"`
  if (value instanceof Date) return `"${dateText(value, column).replace('T', ' ').replace('Z', '')}"`
  if (value instanceof Uint8Array) throw cellRefused(column, 'Doris takes no bytes: encode them as text')
  if (typeof value === 'number' && !Number.isFinite(value)) throw cellRefused(column, `${value} is no number of Doris`)
  if (typeof value === 'string' && !value.isWellFormed()) throw cellRefused(column, 'the text has a lone surrogate')
  return typeof value === 'object' ? jsonCell(value, column) : JSON.stringify(value)
}

/** As `cellText`, for CSV: the text that stands in the file, in quotes of JSON. */
export function csvCellText(value: Exclude<SqlValue, undefined>, column: string): string {
  const text = cellText(value, column)
  if (value === null) return JSON.stringify(nullCell)
  const content = text.startsWith('"') ? (JSON.parse(text) as string) : text
  if (content === nullCell) throw cellRefused(column, 'in CSV this text means NULL')
  if (content.includes(columnSeparator) || content.includes(lineDelimiter))
    throw cellRefused(column, 'the text holds a separator of CSV')
  return JSON.stringify(content)
}

/** The headers of a stream load that say what the body is. */
export function formatHeaders({ format, mode, columns }: DorisForm): Readonly<Record<string, string>> {
  const names = columns ?? []
  if (format === 'csv') {
    const separators = { format: 'csv', column_separator: '\\x01', line_delimiter: '\\x02' }
    if (mode !== 'upsert') return { ...separators, columns: names.join(',') }
    const merge = { merge_type: 'MERGE', delete: `${deleteSign}=1` }
    return { ...separators, ...merge, columns: [...plainColumns(names), deleteSign, ...expressions(names)].join(',') }
  }
  const json = { format: 'json', read_json_by_line: 'true' }
  const paths: Record<string, string> =
    columns === null ? {} : { columns: names.join(','), jsonpaths: pathsOf(plainColumns(names)) }
  return { ...json, ...paths, ...(mode === 'upsert' ? { hidden_columns: deleteSign } : {}) }
}

const isExpression = (column: string) => column.includes('=')
const expressions = (columns: readonly string[]) => columns.filter(isExpression)

/** Columns that rows have, without those that Doris computes. */
export function plainColumns(columns: readonly string[]): string[] {
  return columns.filter((column) => !isExpression(column))
}

function pathsOf(columns: readonly string[]): string {
  return JSON.stringify(columns.map((column) => `$.${column}`))
}

/** The rows of a part as a body. Throws `OBJECT_MISSING`, `OBJECT_DAMAGED`. */
export async function* bodyOf(store: Store, part: StagedPart, form: DorisForm): AsyncIterable<Buffer> {
  const last = form.mode === 'upsert' ? await lastRows(store, part, form) : null
  let row = 0
  let piece = ''
  for await (const block of blocksOf(store, part)) {
    const lineOf = form.format === 'csv' ? csvLines(form, block) : jsonLines(form, block)
    for (const cells of rowsIn(block)) {
      if (last === null || last.get(keyOf(cells, form)) === row) piece += lineOf(cells)
      row++
      if (piece.length < pieceBytes) continue
      yield Buffer.from(piece)
      piece = ''
    }
  }
  if (piece !== '') yield Buffer.from(piece)
}

/** By key, which row of the part is the last one. */
async function lastRows(store: Store, part: StagedPart, form: DorisForm): Promise<ReadonlyMap<string, number>> {
  const last = new Map<string, number>()
  let row = 0
  for await (const block of blocksOf(store, part))
    for (const cells of rowsIn(block)) last.set(keyOf(cells, form), row++)
  return last
}

function* rowsIn({ lines }: RowBlock): Iterable<string[]> {
  for (let at = 0; at < lines.length; ) {
    const end = lines.indexOf(10, at)
    yield lines.toString('utf8', at, end).split('\t')
    at = end + 1
  }
}

/** Key columns come first, after the mark of a tombstone. */
const keyOf = (cells: readonly string[], { key }: DorisForm) => cells.slice(1, key.length + 1).join('\t')

type LineOf = (cells: string[]) => string

function jsonLines({ mode, key }: DorisForm, { columns }: RowBlock): LineOf {
  const names = columns.map((name) => `${JSON.stringify(name)}:`)
  const object = (cells: readonly string[], from: number, count: number) => {
    let text = ''
    for (let i = 0; i < count; i++) text += `${i === 0 ? '' : ','}${names[i]}${cells[from + i]}`
    return text
  }
  if (mode !== 'upsert') return (cells) => `{${object(cells, 0, names.length)}}\n`
  return (cells) => {
    const deleted = cells[0] === 't'
    return `{${object(cells, 1, deleted ? key.length : names.length)},"${deleteSign}":${deleted ? 1 : 0}}\n`
  }
}

function csvLines({ mode, columns }: DorisForm, block: RowBlock): LineOf {
  const shift = mode === 'upsert' ? 1 : 0
  const places = plainColumns(columns ?? []).map((name) => block.columns.indexOf(name))
  return (cells) => {
    const texts = places.map((at) => (at < 0 ? nullCell : (JSON.parse(cells[at + shift] ?? '""') as string)))
    const sign = mode === 'upsert' ? [cells[0] === 't' ? '1' : '0'] : []
    return `${[...texts, ...sign].join(columnSeparator)}${lineDelimiter}`
  }
}
