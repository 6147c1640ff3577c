/**
 * Writing a committable's blocks within a transaction, and what becomes of rows that the table refuses.
 *
 * Apart from the sink because this is where a row is found among many. To park, it is named: the first of the
 * shortest beginning of its block that is refused. To go on without it, its block is cut until it stands alone; every
 * other row is written in its order.
 */
import { isPawlError, PawlError } from '../../model/errors.ts'
import { limits } from '../../model/limits.ts'
import type { Committable, RefusedRow } from '../../model/manifest.ts'
import type { Store } from '../../ports/store.ts'
import { refusedRow } from './refused-rows.ts'
import { blocksOf, cellsAt, firstRows, type RowBlock, rowsFrom } from './row-blocks.ts'
import type { TableForm } from './table-rows.ts'
import type { TableSession } from './table-session.ts'

/** Writes all rows. Throws `ROWS_REFUSED` and `SINK_SCHEMA_INVALID`, naming the row. */
export async function writeRows(session: TableSession, store: Store, committable: Committable): Promise<void> {
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

/** One committable that is written without the rows that are refused. */
interface Bearing {
  readonly session: TableSession
  readonly committable: Committable
  readonly incarnation: string
  readonly form: TableForm
  readonly refused: RefusedRow[]
}

/** Writes all rows but those that the table refuses, which it returns. More than a few are the table's fault: throws. */
export async function writeWelcomeRows(
  session: TableSession,
  store: Store,
  committable: Committable,
  incarnation: string,
): Promise<RefusedRow[]> {
  const refused: RefusedRow[] = []
  let rows = 0
  for (const part of committable.parts) {
    const bearing: Bearing = { session, committable, incarnation, form: formOf(part.handle, committable), refused }
    for await (const block of blocksOf(store, part)) {
      await bear(bearing, block, rows)
      rows += block.rows
    }
  }
  return refused
}

async function bear(bearing: Bearing, block: RowBlock, firstRow: number): Promise<void> {
  const { session, form, committable, refused } = bearing
  let cut = block.rows >>> 1
  try {
    return await session.write(form, block)
  } catch (error) {
    if (!isRefusal(error)) throw error
    const hopeless = error.code !== 'ROWS_REFUSED' || refused.length >= limits.refusedPerPromotionMax
    if (hopeless) throw await named(session, form, block, committable, error)
    if (block.rows === 1) {
      refused.push(await refusalOf(bearing, block, firstRow, error))
      return
    }
    const { row } = error.details
    if (typeof row === 'number' && row < block.rows) cut = Math.max(1, row)
  }
  await bear(bearing, firstRows(block, cut), firstRow)
  await bear(bearing, rowsFrom(block, cut), firstRow + cut)
}

async function refusalOf(
  { session, form, committable, incarnation }: Bearing,
  block: RowBlock,
  row: number,
  error: PawlError,
): Promise<RefusedRow> {
  const { sqlState, errno, reason } = error.details
  const cells = cellsAt(block, 0)
  if (form.mode === 'upsert') cells.shift()
  return refusedRow({
    incarnation,
    epoch: committable.epoch,
    row,
    code: String(sqlState ?? errno ?? error.code),
    column: await columnOf(session, form, error),
    reason: String(reason ?? error.message),
    key: rowKeyOf(form, block, 0),
    value: JSON.stringify(form.mode === 'sql' ? cells : Object.fromEntries(cellsOf(block, cells))),
  })
}

function cellsOf({ columns }: RowBlock, cells: readonly string[]): (readonly [column: string, cell: string])[] {
  return columns.map((name, index) => [name, cells[index] ?? ''] as const)
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
  const { row: _, column: _column, ...details } = error.details
  const rowKey = rowKeyOf(form, block, typeof row === 'number' ? row : 0)
  const column = await columnOf(session, form, error)
  const at = column === null ? '' : `, column ${column}`
  const fault = `sink ${sink}, lane ${lane}, epoch ${epoch}, table ${form.table}, row ${rowKey}${at}: ${details.reason}`
  const named = { sink, lane, epoch, table: form.table, rowKey, column, ...details }
  return new PawlError(error.code, fault, named, error.cause)
}

/** The column that the database named, or those of the constraint that it named. */
async function columnOf(session: TableSession, form: TableForm, error: PawlError): Promise<string | null> {
  const { column } = error.details
  return typeof column === 'string' ? column : session.columnsOf(form, error)
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
