/**
 * One promotion into a table of DynamoDB, and what can be wrong with a row of it.
 *
 * Apart from the two ways to promote because both name rows, and record refused ones, alike. Only what is certainly the
 * fault of a row counts as its refusal: whatever else DynamoDB does not accept parks the pipeline.
 */
import { PawlError } from '../../model/errors.ts'
import type { Committable, Marker } from '../../model/manifest.ts'
import type { Store } from '../../ports/store.ts'
import { answerOf, tryAgain } from '../shared/aws.ts'
import { type RefusedRowRecord, refusedRecord } from '../shared/refused-rows.ts'
import { type AttributeMap, attributesText } from './attributes.ts'
import { type OpenLane, type SdkItem, sinkDeed } from './sink-marker.ts'
import { keyOf, keyText, type StagedRow } from './sink-rows.ts'

/** One promotion. */
export interface Promotion {
  readonly open: OpenLane
  readonly committable: Committable
  readonly next: Marker
  /** The last row of each key. */
  readonly rows: ReadonlyMap<string, StagedRow>
  readonly healing: boolean
  /** Where the staged rows are, to be read again. */
  readonly store: Store
  /** Where refused rows are recorded; null: they park. */
  readonly refusedTable: string | null
}

/** How DynamoDB refuses an item, and the code under which it is recorded. */
export const invalid = 'ValidationException'

/** True when the item was refused, alone in its request. */
export function isInvalid(error: unknown): boolean {
  return answerOf(error).name === invalid
}

/** Characters of the service's message that are recorded; it bounds what a recording needs. */
export const reasonCharsMax = 300
const keyCharsMax = 200

/** A refused row, with the item as it was sent: the JSON of DynamoDB, bytes as base64. */
export function refusalOf(
  { open, committable, next }: Promotion,
  { deleted, item, row }: StagedRow,
  code: string,
  reason: string,
): RefusedRowRecord {
  return refusedRecord({
    incarnation: next.incarnation,
    epoch: committable.epoch,
    row,
    code,
    column: null,
    reason: reason.slice(0, reasonCharsMax),
    key: keyText(item, open.form).slice(0, keyCharsMax),
    value: deleted ? null : attributesText(item),
  })
}

/** The item under the row's key as it is now. Throws `SINK_SCHEMA_INVALID`: a table with other keys refuses every row. */
export async function readItem({ open, committable }: Promotion, { item }: StagedRow) {
  const { sdk, client } = open.table
  const { form } = open
  const read = { TableName: form.table, Key: keyOf(item, form) as SdkItem, ConsistentRead: true }
  const { Item } = await tryAgain(sinkDeed(open, 'read an item', form.table, false), async () => {
    try {
      return await client.send(new sdk.GetItemCommand(read))
    } catch (error) {
      if (!isInvalid(error)) throw error
      const { sink } = committable
      const keys = form.keys.map(([name, type]) => `${name} (${type})`).join(', ')
      const fault = `sink ${sink}: table ${form.table} has other keys than ${keys}: ${(error as Error).message}`
      throw new PawlError('SINK_SCHEMA_INVALID', fault, { sink, table: form.table }, error)
    }
  })
  return Item as AttributeMap | undefined
}

/** The item stands in the way of the promotion. */
export function conflict(
  { open, committable }: Promotion,
  rowKey: string,
  code: 'MARKER_FOREIGN' | 'MARKER_UNKNOWN',
  fault: string,
): PawlError {
  const { sink, lane, epoch } = committable
  const { table } = open.form
  const text = `sink ${sink}, lane ${lane}, epoch ${epoch}: item ${rowKey} of table ${table} ${fault}`
  return new PawlError(code, text, { sink, lane, epoch, table, rowKey })
}

/** A row is refused, and the pipeline parks. */
export function rowRefused(
  { open, committable }: Promotion,
  rowKey: string,
  reason: string,
  cause?: unknown,
): PawlError {
  const { sink, lane, epoch } = committable
  const { table } = open.form
  const fault = `sink ${sink}, lane ${lane}, epoch ${epoch}, table ${table}, row ${rowKey}: ${reason}`
  return new PawlError('ROWS_REFUSED', fault, { sink, lane, epoch, table, rowKey, reason }, cause)
}
