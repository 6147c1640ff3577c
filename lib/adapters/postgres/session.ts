/**
 * One connection to PostgreSQL as the table sink uses it.
 *
 * Every wait is bounded by the server (`lock_timeout`, `statement_timeout`, set for the transaction alone, so that
 * poolers of connections may lie between). A lost answer to COMMIT is told apart from everything before it.
 */
import { PawlError } from '../../model/errors.ts'
import type { Marker } from '../../model/manifest.ts'
import type { RowBlock } from '../shared/row-blocks.ts'
import type { TableForm } from '../shared/table-rows.ts'
import type { LaneKey, TableSession } from '../shared/table-session.ts'
import { constraintColumns, refusedCommit } from './constraints.ts'
import type { PgClient, PgResult } from './driver.ts'
import { isServerError, translated } from './errors.ts'
import { markerTableSql, refusedTableSql } from './markers.ts'
import { refusals } from './refused.ts'
import { quotedTable } from './text.ts'
import { type BlockTarget, writeBlock } from './write.ts'

/** How a session behaves. */
export interface PgSessionOptions {
  readonly sink: string
  readonly markerTable: string
  readonly refusedTable: string
  readonly lockTimeoutMs: number
  readonly statementTimeoutMs: number
}

/** A session on a client that is connected. */
export function pgSession(
  client: PgClient,
  copyFrom: BlockTarget['copyFrom'],
  options: PgSessionOptions,
): TableSession {
  const { sink, lockTimeoutMs, statementTimeoutMs } = options
  const markers = quotedTable(options.markerTable)
  const target: BlockTarget = { client, copyFrom, merging: new Map() }
  let alive = true
  const died = () => {
    alive = false
  }
  client.on('error', died).on('end', died)
  const asOurs = async <T>(act: () => Promise<T>): Promise<T> => {
    try {
      return await act()
    } catch (error) {
      throw translated(error, sink)
    }
  }
  const query = (text: string, values?: readonly unknown[]) => asOurs(() => client.query(text, values))
  const markerOf = async (lane: LaneKey, suffix: string): Promise<Marker | null> => {
    const text = `SELECT incarnation, epoch::text AS epoch, hash FROM ${markers}
      WHERE stage = $1 AND pipeline = $2 AND sink = $3 AND lane = $4${suffix}`
    try {
      return markerIn(await client.query(text, keyValues(lane)))
    } catch (error) {
      if (isServerError(error) && error.code === undefinedTable) return null
      throw translated(error, sink)
    }
  }
  // Temporary tables that were made before the savepoint outlive it.
  let kept: readonly (readonly [string, string])[] = []
  const savepoint = async () => {
    kept = [...target.merging]
    await query('SAVEPOINT pawl')
  }
  const undo = async () => {
    target.merging.clear()
    for (const [columns, table] of kept) target.merging.set(columns, table)
    await query('ROLLBACK TO SAVEPOINT pawl')
  }
  const session: TableSession = {
    get alive() {
      return alive
    },
    async begin() {
      target.merging.clear()
      await query(`BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
        SET LOCAL lock_timeout = ${lockTimeoutMs}; SET LOCAL statement_timeout = ${statementTimeoutMs}`)
    },
    lockMarker: (lane) => markerOf(lane, ' FOR UPDATE'),
    readMarker: (lane) => markerOf(lane, ''),
    async createMarker(lane, marker) {
      await session.createMarkerTable()
      await session.begin()
      await query(`INSERT INTO ${markers} VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`, [
        ...keyValues(lane),
        ...markerValues(marker),
      ])
      await session.commit()
    },
    async moveMarker(lane, marker) {
      await query(
        `UPDATE ${markers} SET incarnation = $5, epoch = $6, hash = $7
         WHERE stage = $1 AND pipeline = $2 AND sink = $3 AND lane = $4`,
        [...keyValues(lane), ...markerValues(marker)],
      )
    },
    async removeMarker(lane) {
      const place = 'stage = $1 AND pipeline = $2 AND sink = $3 AND lane = $4'
      await query(`DELETE FROM ${markers} WHERE ${place}`, keyValues(lane))
    },
    createMarkerTable: () => makeTable(session, query, options.markerTable, markerTableSql(options.markerTable)),
    createRefusedTable: () => makeTable(session, query, options.refusedTable, refusedTableSql(options.refusedTable)),
    ...refusals(query, options.refusedTable),
    async write(form: TableForm, block: RowBlock) {
      await savepoint()
      try {
        await writeBlock(target, form, block)
      } catch (error) {
        if (isServerError(error) && error.severity === 'ERROR') await undo()
        throw translated(error, sink)
      }
      await query('RELEASE SAVEPOINT pawl')
    },
    async refusal(form: TableForm, block: RowBlock) {
      await savepoint()
      try {
        await writeBlock(target, form, block)
        return null
      } catch (error) {
        const ours = translated(error, sink)
        if (ours.kind !== 'Invalid') throw ours
        return ours
      } finally {
        await undo()
      }
    },
    async columnsOf(form, { cause }) {
      return isServerError(cause) ? asOurs(() => constraintColumns(client, cause, form.table)) : null
    },
    commit: () => commit(client, sink),
    async rollback() {
      await query('ROLLBACK')
    },
    end: () => client.end().catch(() => undefined),
    destroy() {
      alive = false
      client.connection.stream.destroy()
    },
  }
  return session
}

const undefinedTable = '42P01'

function keyValues({ stage, pipeline, sink, lane }: LaneKey): readonly unknown[] {
  return [stage, pipeline, sink, lane]
}

function markerValues({ incarnation, epoch, hash }: Marker): readonly unknown[] {
  return [incarnation, epoch, hash]
}

function markerIn({ rows: [row] }: PgResult): Marker | null {
  if (row === undefined) return null
  return { incarnation: String(row.incarnation), epoch: Number(row.epoch), hash: String(row.hash) }
}

async function commit(client: PgClient, sink: string): Promise<void> {
  let answer: PgResult
  try {
    answer = await client.query('COMMIT')
  } catch (error) {
    // A plain ERROR rolled back (a deferred constraint); FATAL and silence may have come after the commit.
    if (isServerError(error) && error.severity === 'ERROR') throw await refusedCommit(client, error, sink)
    throw new PawlError('UNKNOWN_RESULT', `COMMIT in PostgreSQL of sink ${sink}`, { sink }, error)
  }
  if (answer.command !== 'COMMIT')
    throw new PawlError('SINK_UNAVAILABLE', `PostgreSQL of sink ${sink} rolled back in place of COMMIT`, { sink })
}

/** Asks first, since making needs rights even where the table is there. Two who make it at once collide. */
async function makeTable(
  session: TableSession,
  query: (text: string, values?: readonly unknown[]) => Promise<PgResult>,
  table: string,
  sql: string,
): Promise<void> {
  const exists = async () => {
    const { rows } = await query('SELECT to_regclass($1) IS NOT NULL AS there', [quotedTable(table)])
    return rows[0]?.there === true
  }
  if (await exists()) return
  try {
    await session.begin()
    await query(sql)
    await session.commit()
  } catch (error) {
    await session.rollback()
    if (!(await exists())) throw error
  }
}
