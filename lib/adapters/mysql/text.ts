/**
 * Values and names in MySQL's language: cells are literals, identifiers stand in backquotes.
 *
 * Source: MySQL 8.4 Reference Manual, "String Literals": backslash escapes, which hold because a session of ours
 * has no NO_BACKSLASH_ESCAPES and speaks utf8mb4. A tab or newline never stands raw in a literal, so that cells can
 * be cut apart. Timestamps are in UTC, the time zone of the session.
 */
import { PawlError } from '../../model/errors.ts'
import { cellRefused, dateText, jsonCell, type SqlValue } from '../shared/table-rows.ts'

const escapes: Readonly<Record<string, string>> = {
  "'": "\\'",
  '\\': '\\\\',
  '\0': '\\0',
  '\t': '\\t',
  '\n': '\\n',
  '\r': '\\r',
  '\x1a': '\\Z',
}
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what has to be escaped
const special = /['\\\0\t\n\r\x1a]/
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what has to be escaped
const specials = /['\\\0\t\n\r\x1a]/g

/** A value as a literal. Throws `ENCODE_FAILED`. */
export function cellText(value: Exclude<SqlValue, undefined>, column: string): string {
  switch (typeof value) {
    case 'string':
      return literal(value, column)
    case 'number':
      if (!Number.isFinite(value)) throw cellRefused(column, `MySQL has no number ${value}`)
      return Object.is(value, -0) ? '-0e0' : String(value)
    case 'bigint':
      return String(value)
    case 'boolean':
      return value ? '1' : '0'
    case 'object':
      if (value === null) return 'NULL'
      if (value instanceof Date) return `'${dateText(value, column).slice(0, 23).replace('T', ' ')}'`
      if (value instanceof Uint8Array)
        return `x'${Buffer.from(value.buffer, value.byteOffset, value.length).toString('hex')}'`
      return literal(jsonCell(value, column), column)
    default:
      throw cellRefused(column, `a ${typeof value} has no form in SQL`)
  }
}

function literal(text: string, column: string): string {
  if (!text.isWellFormed()) throw cellRefused(column, 'the text has a surrogate without its partner')
  return special.test(text) ? `'${text.replace(specials, (character) => escapes[character]!)}'` : `'${text}'`
}

/** An identifier in backquotes. */
export function quoted(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``
}

/** A table with or without its database, each part in backquotes. */
export function quotedTable(table: string): string {
  return table.split('.').map(quoted).join('.')
}

/** A list of columns in backquotes. */
export function quotedColumns(columns: readonly string[]): string {
  return columns.map(quoted).join(', ')
}

/** What may hold a `?` that is no parameter: strings, identifiers, comments. */
const opaque = /'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`[^`]*`|\/\*[\s\S]*?\*\/|--[ \t][^\n]*|#[^\n]*/g

/** A statement cut at its parameters. */
export function cutAtParameters(sql: string): readonly string[] {
  const pieces: string[] = []
  let start = 0
  const hidden = [...sql.matchAll(opaque)].map((match) => [match.index, match.index + match[0].length] as const)
  for (let at = sql.indexOf('?'); at >= 0; at = sql.indexOf('?', at + 1)) {
    if (hidden.some(([from, to]) => at >= from && at < to)) continue
    pieces.push(sql.slice(start, at))
    start = at + 1
  }
  return [...pieces, sql.slice(start)]
}

/** A statement with literals in place of its parameters. Throws `SINK_SCHEMA_INVALID` when their number differs. */
export function filledIn(pieces: readonly string[], cells: readonly string[]): string {
  if (cells.length === pieces.length - 1) return pieces.map((piece, i) => piece + (cells[i] ?? '')).join('')
  const reason = `the statement has ${pieces.length - 1} parameters, the row ${cells.length}`
  throw new PawlError('SINK_SCHEMA_INVALID', reason, { reason })
}
