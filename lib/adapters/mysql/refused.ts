/**
 * Refused rows in MySQL: recorded in the transaction of the marker, read by the next plan, then forgotten.
 *
 * A row and its reason are one JSON text, so that the table keeps its form whatever is recorded. Each is a statement
 * of its own: a row may come near the largest packet.
 */
import type { RefusedRow } from '../../model/manifest.ts'
import type { LaneKey, TableSession } from '../shared/table-session.ts'
import type { Send } from './table.ts'
import { quotedTable } from './text.ts'

type Refusals = Pick<TableSession, 'recordRefused' | 'readRefused' | 'forgetRefused'>

const place = 'stage = ? AND pipeline = ? AND sink = ? AND lane = ?'
const keyValues = ({ stage, pipeline, sink, lane }: LaneKey) => [stage, pipeline, sink, lane]

/** The part of a session that is about the table of refused rows. `exists` tells whether it is there. */
export function refusals(query: Send, name: string, exists: () => Promise<boolean>): Refusals {
  const table = quotedTable(name)
  return {
    async recordRefused(key, rows) {
      for (const row of rows) {
        const values = [...keyValues(key), row.id, row.epoch, row.row, JSON.stringify(row)]
        await query(`INSERT INTO ${table} VALUES (?, ?, ?, ?, ?, ?, ?, ?)`, values)
      }
    },
    async readRefused(key, rowsMax) {
      if (!(await exists())) return []
      const order = `ORDER BY epoch, row_index, id LIMIT ${rowsMax}`
      const rows = await query(`SELECT refused FROM ${table} WHERE ${place} ${order}`, keyValues(key))
      return rows.map(({ refused }) => JSON.parse(String(refused)) as RefusedRow)
    },
    async forgetRefused(key, ids) {
      if (ids.length === 0) return
      const marks = ids.map(() => '?').join(', ')
      await query(`DELETE FROM ${table} WHERE ${place} AND id IN (${marks})`, [...keyValues(key), ...ids])
    },
  }
}
