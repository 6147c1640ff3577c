/**
 * Columns of Parquet files: which types there are, and how a value of a pipeline becomes a cell of one.
 *
 * Shared by every sink that writes Parquet, so that a value has one form in all of them. A value that a column could
 * only hold changed (too many digits, half a surrogate pair, a date with a time) is refused with `ENCODE_FAILED`,
 * where its record can still be rejected alone. Parquet knows one null: `null` and a missing member are the same.
 * Source of the logical types: logical types of the Parquet format.
 */
import { PawlError } from '../../model/errors.ts'
import { cellRefused, jsonCell } from './table-rows.ts'

/**
 * - `string` text; `json` any value, as JSON text
 * - `integer` `long` 32 and 64 bits: a number, a bigint, or digits
 * - `double` a number; `decimal(p,s)` text such as `-12.50`, a bigint or a whole number; p ≤ 38
 * - `boolean`; `binary` bytes
 * - `date` a day: `2026-11-30`, or a Date at midnight UTC
 * - `timestamp` a moment to the microsecond, in UTC: a Date, ISO 8601 text with its zone, milliseconds as a number, or
 *   microseconds as a bigint
 */
export type ColumnType =
  | 'string'
  | 'json'
  | 'integer'
  | 'long'
  | 'double'
  | 'boolean'
  | 'binary'
  | 'date'
  | 'timestamp'
  | `decimal(${number},${number})`

/** One column. */
export interface ParquetColumn {
  readonly name: string
  readonly type: ColumnType
  readonly nullable: boolean
}

/** A column as a pipeline file names it: its type, or with `nullable: false`. */
export type ColumnSpec = ColumnType | { readonly type: ColumnType; readonly nullable?: boolean }

/** Columns by name, in the order in which they stand in files. */
export type ColumnSpecs = Readonly<Record<string, ColumnSpec>>

/** A cell as the writer takes it: days for a date, microseconds for a timestamp, unscaled digits for a decimal. */
export type Cell = string | number | bigint | boolean | Uint8Array | null

/** Makes the cell of one value. Throws `ENCODE_FAILED`. */
export type CellMaker = (value: unknown) => Cell

const decimalForm = /^decimal\((\d+), *(\d+)\)$/
const names = new Set(['string', 'json', 'integer', 'long', 'double', 'boolean', 'binary', 'date', 'timestamp'])

/** Columns of a spec. Throws `PIPELINE_INVALID`, naming the column; `sink` says whose. */
export function parquetColumns(specs: ColumnSpecs, sink: string): ParquetColumn[] {
  const refuse = (fault: string) => new PawlError('PIPELINE_INVALID', `${sink}: ${fault}`)
  const columns = Object.entries(specs).map(([name, spec]): ParquetColumn => {
    const { type, nullable = true } = typeof spec === 'string' ? { type: spec } : spec
    if (name === '') throw refuse('a column has no name')
    if (!names.has(type) && !isDecimal(type))
      throw refuse(`column ${name} has the unknown type ${JSON.stringify(type)}`)
    return { name, type: type.replace(' ', '') as ColumnType, nullable }
  })
  if (columns.length === 0) throw refuse('there is no column')
  const seen = new Set<string>()
  for (const { name } of columns) {
    if (seen.has(name.toLowerCase())) throw refuse(`column ${name} differs from another in case only`)
    seen.add(name.toLowerCase())
  }
  return columns
}

/** Digits of a decimal type, or null for other types. */
export function decimalDigits(type: string): { readonly precision: number; readonly scale: number } | null {
  const [, precision, scale] = decimalForm.exec(type) ?? []
  return precision === undefined ? null : { precision: Number(precision), scale: Number(scale) }
}

function isDecimal(type: string): boolean {
  const digits = decimalDigits(type)
  return digits !== null && digits.precision >= 1 && digits.precision <= 38 && digits.scale <= digits.precision
}

/** The maker of a column's cells. */
export function cellMaker(column: ParquetColumn): CellMaker {
  const { name, type, nullable } = column
  const make = makerOf(type, name)
  return (value) => {
    if (value !== null && value !== undefined) return make(value)
    if (nullable) return null
    throw cellRefused(name, 'it is not nullable, and the row has no value for it')
  }
}

/** Bytes that a cell takes in memory, about. */
export function cellBytes(cell: Cell): number {
  if (typeof cell === 'string') return cell.length
  return cell instanceof Uint8Array ? cell.length : 8
}

