/**
 * From staged blocks to the body of a stream load: JSON lines or CSV, read from the store piece by piece.
 *
 * A cell is staged as JSON text, which holds no raw tab or newline. For an upsert only the last row of each key is
 * sent: within one load Doris does not promise which of two rows of a key wins. Where rows are left out, it is the last
 * of the others. A tombstone has its key columns and the delete sign alone.
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

/** Positions of rows within their part. */
export type PartRows = ReadonlySet<number>

/** The rows of a part as a body, without some. Throws `OBJECT_MISSING`, `OBJECT_DAMAGED`. */
export async function* bodyOf(
  store: Store,
  part: StagedPart,
  form: DorisForm,
  without: PartRows = new Set(),
): AsyncIterable<Buffer> {
  const isSent = await sending(store, part, form, without)
  let row = 0
  let piece = ''
  for await (const block of blocksOf(store, part)) {
    const lineOf = linesOf(form, block)
    for (const cells of rowsIn(block)) {
      if (isSent(cells, row)) piece += lineOf(cells)
      row++
      if (piece.length < pieceBytes) continue
      yield Buffer.from(piece)
      piece = ''
    }
  }
  if (piece !== '') yield Buffer.from(piece)
}

/** One row of a body. */
export interface SentRow {
  /** Position within the part. */
  readonly row: number
  /** As it stands in the body. */
  readonly line: string
  /** Key columns, or the whole row where there are none. */
  readonly key: string
  /** JSON by column, whatever the format. */
  readonly value: string
}

/** The rows of a body by block, if `wanted`. Throws `OBJECT_MISSING`, `OBJECT_DAMAGED`. */
export async function* sentBlocks(
  store: Store,
  part: StagedPart,
  form: DorisForm,
  without: PartRows,
  wanted: (row: number) => boolean,
): AsyncIterable<readonly SentRow[]> {
  const isSent = await sending(store, part, form, without)
  let row = 0
  for await (const block of blocksOf(store, part)) {
    const [lineOf, jsonOf] = [linesOf(form, block), jsonLines(form, block)]
    const rows: SentRow[] = []
    for (const cells of rowsIn(block)) {
      const at = row++
      if (!wanted(at) || !isSent(cells, at)) continue
      const value = jsonOf(cells).trimEnd()
      rows.push({ row: at, line: lineOf(cells), key: keyTextOf(form, block, cells) ?? value, value })
    }
    yield rows
  }
}

function keyTextOf({ mode, key }: DorisForm, { columns }: RowBlock, cells: readonly string[]): string | null {
  if (key.length === 0) return null
  const shift = mode === 'upsert' ? 1 : 0
  const pairs = key.map((name) => `${name}=${cells[columns.indexOf(name) + shift] ?? ''}`)
  return pairs.join(', ')
}

/** Which rows of a part are sent. */
async function sending(store: Store, part: StagedPart, form: DorisForm, without: PartRows) {
  const last = form.mode === 'upsert' ? await lastRows(store, part, form, without) : null
  return (cells: readonly string[], row: number) =>
    !without.has(row) && (last === null || last.get(keyOf(cells, form)) === row)
}

/** By key, which row of the part is the last one. */
async function lastRows(
  store: Store,
  part: StagedPart,
  form: DorisForm,
  without: PartRows,
): Promise<ReadonlyMap<string, number>> {
  const last = new Map<string, number>()
  let row = 0
  for await (const block of blocksOf(store, part))
    for (const cells of rowsIn(block)) {
      if (!without.has(row)) last.set(keyOf(cells, form), row)
      row++
    }
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

type LineOf = (cells: readonly string[]) => string

const linesOf = (form: DorisForm, block: RowBlock): LineOf =>
  form.format === 'csv' ? csvLines(form, block) : jsonLines(form, block)

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
