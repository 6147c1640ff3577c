/**
 * A table as a sink of the transactional, staged family: the protocol, apart from any database's dialect.
 *
 * Rows wait in the store as blocks of lines. A promote is one transaction: the lane's marker is read under lock and
 * compared with `prev`, the blocks are written, the marker moves, commit. A promoter that comes second waits for
 * the lock, then finds the marker moved. Only an answer to COMMIT can get lost (`UNKNOWN_RESULT`); whatever fails
 * before it is rolled back with the session. A refusal names the row at fault: the first of the shortest beginning
 * of its block that is refused.
 */
import { isPawlError, PawlError } from '../../model/errors.ts'
import type { Committable, Marker } from '../../model/manifest.ts'
import type { PromoteResult, Sink, SinkLimits } from '../../ports/sink.ts'
import type { Store } from '../../ports/store.ts'
import { markerAfter, sameMarker } from './markers.ts'
import { type BlockLimits, blocksOf, blockWriter, cellsAt, firstRows, type RowBlock } from './row-blocks.ts'
import type { PooledSession, SessionPool } from './session-pool.ts'
import { type CellText, type RowMaker, rowEncoder, type TableForm } from './table-rows.ts'

/** Whose marker: the primary key of the marker table. */
export interface LaneKey {
  readonly stage: string
  readonly pipeline: string
  readonly sink: string
  readonly lane: number
}

/** One connection to a database. Everything throws `PawlError`s; `details.row` is a row's index in its block. */
export interface TableSession extends PooledSession {
  begin(): Promise<void>
  /** Within a transaction; holds the lock of the row until it ends. Null: no row, or no table of markers. */
  lockMarker(key: LaneKey): Promise<Marker | null>
  /** Without a transaction. */
  readMarker(key: LaneKey): Promise<Marker | null>
  /** Without a transaction: makes the table of markers and the row, unless they are there. */
  createMarker(key: LaneKey, marker: Marker): Promise<void>
  moveMarker(key: LaneKey, marker: Marker): Promise<void>
  /** Within a transaction, as `moveMarker`. */
  removeMarker(key: LaneKey): Promise<void>
  /** Without a transaction: makes the table of markers, unless it is there. */
  createMarkerTable(): Promise<void>
  /** Writes a block within a transaction, which is as it was before when the block is refused. */
  write(form: TableForm, block: RowBlock): Promise<void>
  /** What `write` throws for this block, without keeping anything of it. */
  refusal(form: TableForm, block: RowBlock): Promise<PawlError | null>
  /** Throws `UNKNOWN_RESULT` when the answer is lost. */
  commit(): Promise<void>
  rollback(): Promise<void>
}

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
  readonly sessions: SessionPool<TableSession>
  /** Where the staged objects of committables are. */
  readonly store: Store
}

/** The sink; nothing is connected until a lane is registered, promoted or looked at. */
export function tableSink(options: TableSinkOptions): Sink {
  const { technology, identity, form, maker, cell, sessions, store, limits } = options
  const keyOf = (lane: number): LaneKey => ({ ...identity, lane })
  return {
    target: `${technology}:${form.table}`,
    limits,
    async stage(context) {
      return blockWriter(context, rowEncoder(form, maker, cell, context.lanes), options.blocks, form)
    },
    async base(lane, marker) {
      return sessions.use(async (session) => {
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
        await session.begin()
        const found = await session.lockMarker(key)
        if (!sameMarker(found, committable.prev)) {
          await session.rollback()
          return { result: 'refused', found }
        }
        await writeRows(session, store, committable)
        await session.moveMarker(key, marker)
        await session.commit()
        return { result: 'promoted' }
      })
    },
    async marker(lane) {
      return sessions.use((session) => session.readMarker(keyOf(lane)))
    },
    async prepare({ dryRun }) {
      if (!dryRun) await sessions.use((session) => session.createMarkerTable())
      return [options.markerTableSql]
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

async function writeRows(session: TableSession, store: Store, committable: Committable): Promise<void> {
  for (const part of committable.parts) {
    const form = formOf(part.handle, committable)
    for await (const block of blocksOf(store, part)) {
      try {
        await session.write(form, block)
      } catch (error) {
        throw isRefusal(error) ? await named(session, form, block, committable, error) : error
      }
    }
  }
}

function formOf(handle: unknown, { sink }: Committable): TableForm {
  const form = handle as TableForm
  if (form?.version === 1) return form
  throw new PawlError('STEP_INPUT_INVALID', `staged output of sink ${sink} is of another version`, { sink })
}

function isRefusal(error: unknown): error is PawlError {
  return isPawlError(error) && (error.code === 'ROWS_REFUSED' || error.code === 'SINK_SCHEMA_INVALID')
}

/** The refusal with sink, lane, epoch and row key in it. */
async function named(
  session: TableSession,
  form: TableForm,
  block: RowBlock,
  { sink, lane, epoch }: Committable,
  refused: PawlError,
): Promise<PawlError> {
  const known = typeof refused.details.row === 'number' || refused.code === 'SINK_SCHEMA_INVALID'
  const { error, row } = known
    ? { error: refused, row: refused.details.row }
    : await culprit(session, form, block, refused)
  const { row: _, ...details } = error.details
  const rowKey = rowKeyOf(form, block, typeof row === 'number' ? row : 0)
  const column = typeof details.column === 'string' ? `, column ${details.column}` : ''
  const fault = `sink ${sink}, lane ${lane}, epoch ${epoch}, table ${form.table}, row ${rowKey}${column}: ${details.reason}`
  return new PawlError(error.code, fault, { sink, lane, epoch, table: form.table, rowKey, ...details }, error.cause)
}

/** The first row of the shortest beginning that is refused; about log2(rows) tries. */
async function culprit(session: TableSession, form: TableForm, block: RowBlock, refused: PawlError) {
  let accepted = 0
  let error = refused
  let rows = block.rows
  while (rows - accepted > 1) {
    const middle = (accepted + rows) >>> 1
    const refusal = await session.refusal(form, firstRows(block, middle))
    if (refusal === null) accepted = middle
    else {
      error = refusal
      rows = middle
    }
  }
  return { error, row: rows - 1 }
}

const rowKeyCharsMax = 200

/** Key columns of a row, or all of it where there are none. */
function rowKeyOf(form: TableForm, block: RowBlock, row: number): string {
  const cells = cellsAt(block, row)
  if (form.mode === 'upsert') cells.shift()
  const names = block.columns.filter((name) => form.key.length === 0 || form.key.includes(name))
  const pairs = names.map((name, index) => `${name}=${cells[index]}`)
  return (form.mode === 'sql' ? cells.join(', ') : pairs.join(', ')).slice(0, rowKeyCharsMax)
}
