/**
 * Rows that a user's function says are refused for good: what it may say, and what is recorded of it.
 *
 * An answer that makes no sense is the function's mistake: it stops the pipeline with what is wrong, since to guess which
 * rows were meant would lose some.
 */
import { PawlError } from '../../model/errors.ts'
import { limits } from '../../model/limits.ts'
import type { RefusedRowRecord } from '../shared/refused-rows.ts'
import type { RowBlock } from '../shared/row-blocks.ts'
import { contentsOf, type EncodedContents } from './rows.ts'

/** One row that the target will never take. */
export interface WriteAheadRefusal {
  /** Index into the rows of the call. */
  readonly row: number
  /** What the target says; at most 2,000 characters are kept. */
  readonly reason: string
  /** The target's own code, e.g. an HTTP status; `REFUSED` by default. */
  readonly code?: string
  /** The field or column at fault, if there is one. */
  readonly column?: string
}

/** What a function may resolve with: the rows that were refused for good; all others are written. */
export interface WriteAheadAnswer {
  readonly refused?: readonly WriteAheadRefusal[]
}

/** Where the rows of a call are. */
export interface CallPlace {
  readonly sink: string
  readonly lane: number
  readonly epoch: number
  readonly firstRow: number
}

/** The refusals in an answer, by row. Throws `WRITE_ANSWER_INVALID`. */
export function refusalsIn(answer: unknown, rows: number, place: CallPlace): readonly WriteAheadRefusal[] {
  const { sink, lane, epoch, firstRow } = place
  const refuse = (fault: string): never => {
    const at = `sink ${sink}, lane ${lane}, epoch ${epoch}, rows from ${firstRow}`
    throw new PawlError('WRITE_ANSWER_INVALID', `${at}: ${fault}`, { ...place, rows })
  }
  const refused = (answer as WriteAheadAnswer | null | undefined)?.refused ?? []
  if (!Array.isArray(refused)) return refuse('refused is no list')
  const seen = new Set<number>()
  for (const refusal of refused as readonly (WriteAheadRefusal | null)[]) {
    const row = refusal?.row
    if (typeof row !== 'number' || !Number.isSafeInteger(row) || row < 0 || row >= rows)
      return refuse(`row ${row} is none of the ${rows} rows of the call`)
    if (seen.has(row)) return refuse(`row ${row} is named twice`)
    if (typeof refusal?.reason !== 'string' || refusal.reason === '') return refuse(`row ${row} has no reason`)
    seen.add(row)
  }
  return [...(refused as readonly WriteAheadRefusal[])].sort((a, b) => a.row - b.row)
}

/** What is recorded of the refused rows of a block. */
export function recordsOf(
  block: RowBlock,
  refusals: readonly WriteAheadRefusal[],
  place: CallPlace,
  incarnation: string,
): readonly RefusedRowRecord[] {
  if (refusals.length === 0) return []
  const contents = contentsOf(block)
  return refusals.map(({ row, reason, code, column }) => ({
    incarnation,
    epoch: place.epoch,
    row: place.firstRow + row,
    code: code === undefined ? 'REFUSED' : String(code),
    column: typeof column === 'string' ? column : null,
    reason: reason.slice(0, limits.errorCharsMax),
    ...keptOf(contents[row]!),
  }))
}

function keptOf({ key, value }: EncodedContents): Pick<RefusedRowRecord, 'key' | 'value' | 'cutBytes'> {
  const bytes = (key?.length ?? 0) + (value?.length ?? 0)
  const keptKey = key?.subarray(0, limits.rejectedBytesMax) ?? null
  const keptValue = value?.subarray(0, limits.rejectedBytesMax - (keptKey?.length ?? 0)) ?? null
  const cutBytes = bytes - (keptKey?.length ?? 0) - (keptValue?.length ?? 0)
  return { key: keptKey?.toString('base64') ?? null, value: keptValue?.toString('base64') ?? null, cutBytes }
}

const keyCharsMax = 200

/** The refusal that stops a promotion, by its first row; `count` tells that there are too many to go on without them. */
export function refusedFault(
  { sink, lane, epoch }: Pick<CallPlace, 'sink' | 'lane' | 'epoch'>,
  [first]: readonly RefusedRowRecord[],
  count: number | null = null,
): PawlError {
  const { row, code, column, reason, key } = first as RefusedRowRecord
  const rowKey = key === null ? null : Buffer.from(key, 'base64').toString().slice(0, keyCharsMax)
  const named = `row ${row}${rowKey === null ? '' : ` (key ${rowKey})`}${column === null ? '' : `, column ${column}`}`
  const many = count === null ? '' : `; ${count} rows are refused, ${limits.refusedPerPromotionMax} may be`
  const fault = `sink ${sink}, lane ${lane}, epoch ${epoch}, ${named}: ${code}: ${reason}${many}`
  return new PawlError('ROWS_REFUSED', fault, { sink, lane, epoch, row, rowKey, code, column, reason })
}
