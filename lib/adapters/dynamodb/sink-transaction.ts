/**
 * Promotion of rows, marker and recorded refusals in one transaction.
 *
 * Either all of it happens or nothing, so a row that is refused is left out and the rest is tried again: what is recorded
 * is what the transaction that moved the marker did not write. A reason of a cancelled transaction names its row. An
 * empty key of an index refuses the request as a whole (seen at the real service by the suite dynamodb-conformance); its
 * row is found by requests under a condition that never holds.
 */

import { PawlError } from '../../model/errors.ts'
import { limits } from '../../model/limits.ts'
import type { Marker } from '../../model/manifest.ts'
import type { PromoteResult } from '../../ports/sink.ts'
import { tryAgain, verdictOf } from '../shared/aws.ts'
import { sameMarker } from '../shared/markers.ts'
import type { RefusedRowRecord } from '../shared/refused-rows.ts'
import { type AttributeMap, bytesOf } from './attributes.ts'
import { ownAttribute } from './sink-form.ts'
import { markerMove, readState, type SdkItem, sinkDeed, stateOf } from './sink-marker.ts'
import { invalid, isInvalid, type Promotion, readItem, refusalOf, rowRefused } from './sink-promotion.ts'
import { mustTakeRefused, type Recording, recordedBytesMax, recordingOf } from './sink-refused.ts'
import { keyText, readRowsOf, type StagedRow } from './sink-rows.ts'
import { judgeWrite, reasonsOf } from './write.ts'

/** What one transaction takes beside the marker. */
export const transactionRowsMax = 99
/** 4 MB, with room for the marker. */
const transactionBytesMax = 4_150_000

/** A row that a transaction did not take. */
interface Culprit {
  readonly row: StagedRow
  readonly code: string
  readonly reason: string
}

/** Writes rows and marker in one transaction. */
export async function promoteInTransaction(promotion: Promotion): Promise<PromoteResult> {
  const { open, committable, store, refusedTable } = promotion
  if (promotion.rows.size > transactionRowsMax) throw tooMany(promotion)
  const rows = new Map(promotion.rows)
  const refused: RefusedRowRecord[] = []
  let staged: ReadonlyMap<string, readonly StagedRow[]> | null = null
  for (;;) {
    const recording = refusedTable === null ? null : recordingOf(open, refusedTable, refused)
    if (recording !== null && refused.length > 0) mustFit(promotion, rows, refused, recording)
    const answer = await writeOnce(promotion, [...rows.values()], recording)
    if (!('culprits' in answer)) {
      if (answer.result === 'refused' || refused.length === 0) return answer
      return { result: 'promoted', refused: refused.length }
    }
    if (staged === null) {
      if (refusedTable !== null) await mustTakeRefused(open, refusedTable)
      // A table with other keys would refuse every row.
      await readItem(promotion, answer.culprits[0]!.row)
      staged = await readRowsOf(rows, store, committable, open.form)
    }
    for (const { row, code, reason } of answer.culprits) {
      refused.push(refusalOf(promotion, row, code, reason))
      const key = keyText(row.item, open.form)
      const before = staged.get(key)?.findLast((other) => other.row < row.row)
      if (before === undefined) rows.delete(key)
      else rows.set(key, before)
    }
  }
}

function tooMany({ committable, rows }: Promotion): PawlError {
  const { sink, lane, epoch } = committable
  const fault = `epoch ${epoch} of sink ${sink}, lane ${lane} has ${rows.size} keys, a transaction takes ${transactionRowsMax}`
  return new PawlError('EPOCH_TOO_LARGE', fault, { sink, lane, epoch, rows: rows.size })
}

function mustFit(
  promotion: Promotion,
  rows: ReadonlyMap<string, StagedRow>,
  refused: readonly RefusedRowRecord[],
  { bytes }: Recording,
): void {
  const written = [...rows.values()].reduce((sum, { item }) => sum + bytesOf(item), 0)
  const many = refused.length > limits.refusedPerPromotionMax || bytes > recordedBytesMax
  if (!many && written + bytes <= transactionBytesMax) return
  const fault = `${refused.length} rows are refused; with what is written they are beyond what one transaction can record`
  throw rowRefused(promotion, 'of several', fault)
}

type Outcome = PromoteResult | { readonly culprits: readonly [Culprit, ...Culprit[]] }

