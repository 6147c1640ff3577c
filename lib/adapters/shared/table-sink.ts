/**
 * A table as a sink of the transactional, staged family: the protocol, apart from any database's dialect.
 *
 * Rows wait in the store as blocks of lines. A promote is one transaction: the lane's marker is read under lock and
 * compared with `prev`, the blocks are written, the marker moves, commit. A promoter that comes second waits for
 * the lock, then finds the marker moved. Only an answer to COMMIT can get lost (`UNKNOWN_RESULT`); whatever fails
 * before it is rolled back with the session. Where refused rows become dead letters, they are recorded in the same
 * transaction.
 */
import type { Marker } from '../../model/manifest.ts'
import type { PromoteResult, RejectPolicy, Sink, SinkLimits } from '../../ports/sink.ts'
import type { Store } from '../../ports/store.ts'
import { markerAfter, sameMarker } from './markers.ts'
import { withinBytes } from './refused-rows.ts'
import { type BlockLimits, blockWriter } from './row-blocks.ts'
import type { SessionPool } from './session-pool.ts'
import { type CellText, type RowMaker, rowEncoder, type TableForm } from './table-rows.ts'
import type { LaneKey, TableSession } from './table-session.ts'
import { writeRows, writeWelcomeRows } from './table-write.ts'

/** A table, and who writes it. */
export interface TableSinkOptions {
  readonly technology: string
  readonly identity: Omit<LaneKey, 'lane'>
  readonly form: TableForm
  readonly maker: RowMaker
  readonly cell: CellText
  readonly blocks: BlockLimits
  readonly limits: SinkLimits
  /** The statement that makes the table of markers. */
  readonly markerTableSql: string
  /** The statement that makes the table of refused rows. */
  readonly refusedTableSql: string
  readonly onReject: RejectPolicy
  readonly sessions: SessionPool<TableSession>
  /** Where the staged objects of committables are. */
  readonly store: Store
}

/** The sink; nothing is connected until a lane is registered, promoted or looked at. */
export function tableSink(options: TableSinkOptions): Sink {
  const { technology, identity, form, maker, cell, sessions, store, limits } = options
  const keyOf = (lane: number): LaneKey => ({ ...identity, lane })
  const carries = options.onReject === 'dead-letter'
  let mayRefuse = false
  const expectRefusals = async (session: TableSession) => {
    if (carries && !mayRefuse) await session.createRefusedTable()
    mayRefuse = true
  }
  return {
    target: `${technology}:${form.table}`,
    limits,
    async stage(context) {
      return blockWriter(context, rowEncoder(form, maker, cell, context.lanes), options.blocks, form)
    },
    async base(lane, marker) {
      return sessions.use(async (session) => {
        await expectRefusals(session)
        const found = await session.readMarker(keyOf(lane))
        if (found !== null) return found
        await session.createMarker(keyOf(lane), marker)
        return (await session.readMarker(keyOf(lane))) ?? marker
      })
    },
    async promote(committable, permit): Promise<PromoteResult> {
      const key = keyOf(committable.lane)
      const marker = markerAfter(committable, permit)
      return sessions.use(async (session) => {
        await expectRefusals(session)
        await session.begin()
        const found = await session.lockMarker(key)
        if (!sameMarker(found, committable.prev)) {
          await session.rollback()
          return { result: 'refused', found }
        }
        const refused = carries ? await writeWelcomeRows(session, store, committable, permit.incarnation) : []
        if (!carries) await writeRows(session, store, committable)
        if (refused.length > 0) await session.recordRefused(key, refused)
        await session.moveMarker(key, marker)
        await session.commit()
        return refused.length === 0 ? { result: 'promoted' } : { result: 'promoted', refused: refused.length }
      })
    },
    async marker(lane) {
      return sessions.use((session) => session.readMarker(keyOf(lane)))
    },
    async refused(lane, max) {
      const rows = await sessions.use((session) => session.readRefused(keyOf(lane), max.rows))
      return withinBytes(rows, max.bytes)
    },
    async forget(lane, ids) {
      await sessions.use((session) => session.forgetRefused(keyOf(lane), ids))
    },
    async prepare({ dryRun }) {
      if (!dryRun) await sessions.use((session) => session.createMarkerTable())
      if (!carries) return [options.markerTableSql]
      if (!dryRun) await sessions.use((session) => session.createRefusedTable())
      return [options.markerTableSql, options.refusedTableSql]
    },
    reassign: (lane, from, to) => sessions.use((session) => reassign(session, keyOf(lane), from, to)),
    async close() {
      await sessions.close()
    },
  }
}

async function reassign(
  session: TableSession,
  key: LaneKey,
  from: Marker | null,
  to: Marker | null,
): Promise<Marker | null> {
  if (from === null && to !== null) {
    if ((await session.readMarker(key)) === null) await session.createMarker(key, to)
    return session.readMarker(key)
  }
  await session.begin()
  const found = await session.lockMarker(key)
  if (found === null || !sameMarker(found, from)) {
    await session.rollback()
    return found
  }
  await (to === null ? session.removeMarker(key) : session.moveMarker(key, to))
  await session.commit()
  return to
}
