/**
 * What must hold of a table before rows are written to it: things that MySQL would not complain of itself.
 *
 * An engine without transactions (MyISAM, Aria) would keep half an epoch. An upsert into a table without a unique
 * index on its key would append; with another unique index it would overwrite the row of another key.
 */
import { PawlError } from '../../model/errors.ts'
import type { TableForm } from '../shared/table-rows.ts'
import type { MySqlAnswer } from './driver.ts'

const engines = new Set(['innodb', 'rocksdb', 'ndbcluster', 'xtradb'])

/** Sends one statement; errors are as they come. */
export type Send = (sql: string, values?: readonly unknown[]) => Promise<MySqlAnswer>

/** Throws `SINK_SCHEMA_INVALID` when the table is missing or does not fit its mode. */
export async function checkTable(send: Send, form: TableForm): Promise<void> {
  if (form.mode === 'sql') return
  const parts = form.table.split('.')
  const where = `TABLE_SCHEMA = ${parts.length > 1 ? '?' : 'DATABASE()'} AND TABLE_NAME = ?`
  const refuse = (reason: string): never => {
    throw new PawlError('SINK_SCHEMA_INVALID', reason, { reason })
  }
  const tables = await send(`SELECT ENGINE AS engine FROM information_schema.TABLES WHERE ${where}`, parts)
  if (tables.length === 0) refuse(`there is no table ${form.table}`)
  const engine = tables[0]?.engine
  if (typeof engine === 'string' && !engines.has(engine.toLowerCase()))
    refuse(`the engine ${engine} of table ${form.table} has no transactions`)
  if (form.mode === 'insert') return
  const indexes = await send(
    `SELECT INDEX_NAME AS name, COLUMN_NAME AS col FROM information_schema.STATISTICS WHERE ${where} AND NON_UNIQUE = 0`,
    parts,
  )
  const byName = new Map<string, string[]>()
  for (const { name, col } of indexes) byName.set(String(name), [...(byName.get(String(name)) ?? []), String(col)])
  const wanted = [...form.key].sort().join(', ')
  const isKey = ([, columns]: [string, string[]]) => [...columns].sort().join(', ') === wanted
  const other = [...byName].find((index) => !isKey(index))
  if (byName.size === 0 || ![...byName].some(isKey)) refuse(`table ${form.table} has no unique index on (${wanted})`)
  if (other !== undefined)
    refuse(`unique index ${other[0]} of table ${form.table} would let a row overwrite that of another key`)
}