/** One transaction: what became of it, or whose fault it is that it was not taken. Throws `ROWS_REFUSED` to park. */
async function writeOnce(
  promotion: Promotion,
  rows: readonly StagedRow[],
  recording: Recording | null,
): Promise<Outcome> {
  const { open, committable, next } = promotion
  const { sdk, client } = open.table
  const { table: TableName } = open.form
  const TransactItems = [
    { Put: markerMove(open, committable.prev, { marker: next, adopted: [] }) },
    ...rows.map(({ deleted, item }) =>
      deleted ? { Delete: { TableName, Key: item as SdkItem } } : { Put: { TableName, Item: item as SdkItem } },
    ),
    ...(recording?.puts ?? []),
  ]
  return tryAgain(sinkDeed(open, 'write a transaction', TableName, true), async ({ unclear }): Promise<Outcome> => {
    try {
      await client.send(new sdk.TransactWriteItemsCommand({ TransactItems }))
      return { result: 'promoted' }
    } catch (error) {
      const found = foundBy(promotion, error)
      // Which rows another try or promoter refused, only the sink knows; so with dead letters the caller is to ask it.
      if (found !== undefined)
        return unclear && recording === null && sameMarker(found, next)
          ? { result: 'promoted' }
          : { result: 'refused', found }
      if (!isInvalid(error) && (judgeWrite(error) ?? verdictOf(error)) !== 'refused') throw error
      return blame(promotion, rows, error)
    }
  })
}

/** The marker that refused the transaction; undefined when it was not the marker. */
function foundBy({ open }: Promotion, error: unknown): Marker | null | undefined {
  const [marker] = reasonsOf(error)
  if (marker?.Code !== 'ConditionalCheckFailed') return undefined
  return stateOf(marker.Item as AttributeMap | undefined, open).marker
}

/** Codes of reasons, by the code under which the row is recorded. */
const blaming: Readonly<Record<string, string>> = {
  ValidationError: invalid,
  ItemCollectionSizeLimitExceeded: 'ItemCollectionSizeLimitExceededException',
}

/** Whose fault a refused transaction is. Parks unless it is certainly that of rows, and the marker is where it was. */
async function blame(promotion: Promotion, rows: readonly StagedRow[], error: unknown): Promise<Outcome> {
  const { open, committable, refusedTable } = promotion
  const reasons = reasonsOf(error)
  const grave = reasons.flatMap(({ Code = 'None', Message }, index) =>
    passing.has(Code) ? [] : [{ code: blaming[Code], reason: Message ?? Code, row: rows[index - 1] }],
  )
  const named = grave.flatMap(({ code, reason, row }) => (code && row ? [{ code, reason, row }] : []))
  const culprits = isInvalid(error) && refusedTable !== null ? await culpritsAmong(promotion, rows) : named
  const [first, ...others] = culprits
  if (refusedTable !== null && first !== undefined && named.length === grave.length)
    return { culprits: [first, ...others] }
  const { marker } = await readState(open)
  if (!sameMarker(marker, committable.prev)) return { result: 'refused', found: marker }
  const [worst] = grave
  const key = worst?.row === undefined ? 'of the transaction' : keyText(worst.row.item, open.form)
  throw rowRefused(promotion, key, worst?.reason ?? (error as Error).message, error)
}

const passing = new Set([
  'None',
  'ConditionalCheckFailed',
  'TransactionConflict',
  'ThrottlingError',
  'ProvisionedThroughputExceeded',
])

/** The rows because of which the request as a whole is refused. */
async function culpritsAmong(promotion: Promotion, rows: readonly StagedRow[]): Promise<readonly Culprit[]> {
  const puts = rows.filter(({ deleted }) => !deleted)
  const reason = puts.length === 0 ? null : await probe(promotion, puts)
  if (reason === null) return []
  const [row] = puts
  if (puts.length === 1 && row !== undefined) return [{ row, code: invalid, reason }]
  const half = puts.length >>> 1
  return [
    ...(await culpritsAmong(promotion, puts.slice(0, half))),
    ...(await culpritsAmong(promotion, puts.slice(half))),
  ]
}

/** Why a request with these rows is refused as a whole; null when it is not. Writes nothing. */
function probe({ open }: Promotion, rows: readonly StagedRow[]): Promise<string | null> {
  const { sdk, client } = open.table
  const { table: TableName } = open.form
  const TransactItems = rows.map(({ item }) => ({
    Put: {
      TableName,
      Item: item as SdkItem,
      ConditionExpression: 'attribute_exists(#p) AND attribute_not_exists(#p)',
      ExpressionAttributeNames: { '#p': ownAttribute },
    },
  }))
  return tryAgain(sinkDeed(open, 'look for the refused row', TableName, false), async () => {
    try {
      await client.send(new sdk.TransactWriteItemsCommand({ TransactItems }))
      return null
    } catch (error) {
      if (isInvalid(error)) return (error as Error).message
      if (reasonsOf(error).some(({ Code = 'None' }) => Code === 'ConditionalCheckFailed' || Code in blaming))
        return null
      throw error
    }
  })
}
