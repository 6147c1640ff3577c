/**
 * Which columns a constraint is about, from the message of a refusal and, by its name, from the information schema.
 *
 * Of CHECK and UNIQUE the server tells the name alone, in a message; a foreign key's message has its columns. Sources:
 * MariaDB and MySQL documentation of INFORMATION_SCHEMA.CHECK_CONSTRAINTS (MySQL's has no TABLE_NAME, its names are
 * unique in a schema) and STATISTICS. In a clause the server writes each identifier in backticks.
 */
import type { Send } from './table.ts'

/** Columns of the constraint that the message names, joined; null where it names none. Errors are as they come. */
export async function constraintColumns(send: Send, message: string, table: string): Promise<string | null> {
  const referring = /FOREIGN KEY \(([^)]+)\) REFERENCES [^(]+\(([^)]+)\)/.exec(message)
  if (referring !== null) {
    const columns = message.includes('parent row') ? referring[2] : referring[1]
    return columns!.replaceAll('`', '')
  }
  const key = /for key '(.+)'$/.exec(message)?.[1]
  if (key !== undefined) return joined(await indexColumns(send, key, table))
  const check =
    /^CONSTRAINT `(.+)` failed/.exec(message)?.[1] ?? /^Check constraint '(.+)' is violated/.exec(message)?.[1]
  return check === undefined ? null : joined(await checkColumns(send, check, table))
}

/** MySQL says `table.index`, MariaDB the index. */
async function indexColumns(send: Send, key: string, table: string): Promise<string[]> {
  const { where, values } = placeOf(table)
  const short = key.slice(key.indexOf('.') + 1)
  const rows = await send(
    `SELECT COLUMN_NAME AS col FROM information_schema.STATISTICS
     WHERE ${where('TABLE_SCHEMA')} AND TABLE_NAME = ? AND INDEX_NAME IN (?, ?) AND COLUMN_NAME IS NOT NULL
     ORDER BY SEQ_IN_INDEX`,
    [...values, key, short],
  )
  return rows.map(({ col }) => String(col))
}

/** MariaDB calls the check of one column `table.column`, though its name is the column's. */
async function checkColumns(send: Send, check: string, table: string): Promise<string[]> {
  const { where, values, name } = placeOf(table)
  const short = check.startsWith(`${name}.`) ? check.slice(name.length + 1) : check
  const clauses = await send(
    `SELECT * FROM information_schema.CHECK_CONSTRAINTS
     WHERE ${where('CONSTRAINT_SCHEMA')} AND CONSTRAINT_NAME IN (?, ?)`,
    [...values.slice(0, -1), check, short],
  )
  const ours = clauses.filter(({ TABLE_NAME }) => TABLE_NAME === undefined || TABLE_NAME === name)
  const named = new Set(ours.flatMap(({ CHECK_CLAUSE }) => String(CHECK_CLAUSE).match(/`[^`]+`/g) ?? []))
  const columns = await send(
    `SELECT COLUMN_NAME AS col FROM information_schema.COLUMNS
     WHERE ${where('TABLE_SCHEMA')} AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION`,
    values,
  )
  return columns.map(({ col }) => String(col)).filter((col) => named.has(`\`${col}\``))
}

function placeOf(table: string) {
  const values = table.split('.')
  const where = (column: string) => `${column} = ${values.length > 1 ? '?' : 'DATABASE()'}`
  return { where, values, name: values.at(-1)! }
}

function joined(columns: readonly string[]): string | null {
  return columns.length === 0 ? null : columns.join(', ')
}
