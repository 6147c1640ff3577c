/**
 * Refused rows in PostgreSQL: recorded in the transaction of the marker, read by the next plan, then forgotten.
 *
 * A row and its reason are one JSON text, so that the table keeps its form whatever is recorded.
 */
import type { RefusedRow } from '../../model/manifest.ts'
import type { LaneKey, TableSession } from '../shared/table-session.ts'
import type { PgResult } from './driver.ts'
import { quotedTable } from './text.ts'

type Query = (text: string, values?: readonly unknown[]) => Promise<PgResult>
type Refusals = Pick<TableSession, 'recordRefused' | 'readRefused' | 'forgetRefused'>

const place = 'stage = $1 AND pipeline = $2 AND sink = $3 AND lane = $4'
const keyValues = ({ stage, pipeline, sink, lane }: LaneKey) => [stage, pipeline, sink, lane]

/** The part of a session that is about the table of refused rows. */
export function refusals(query: Query, name: string): Refusals {
  const table = quotedTable(name)
  return {
    async recordRefused(key, rows) {
      await query(
        `INSERT INTO ${table} SELECT $1, $2, $3, $4, r->>'id', (r->>'epoch')::bigint, (r->>'row')::bigint, r::text
         FROM json_array_elements($5::json) r`,
        [...keyValues(key), JSON.stringify(rows)],
      )
    },
    async readRefused(key, rowsMax) {
      const known = await query('SELECT to_regclass($1) IS NOT NULL AS there', [table])
      if (known.rows[0]?.there !== true) return []
      const order = `ORDER BY epoch, row_index, id LIMIT ${rowsMax}`
      const { rows } = await query(`SELECT refused FROM ${table} WHERE ${place} ${order}`, keyValues(key))
      return rows.map(({ refused }) => JSON.parse(String(refused)) as RefusedRow)
    },
    async forgetRefused(key, ids) {
      await query(`DELETE FROM ${table} WHERE ${place} AND id = ANY($5)`, [...keyValues(key), ids])
    },
  }
}
