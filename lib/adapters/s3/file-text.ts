/**
 * Rows as lines of text: JSON lines and CSV.
 *
 * Of a column's cell there is one text: int64 as digits, decimals with all their digits after the point, timestamps in
 * UTC with six, bytes as base64. JSON knows null; in CSV nothing between two commas is null, and `""` is empty text.
 * Source: RFC 8259, RFC 4180 (lines end with CR LF, quotes are doubled).
 */
import { PawlError } from '../../model/errors.ts'
import { type Cell, decimalDigits, type ParquetColumn } from '../shared/parquet-columns.ts'
import { cellRefused } from '../shared/table-rows.ts'

/** Makes the line of a row's cells, with its ending. Throws `ENCODE_FAILED`. */
export type LineMaker = (cells: readonly Cell[]) => string

const dayMs = 86_400_000
/** Beyond it a `Date` is invalid. */
const dateMsMax = 8.64e15

/** Lines of JSON objects, one member a column. */
export function jsonLineMaker(columns: readonly ParquetColumn[]): LineMaker {
  const names = columns.map(({ name }) => `${JSON.stringify(name)}:`)
  const texts = columns.map(jsonText)
  return (cells) => {
    let line = '{'
    for (let i = 0; i < cells.length; i++) {
      const cell = cells[i]!
      line += `${i === 0 ? '' : ','}${names[i]}${cell === null ? 'null' : texts[i]!(cell)}`
    }
    return `${line}}\n`
  }
}

/** Lines of CSV. */
export function csvLineMaker(columns: readonly ParquetColumn[]): LineMaker {
  const texts = columns.map(plainText)
  return (cells) => {
    let line = ''
    for (let i = 0; i < cells.length; i++) {
      const cell = cells[i]!
      line += `${i === 0 ? '' : ','}${cell === null ? '' : quoted(texts[i]!(cell))}`
    }
    return `${line}\r\n`
  }
}

/** The first line of a file of CSV. */
export function csvHeader(columns: readonly ParquetColumn[]): string {
  return `${columns.map(({ name }) => quoted(name)).join(',')}\r\n`
}

function quoted(text: string): string {
  return text === '' || /[",\r\n]/.test(text) || text !== text.trim() ? `"${text.replaceAll('"', '""')}"` : text
}

type CellText = (cell: Exclude<Cell, null>) => string

function jsonText(column: ParquetColumn): CellText {
  switch (column.type) {
    case 'string':
      return (cell) => JSON.stringify(cell)
    case 'json':
    case 'integer':
    case 'long':
    case 'boolean':
      return String
    case 'double':
      return (cell) => {
        if (Number.isFinite(cell)) return JSON.stringify(cell)
        throw cellRefused(column.name, `${cell} has no form in JSON`)
      }
    default: {
      const text = plainText(column)
      return (cell) => `"${text(cell)}"`
    }
  }
}

function plainText({ name, type }: ParquetColumn): CellText {
  const digits = decimalDigits(type)
  if (digits !== null) return (cell) => decimalText(cell as bigint, digits.scale)
  switch (type) {
    case 'binary':
      return (cell) => Buffer.from(cell as Uint8Array).toString('base64')
    case 'date':
      return (cell) => new Date((cell as number) * dayMs).toISOString().slice(0, -14)
    case 'timestamp':
      return (cell) => timestampText(cell as bigint, name)
    default:
      return (cell) => (Object.is(cell, -0) ? '-0' : String(cell))
  }
}

function decimalText(unscaled: bigint, scale: number): string {
  const sign = unscaled < 0n ? '-' : ''
  const digits = (unscaled < 0n ? -unscaled : unscaled).toString().padStart(scale + 1, '0')
  return scale === 0 ? `${sign}${digits}` : `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`
}

function timestampText(micros: bigint, name: string): string {
  const part = ((micros % 1_000_000n) + 1_000_000n) % 1_000_000n
  const atMs = Number((micros - part) / 1000n)
  if (Math.abs(atMs) > dateMsMax) throw cellRefused(name, 'the timestamp is beyond the years that text can name')
  return `${new Date(atMs).toISOString().slice(0, -5)}.${part.toString().padStart(6, '0')}Z`
}

/** The line of any value as JSON: bigint as digits, bytes as base64. Throws `ENCODE_FAILED`. */
export function jsonLine(value: unknown): string {
  const text: string | undefined = JSON.stringify(value, exactly)
  if (text === undefined) throw new PawlError('ENCODE_FAILED', `a ${typeof value} has no form in JSON`)
  return `${text}\n`
}

declare global {
  interface JSON {
    /** Text that stands in JSON as it is; of Node since 21. */
    rawJSON(text: string): unknown
  }
}

function exactly(this: Readonly<Record<string, unknown>>, name: string, value: unknown): unknown {
  const given = this[name]
  if (given instanceof Uint8Array) return Buffer.from(given).toString('base64')
  if (typeof value === 'bigint') return JSON.rawJSON(value.toString())
  if (typeof value === 'number' && !Number.isFinite(value)) throw cellRefused(name, `${value} has no form in JSON`)
  if (value instanceof Map || value instanceof Set) throw cellRefused(name, 'a Map or Set has no form in JSON')
  return value
}
