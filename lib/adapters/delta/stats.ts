/**
 * Statistics of a data file as the log holds them, by which readers leave out files that cannot have what they look for.
 *
 * A bound that could mislead a reader is left out: one without a bound reads the file. So text is cut only for the lower
 * bound, and columns with values that JSON cannot say, or that readers order differently, have none. Source: the Delta
 * protocol, "Per-file Statistics"; the forms of values are those of delta-rs and Spark.
 */
import { type Cell, decimalDigits, type ParquetColumn } from '../shared/parquet-columns.ts'

/** Columns that have statistics, as in the default of `delta.dataSkippingNumIndexedCols`. */
const columnsMax = 32
const textCharsMax = 32

/** The JSON of a file's statistics. Longs and decimals stand in it digit by digit. */
export function statsJson(
  columns: readonly ParquetColumn[],
  cells: readonly (readonly Cell[])[],
  rows: number,
): string {
  const least: string[] = []
  const most: string[] = []
  const nulls: string[] = []
  columns.slice(0, columnsMax).forEach((column, index) => {
    const name = JSON.stringify(column.name)
    const own = cells[index]!
    nulls.push(`${name}:${own.reduce((count: number, cell) => (cell === null ? count + 1 : count), 0)}`)
    const bounds = boundsOf(column, own)
    if (bounds?.least !== undefined) least.push(`${name}:${bounds.least}`)
    if (bounds?.most !== undefined) most.push(`${name}:${bounds.most}`)
  })
  const body = `"minValues":{${least.join()}},"maxValues":{${most.join()}},"nullCount":{${nulls.join()}}`
  return `{"numRecords":${rows},${body}}`
}

interface Bounds {
  readonly least: string | undefined
  readonly most: string | undefined
}

function boundsOf(column: ParquetColumn, cells: readonly Cell[]): Bounds | null {
  const { type } = column
  if (type === 'json' || type === 'binary' || type === 'boolean') return null
  const isText = type === 'string'
  let least: Cell = null
  let most: Cell = null
  for (const cell of cells) {
    if (cell === null) continue
    if (typeof cell === 'number' && !Number.isFinite(cell)) return null
    if (least === null || isBefore(cell, least, isText)) least = cell
    if (most === null || isBefore(most, cell, isText)) most = cell
  }
  if (least === null || most === null) return null
  if (isText) return textBounds(least as string, most as string)
  return { least: boundText(least, type), most: boundText(most, type) }
}

function isBefore(a: Exclude<Cell, null>, b: Exclude<Cell, null>, isText: boolean): boolean {
  return isText ? isBeforeInBytes(a as string, b as string) : a < b
}

/** The order of UTF-8, which differs from that of JavaScript for characters beyond 16 bits. */
function isBeforeInBytes(a: string, b: string): boolean {
  const length = Math.min(a.length, b.length)
  let at = 0
  while (at < length && a.charCodeAt(at) === b.charCodeAt(at)) at++
  return at === length ? a.length < b.length : rank(a.charCodeAt(at)) < rank(b.charCodeAt(at))
}

/** Surrogates rank above all other units, as the characters do that they stand for. */
function rank(unit: number): number {
  if (unit < 0xd800) return unit
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800
}

function textBounds(least: string, most: string): Bounds {
  const cut = [...least.slice(0, 2 * textCharsMax)].slice(0, textCharsMax).join('')
  return {
    least: JSON.stringify(cut.isWellFormed() ? cut : least),
    most: most.length > textCharsMax ? undefined : JSON.stringify(most),
  }
}

/** A value as statistics and partition values say it, JSON without quotes for numbers; undefined for what they cannot. */
function boundText(cell: Exclude<Cell, null>, type: string): string | undefined {
  const text = plainText(cell, type)
  return text === undefined || type === 'date' || type === 'timestamp' ? text && JSON.stringify(text) : text
}

/** A cell as plain text: digits, `2026-11-30`, `2026-11-30T12:00:00.000001Z`; undefined outside the years 1 to 9999. */
export function plainText(cell: Exclude<Cell, null>, type: string): string | undefined {
  if (type === 'date') return dayText(Number(cell))
  if (type === 'timestamp') return momentText(cell as bigint)
  const scale = decimalDigits(type)?.scale ?? 0
  return scale === 0 ? String(cell) : scaledText(cell as bigint, scale)
}

function scaledText(unscaled: bigint, scale: number): string {
  const digits = (unscaled < 0n ? -unscaled : unscaled).toString().padStart(scale + 1, '0')
  return `${unscaled < 0n ? '-' : ''}${digits.slice(0, -scale)}.${digits.slice(-scale)}`
}

function isoText(atMs: number): string | undefined {
  const moment = new Date(atMs)
  const text = Number.isNaN(moment.getTime()) ? '' : moment.toISOString()
  return text.length === 24 && !text.startsWith('0000') ? text : undefined
}

function dayText(days: number): string | undefined {
  return isoText(days * 86_400_000)?.slice(0, 10)
}

function momentText(micros: bigint): string | undefined {
  const rest = ((micros % 1000n) + 1000n) % 1000n
  const text = isoText(Number((micros - rest) / 1000n))
  return text && `${text.slice(0, -1)}${String(rest).padStart(3, '0')}Z`
}
