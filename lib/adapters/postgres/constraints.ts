/**
 * Which columns a constraint is about, asked of PostgreSQL's catalogue once a row was refused.
 *
 * Of CHECK, UNIQUE and FOREIGN KEY the server tells the constraint alone. Sources: PostgreSQL documentation, "Error
 * and Notice Message Fields", and the catalogues pg_constraint and pg_depend, which has the columns of a unique index
 * that is no constraint. A row that others still refer to has no such column of its own: then it is the one referred to.
 */
import { PawlError } from '../../model/errors.ts'
import type { PgClient, PgServerError } from './driver.ts'
import { translated } from './errors.ts'
import { quoted, quotedTable } from './text.ts'

const rowKeyCharsMax = 200

const columnsSql = `
  WITH breached AS (
    SELECT c.*, c.contype = 'f' AND c.confrelid = to_regclass($3) AND c.conrelid <> c.confrelid AS referred
    FROM pg_constraint c WHERE c.conrelid = to_regclass($2) AND c.conname = $1
  ), named AS (
    SELECT conrelid AS rel, unnest(conkey) AS num FROM breached WHERE NOT referred
    UNION SELECT confrelid, unnest(confkey) FROM breached WHERE referred
    UNION SELECT d.refobjid, d.refobjsubid FROM pg_depend d JOIN pg_index i ON i.indexrelid = d.objid
      JOIN pg_class x ON x.oid = i.indexrelid
      WHERE d.classid = 'pg_class'::regclass AND d.refobjid = i.indrelid AND d.refobjsubid > 0
        AND i.indrelid = to_regclass($2) AND x.relname = $1
  )
  SELECT string_agg(a.attname, ', ' ORDER BY a.attnum) AS columns
  FROM named JOIN pg_attribute a ON a.attrelid = named.rel AND a.attnum = named.num`

/** Columns of the constraint that the error names, joined; null where it names none. Errors are as they come. */
export async function constraintColumns(client: PgClient, error: PgServerError, table: string): Promise<string | null> {
  const { constraint, schema, table: breached } = error
  if (constraint === undefined || schema === undefined || breached === undefined) return null
  const relation = `${quoted(schema)}.${quoted(breached)}`
  const { rows } = await client.query(columnsSql, [constraint, relation, quotedTable(table)])
  return (rows[0]?.columns as string | null | undefined) ?? null
}

/**
 * What a COMMIT was refused for: a constraint that is checked only then. Which row it was is not told any more, but the
 * error's detail has the values of the key that is at fault, `(v)=(7)`.
 */
export async function refusedCommit(client: PgClient, error: PgServerError, sink: string): Promise<PawlError> {
  const refused = translated(error, sink)
  const { schema, table, detail } = error
  if (refused.code !== 'ROWS_REFUSED' || schema === undefined || table === undefined) return refused
  const column = await constraintColumns(client, error, `${schema}.${table}`).catch(() => null)
  const rowKey = /\([^)]*\)=\(.*\)/.exec(detail ?? '')?.[0].slice(0, rowKeyCharsMax) ?? null
  const row = rowKey === null ? '' : `, row with ${rowKey}`
  const fault = `PostgreSQL of sink ${sink}, at COMMIT${row}${column === null ? '' : `, column ${column}`}: ${error.message}`
  return new PawlError(refused.code, fault, { ...refused.details, rowKey, column }, error)
}
