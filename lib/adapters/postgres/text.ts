/**
 * Values and names in PostgreSQL's language: cells in the text format of COPY, identifiers in quotes.
 *
 * Source: PostgreSQL documentation, COPY, "Text Format": `\N` is NULL; backslash, tab, newline and carriage return
 * are escaped. Cells are in the text form that every type reads: timestamps in ISO 8601 with their zone, bytes in
 * hex, so no setting of a session changes what they mean.
 */
import { cellRefused, dateText, jsonCell, type SqlValue } from '../shared/table-rows.ts'

const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' }
const unescapes: Readonly<Record<string, string>> = { '\\': '\\', t: '\t', n: '\n', r: '\r' }
const special = /[\\\t\n\r]/
const specials = /[\\\t\n\r]/g

/** A value as a cell of COPY. Throws `ENCODE_FAILED`. */
export function cellText(value: Exclude<SqlValue, undefined>, column: string): string {
  switch (typeof value) {
    case 'string':
      return escaped(value, column)
    case 'number':
      return Object.is(value, -0) ? '-0' : String(value)
    case 'bigint':
      return String(value)
    case 'boolean':
      return value ? 't' : 'f'
    case 'object':
      if (value === null) return '\\N'
      if (value instanceof Date) return dateText(value, column)
      if (value instanceof Uint8Array)
        return `\\\\x${Buffer.from(value.buffer, value.byteOffset, value.length).toString('hex')}`
      return escaped(jsonCell(value, column), column)
    default:
      throw cellRefused(column, `a ${typeof value} has no form in SQL`)
  }
}

function escaped(text: string, column: string): string {
  if (text.includes('\0')) throw cellRefused(column, 'PostgreSQL holds no text with the character NUL')
  if (!text.isWellFormed()) throw cellRefused(column, 'the text has a surrogate without its partner')
  return special.test(text) ? text.replace(specials, (character) => escapes[character]!) : text
}

/** The text of a cell, or null. */
export function cellValue(cell: string): string | null {
  if (cell === '\\N') return null
  return cell.includes('\\')
    ? cell.replace(/\\(.)/g, (_, character: string) => unescapes[character] ?? character)
    : cell
}

/** An identifier in quotes. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** A table with or without its schema, each part in quotes. */
export function quotedTable(table: string): string {
  return table.split('.').map(quoted).join('.')
}

/** A list of columns in quotes, each after `prefix`. */
export function quotedColumns(columns: readonly string[], prefix = ''): string {
  return columns.map((name) => prefix + quoted(name)).join(', ')
}
