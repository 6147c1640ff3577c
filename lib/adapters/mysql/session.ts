/**
 * One connection to MySQL or MariaDB as the table sink uses it.
 *
 * A session is strict (nothing is cut off or rounded into range without a word), speaks UTC and utf8mb4, and waits
 * for locks as long as it is told. A lost answer to COMMIT is told apart from everything before it.
 */
import { PawlError } from '../../model/errors.ts'
import type { Marker } from '../../model/manifest.ts'
import type { LaneKey, TableSession } from '../shared/table-session.ts'
import { constraintColumns } from './constraints.ts'
import type { MySqlAnswer, MySqlConnection } from './driver.ts'
import { isServerError, translated } from './errors.ts'
import { markerTableSql, refusedTableSql } from './markers.ts'
import { refusals } from './refused.ts'
import { checkTable, type Send } from './table.ts'
import { quotedTable } from './text.ts'
import { writeBlock } from './write.ts'

/** How a session behaves. */
export interface MySqlSessionOptions {
  readonly sink: string
  readonly markerTable: string
  readonly refusedTable: string
  readonly lockTimeoutMs: number
  readonly statementTimeoutMs: number
}

const sqlMode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_VALUE_ON_ZERO'
const noSuchTable = 1146
const lanePlace = 'stage = ? AND pipeline = ? AND sink = ? AND lane = ?'

/** Settings of a new connection. */
export async function prepareConnection(
  connection: MySqlConnection,
  { lockTimeoutMs, connectTimeoutMs }: { readonly lockTimeoutMs: number; readonly connectTimeoutMs: number },
): Promise<void> {
  const seconds = Math.max(1, Math.ceil(lockTimeoutMs / 1000))
  await connection.query({
    sql: `SET SESSION sql_mode = '${sqlMode}', time_zone = '+00:00', autocommit = 1,
      innodb_lock_wait_timeout = ${seconds}, lock_wait_timeout = ${seconds}`,
    timeout: connectTimeoutMs,
  })
}

/** A session on a connection that is prepared. */
export function mySqlSession(connection: MySqlConnection, options: MySqlSessionOptions): TableSession {
  const { sink, statementTimeoutMs: timeout } = options
  const markers = quotedTable(options.markerTable)
  const checked = new Set<string>()
  let alive = true
  const died = () => {
    alive = false
  }
  connection.connection.on('error', died)
  connection.connection.on('end', died)
  // The vendor leaves what waits for an answer waiting when a connection is destroyed.
  let abandon: (reason: Error) => void = () => undefined
  const send: Send = (sql, values) =>
    new Promise((resolve, reject) => {
      abandon = reject
      connection.query({ sql, values, timeout }).then(([answer]) => resolve(answer), reject)
    })
  const query = async (sql: string, values?: readonly unknown[]): Promise<MySqlAnswer> => {
    try {
      return await send(sql, values)
    } catch (error) {
      throw translated(error, sink)
    }
  }
  const markerOf = async (lane: LaneKey, suffix: string): Promise<Marker | null> => {
    const sql = `SELECT incarnation, CAST(epoch AS CHAR) AS epoch, hash FROM ${markers} WHERE ${lanePlace}${suffix}`
    try {
      const [row] = await send(sql, keyValues(lane))
      if (row === undefined) return null
      return { incarnation: String(row.incarnation), epoch: Number(row.epoch), hash: String(row.hash) }
    } catch (error) {
      if ((error as { errno?: unknown }).errno === noSuchTable) return null
      throw translated(error, sink)
    }
  }
  const createMarkerTable = async () => {
    if (!(await tableExists(query, options.markerTable))) await query(markerTableSql(options.markerTable))
  }
  const refusedTableExists = () => tableExists(query, options.refusedTable)
  return {
    get alive() {
      return alive
    },
    async begin() {
      checked.clear()
      await query('START TRANSACTION READ WRITE')
    },
    lockMarker: (lane) => markerOf(lane, ' FOR UPDATE'),
    readMarker: (lane) => markerOf(lane, ''),
    async createMarker(lane, marker) {
      await createMarkerTable()
      const { incarnation, epoch, hash } = marker
      const values = [...keyValues(lane), incarnation, epoch, hash]
      await query(`INSERT INTO ${markers} VALUES (?, ?, ?, ?, ?, ?, ?) ON DUPLICATE KEY UPDATE lane = lane`, values)
    },
    async moveMarker(lane, { incarnation, epoch, hash }) {
      await query(`UPDATE ${markers} SET incarnation = ?, epoch = ?, hash = ? WHERE ${lanePlace}`, [
        incarnation,
        epoch,
        hash,
        ...keyValues(lane),
      ])
    },
    async removeMarker(lane) {
      await query(`DELETE FROM ${markers} WHERE ${lanePlace}`, keyValues(lane))
    },
    createMarkerTable,
    async createRefusedTable() {
      if (!(await refusedTableExists())) await query(refusedTableSql(options.refusedTable))
    },
    ...refusals(query, options.refusedTable, refusedTableExists),
    async write(form, block) {
      const id = JSON.stringify(form)
      try {
        if (!checked.has(id)) await checkTable(send, form)
      } catch (error) {
        throw translated(error, sink)
      }
      checked.add(id)
      await query('SAVEPOINT pawl')
      try {
        await writeBlock(query, form, block)
      } catch (error) {
        if (alive && translated(error, sink).kind === 'Invalid') await query('ROLLBACK TO SAVEPOINT pawl')
        throw error
      }
      await query('RELEASE SAVEPOINT pawl')
    },
    async refusal(form, block) {
      await query('SAVEPOINT pawl')
      try {
        await writeBlock(query, form, block)
        return null
      } catch (error) {
        const ours = translated(error, sink)
        if (ours.kind !== 'Invalid') throw ours
        return ours
      } finally {
        await query('ROLLBACK TO SAVEPOINT pawl')
      }
    },
    columnsOf: (form, { details }) => constraintColumns(query, String(details.reason), form.table),
    commit: () => commit(send, sink),
    async rollback() {
      await query('ROLLBACK')
    },
    end: () => connection.end().catch(() => undefined),
    destroy() {
      alive = false
      connection.destroy()
      abandon(new Error('the connection was cut'))
    },
  }
}

function keyValues({ stage, pipeline, sink, lane }: LaneKey): readonly unknown[] {
  return [stage, pipeline, sink, lane]
}

async function commit(send: Send, sink: string): Promise<void> {
  try {
    await send('COMMIT')
  } catch (error) {
    // A deadlock rolled back for certain; a shutdown or silence may have come after the commit.
    if (isServerError(error) && error.errno === 1213) throw translated(error, sink)
    const { cause } = translated(error, sink)
    throw new PawlError('UNKNOWN_RESULT', `COMMIT in MySQL of sink ${sink}`, { sink }, cause)
  }
}

/** Asks first, since making needs rights even where the table is there. */
async function tableExists(query: Send, table: string) {
  const parts = table.split('.')
  const schema = parts.length > 1 ? '?' : 'DATABASE()'
  const found = await query(
    `SELECT 1 AS there FROM information_schema.TABLES WHERE TABLE_SCHEMA = ${schema} AND TABLE_NAME = ?`,
    parts,
  )
  return found.length > 0
}
