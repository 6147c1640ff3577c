/**
 * Writing one block of rows within a transaction.
 *
 * `insert` is one COPY into the table. `upsert` is one COPY into a temporary table and a merge: of the rows of one
 * key the last one wins, as if they had been written one by one; equality is the database's own. Keys are merged
 * in their order, so that lanes and other writers that do the same do not deadlock. `sql` runs the user's statement
 * once a row.
 */
import type { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import type { RowBlock } from '../shared/row-blocks.ts'
import type { TableForm } from '../shared/table-rows.ts'
import type { PgClient } from './driver.ts'
import { cellValue, quoted, quotedColumns, quotedTable } from './text.ts'

/** What a block is written with. */
export interface BlockTarget {
  readonly client: PgClient
  readonly copyFrom: (statement: string) => Writable
  /** Temporary tables of this transaction by their columns. */
  readonly merging: Map<string, string>
}

/** Writes a block as its form says. */
export async function writeBlock(target: BlockTarget, form: TableForm, block: RowBlock): Promise<void> {
  if (form.mode === 'insert') return copy(target, quotedTable(form.table), block.columns, block.lines)
  if (form.mode === 'upsert') return merge(target, form, block)
  for (const line of block.lines.toString('utf8', 0, block.lines.length - 1).split('\n')) {
    await target.client.query(form.sql ?? '', line === '' ? [] : line.split('\t').map(cellValue))
  }
}

async function copy(
  { client, copyFrom }: BlockTarget,
  table: string,
  columns: readonly string[],
  lines: Buffer,
): Promise<void> {
  const stream = client.query(copyFrom(`COPY ${table} (${quotedColumns(columns)}) FROM STDIN`))
  // A refusal in the middle of a block leaves the stream unfinished, which it says once more.
  stream.on('error', () => undefined)
  stream.end(lines)
  await finished(stream)
}

async function merge(target: BlockTarget, form: TableForm, block: RowBlock): Promise<void> {
  const { client } = target
  const { key } = form
  const { columns, lines } = block
  const table = quotedTable(form.table)
  const staged = await mergingTable(target, table, columns)
  await copy(target, staged, ['pawl_deleted', ...columns], lines)
  const keys = quotedColumns(key)
  const same = key.map((name) => `t.${quoted(name)} = d.${quoted(name)}`).join(' AND ')
  const others = columns.filter((name) => !key.includes(name))
  const updates = others.map((name) => `${quoted(name)} = excluded.${quoted(name)}`).join(', ')
  const action = others.length === 0 ? 'NOTHING' : `UPDATE SET ${updates}`
  if (hasDeletes(lines)) await client.query(`DELETE FROM ${table} t USING ${staged} d WHERE d.pawl_deleted AND ${same}`)
  await client.query(
    `INSERT INTO ${table} (${quotedColumns(columns)})
     SELECT ${quotedColumns(columns)} FROM
       (SELECT DISTINCT ON (${keys}) * FROM ${staged} ORDER BY ${keys}, pawl_row DESC) last
     WHERE NOT pawl_deleted
     ON CONFLICT (${keys}) DO ${action}; TRUNCATE ${staged}`,
  )
}

/** A temporary table with the types of the columns and none of their constraints. */
async function mergingTable({ client, merging }: BlockTarget, table: string, columns: readonly string[]) {
  const id = JSON.stringify([table, columns])
  const known = merging.get(id)
  if (known !== undefined) return known
  const name = `pawl_rows_${merging.size}`
  await client.query(
    `CREATE TEMP TABLE ${name} ON COMMIT DROP AS SELECT ${quotedColumns(columns)} FROM ${table} WITH NO DATA;
     ALTER TABLE ${name} ADD COLUMN pawl_row bigserial, ADD COLUMN pawl_deleted boolean`,
  )
  merging.set(id, name)
  return name
}

/** Lines begin with `t` for a row that is deleted. */
function hasDeletes(lines: Buffer): boolean {
  return lines[0] === 0x74 || lines.includes('\nt\t')
}