function makerOf(type: ColumnType, name: string): (value: unknown) => Cell {
  const digits = decimalDigits(type)
  if (digits !== null) return (value) => decimalCell(value, digits.precision, digits.scale, name)
  switch (type) {
    case 'string':
      return (value) => textCell(value, name)
    case 'json':
      return (value) => textCell(jsonCell(value as object, name), name)
    case 'integer':
      return (value) => Number(integerCell(value, 32, name))
    case 'long':
      return (value) => integerCell(value, 64, name)
    case 'double':
      return (value) => (typeof value === 'number' ? value : refused(value, type, name))
    case 'boolean':
      return (value) => (typeof value === 'boolean' ? value : refused(value, type, name))
    case 'binary':
      return (value) => (value instanceof Uint8Array ? value : refused(value, type, name))
    case 'date':
      return (value) => dateCell(value, name)
    default:
      return (value) => timestampCell(value, name)
  }
}

function refused(value: unknown, type: string, name: string): never {
  throw cellRefused(name, `${shown(value)} is no ${type}`)
}

function shown(value: unknown): string {
  if (value instanceof Date) return 'a Date'
  if (value instanceof Uint8Array) return 'a Uint8Array'
  return typeof value === 'object' ? 'an object' : JSON.stringify(String(value).slice(0, 50))
}

function textCell(value: unknown, name: string): string {
  if (typeof value !== 'string') return refused(value, 'string', name)
  if (value.isWellFormed()) return value
  throw cellRefused(name, 'the text has a surrogate without its partner')
}

function integerCell(value: unknown, bits: number, name: string): bigint {
  const whole = wholeOf(value)
  if (whole === null) return refused(value, `integer of ${bits} bits`, name)
  if (BigInt.asIntN(bits, whole) !== whole) throw cellRefused(name, `${whole} does not fit ${bits} bits`)
  return whole
}

/** A bigint, digits, or a number that stands for one integer only. */
function wholeOf(value: unknown): bigint | null {
  if (typeof value === 'bigint') return value
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : null
  return typeof value === 'string' && /^-?\d{1,40}$/.test(value) ? BigInt(value) : null
}

function decimalCell(value: unknown, precision: number, scale: number, name: string): bigint {
  const text = typeof value === 'string' ? value : wholeOf(value)?.toString()
  const [, sign, whole = '', part = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text ?? '') ?? []
  if (sign === undefined) return refused(value, `decimal(${precision},${scale}); give text such as "12.50"`, name)
  const kept = part.replace(/0+$/, '')
  if (kept.length > scale) throw cellRefused(name, `${text} has more than ${scale} digits after the point`)
  const digits = BigInt(whole + kept.padEnd(scale, '0'))
  if (digits >= 10n ** BigInt(precision)) throw cellRefused(name, `${text} has more than ${precision} digits`)
  return sign === '-' ? -digits : digits
}

const dayMs = 86_400_000

function dateCell(value: unknown, name: string): number {
  const atMs = value instanceof Date ? value.getTime() : typeof value === 'string' ? dayOf(value) : Number.NaN
  if (Number.isNaN(atMs)) return refused(value, 'date', name)
  if (atMs % dayMs !== 0) throw cellRefused(name, 'the Date is not at midnight UTC')
  return atMs / dayMs
}

/** A day that exists: 30 February does not roll over. */
function dayOf(text: string): number {
  const atMs = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(atMs) || new Date(atMs).toISOString().slice(0, 10) !== text ? Number.NaN : atMs
}

const momentForm = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.(\d{1,6})0*)?(Z|[+-]\d\d:\d\d)$/

function timestampCell(value: unknown, name: string): bigint {
  if (typeof value === 'bigint') return integerCell(value, 64, name)
  if (typeof value === 'string') return momentOf(value) ?? refused(value, 'timestamp', name)
  const atMs = value instanceof Date ? value.getTime() : value
  if (typeof atMs !== 'number' || !Number.isSafeInteger(atMs)) return refused(value, 'timestamp', name)
  return BigInt(atMs) * 1000n
}

function momentOf(text: string): bigint | null {
  const [, day, time, part = '', zone] = momentForm.exec(text) ?? []
  if (day === undefined || Number.isNaN(dayOf(day))) return null
  const atMs = Date.parse(`${day}T${time}${zone}`)
  return Number.isNaN(atMs) ? null : BigInt(atMs) * 1000n + BigInt(part.padEnd(6, '0'))
}
