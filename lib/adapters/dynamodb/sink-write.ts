/**
 * Promotion into a table: items one by one, each guarded by its epoch, or all with the marker in one transaction.
 *
 * Guarded, an item says which epoch of which incarnation wrote it, and is replaced only by a later one; a tombstone
 * stays as an item without attributes of the user, since what is gone guards nothing. The marker moves after the last
 * item. So a promotion may end anywhere and begin again, and one that comes late changes nothing. What a failed
 * condition returns is looked at: the same epoch is ours, a later one belongs to a later promotion, another incarnation
 * or another history of the epoch stops the pipeline.
 */
import { PawlError } from '../../model/errors.ts'
import type { Committable, Marker } from '../../model/manifest.ts'
import type { PromoteResult } from '../../ports/sink.ts'
import { tryAgain, verdictOf } from '../shared/aws.ts'
import { sameMarker } from '../shared/markers.ts'
import type { Attribute, AttributeMap } from './attributes.ts'
import { ownAttribute } from './sink-form.ts'
import {
  conditionFailed,
  markerMove,
  membersOf,
  moveMarker,
  type OpenLane,
  readState,
  type SdkItem,
  sinkDeed,
  stateOf,
} from './sink-marker.ts'
import { keyText, type LastRow } from './sink-rows.ts'
import { judgeWrite, reasonsOf } from './write.ts'

/** One promotion. */
export interface Promotion {
  readonly open: OpenLane
  readonly committable: Committable
  readonly next: Marker
  readonly rows: ReadonlyMap<string, LastRow>
  readonly healing: boolean
}

const writesAtOnce = 32
/** With a time to live on tombstones, how long a look at the marker is good for. */
const lookMs = 60_000
/** Enough of a hash to tell two histories of one epoch apart. */
const hashChars = 16

/** Writes the items, then moves the marker. */
export async function promoteGuarded(promotion: Promotion): Promise<PromoteResult> {
  const { open, committable, next, healing } = promotion
  const { prev } = committable
  const { marker: found, adopted } = await readState(open)
  if (!sameMarker(found, prev)) return { result: 'refused', found }
  const newer = await writeAll(promotion, adopted)
  if (newer !== null && !healing) {
    const { marker: now } = await readState(open)
    if (!sameMarker(now, prev)) return { result: 'refused', found: now }
    throw conflict(promotion, newer, 'MARKER_UNKNOWN', 'is of a later epoch than the marker has seen')
  }
  const moved = await moveMarker(open, prev, { marker: next, adopted })
  return moved === 'moved' ? { result: 'promoted' } : { result: 'refused', found: moved.marker }
}

/** Writes every item; the key of one that a later epoch wrote, or null. All writes have ended when it returns. */
async function writeAll(promotion: Promotion, adopted: readonly string[]): Promise<string | null> {
  const rows = promotion.rows.entries()
  let newer: string | null = null
  let lookedAtMs = Date.now()
  let failed = false
  const work = async () => {
    for (const [key, row] of rows) {
      if (failed) return
      try {
        if (promotion.open.form.tombstoneTtl !== null && Date.now() - lookedAtMs > lookMs) {
          if (!sameMarker((await readState(promotion.open)).marker, promotion.committable.prev)) {
            newer = key
            return
          }
          lookedAtMs = Date.now()
        }
        if ((await writeItem(promotion, adopted, key, row)) === 'newer') newer = key
      } catch (error) {
        failed = true
        throw error
      }
    }
  }
  const ends = await Promise.allSettled(Array.from({ length: writesAtOnce }, work))
  for (const end of ends) if (end.status === 'rejected') throw end.reason
  return newer
}

function writeItem(
  promotion: Promotion,
  adopted: readonly string[],
  key: string,
  row: LastRow,
): Promise<'written' | 'newer'> {
  const { open, next } = promotion
  const { sdk, client } = open.table
  const others = adopted.map((incarnation, index) => [`:a${index}`, { S: incarnation }] as const)
  const taken = others.length === 0 ? '' : ` OR #p.#i IN (${others.map(([name]) => name).join(', ')})`
  const put = {
    TableName: open.form.table,
    Item: guardedItem(promotion, row) as SdkItem,
    ConditionExpression: `attribute_not_exists(#p) OR (#p.#i = :i AND #p.#e < :e)${taken}`,
    ExpressionAttributeNames: { '#p': ownAttribute, '#i': 'i', '#e': 'e' },
    ExpressionAttributeValues: {
      ':i': { S: next.incarnation },
      ':e': { N: `${next.epoch}` },
      ...Object.fromEntries(others),
    },
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
  }
  return tryAgain(sinkDeed(open, 'write an item', open.form.table, true), async () => {
    try {
      await client.send(new sdk.PutItemCommand(put))
      return 'written'
    } catch (error) {
      const refused = conditionFailed(error)
      if (refused !== null) return judgeItem(promotion, key, refused.item)
      const verdict = judgeWrite(error) ?? verdictOf(error)
      throw verdict === 'refused' ? rowRefused(promotion, key, (error as Error).message, error) : error
    }
  })
}

function guardedItem({ open, next }: Promotion, { deleted, item }: LastRow): AttributeMap {
  const { tombstoneTtl } = open.form
  const guard: Record<string, Attribute> = {
    i: { S: next.incarnation },
    e: { N: `${next.epoch}` },
    h: { S: next.hash.slice(0, hashChars) },
  }
  if (!deleted) return { ...item, [ownAttribute]: { M: guard } }
  const tombstone = { ...item, [ownAttribute]: { M: { ...guard, d: { BOOL: true } as const } } }
  if (tombstoneTtl === null) return tombstone
  const expires = Math.ceil((Date.now() + tombstoneTtl.afterMs) / 1000)
  return { ...tombstone, [tombstoneTtl.attribute]: { N: `${expires}` } }
}

/** What it means that an item was not older. */
function judgeItem(promotion: Promotion, key: string, item: AttributeMap | undefined): 'written' | 'newer' {
  const { next } = promotion
  const { i, e, h } = membersOf(item?.[ownAttribute])
  if (i?.S !== next.incarnation)
    throw conflict(promotion, key, 'MARKER_FOREIGN', `belongs to incarnation ${i?.S ?? 'of nobody'}`)
  const epoch = Number(e?.N)
  if (epoch > next.epoch) return 'newer'
  if (epoch === next.epoch && h?.S === next.hash.slice(0, hashChars)) return 'written'
  throw conflict(promotion, key, 'MARKER_UNKNOWN', `was written by another epoch ${e?.N}`)
}

function conflict(
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

function rowRefused({ open, committable }: Promotion, rowKey: string, reason: string, cause: unknown): PawlError {
  const { sink, lane, epoch } = committable
  const { table } = open.form
  const fault = `sink ${sink}, lane ${lane}, epoch ${epoch}, table ${table}, row ${rowKey}: ${reason}`
  return new PawlError('ROWS_REFUSED', fault, { sink, lane, epoch, table, rowKey, reason }, cause)
}

/** What one transaction takes beside the marker. */
export const transactionRowsMax = 99

/** Writes rows and marker in one transaction. */
export async function promoteInTransaction(promotion: Promotion): Promise<PromoteResult> {
  const { open, committable, next, rows } = promotion
  if (rows.size > transactionRowsMax) {
    const { sink, lane, epoch } = committable
    const fault = `epoch ${epoch} of sink ${sink}, lane ${lane} has ${rows.size} keys, a transaction takes ${transactionRowsMax}`
    throw new PawlError('EPOCH_TOO_LARGE', fault, { sink, lane, epoch, rows: rows.size })
  }
  const { sdk, client } = open.table
  const { table: TableName } = open.form
  const deed = sinkDeed(open, 'write a transaction', TableName, true)
  const TransactItems = [
    { Put: markerMove(open, committable.prev, { marker: next, adopted: [] }) },
    ...[...rows.values()].map(({ deleted, item }) =>
      deleted ? { Delete: { TableName, Key: item as SdkItem } } : { Put: { TableName, Item: item as SdkItem } },
    ),
  ]
  return tryAgain(deed, async ({ unclear }): Promise<PromoteResult> => {
    try {
      await client.send(new sdk.TransactWriteItemsCommand({ TransactItems }))
      return { result: 'promoted' }
    } catch (error) {
      const found = judgeTransaction(promotion, error)
      if (found === undefined) throw error
      return unclear && sameMarker(found, next) ? { result: 'promoted' } : { result: 'refused', found }
    }
  })
}

/** The marker that refused the transaction; undefined when it was not the marker. Throws `ROWS_REFUSED`. */
function judgeTransaction(promotion: Promotion, error: unknown): Marker | null | undefined {
  const reasons = reasonsOf(error)
  if ((judgeWrite(error) ?? verdictOf(error)) === 'refused') {
    const index = reasons.findIndex(({ Code = 'None' }, at) => at > 0 && Code !== 'None' && grave(Code))
    const row = [...promotion.rows.values()][index - 1]
    const key = row === undefined ? 'of the transaction' : keyText(row.item, promotion.open.form)
    const reason = reasons[index]?.Message ?? reasons[index]?.Code ?? (error as Error).message
    throw rowRefused(promotion, key, reason, error)
  }
  const [marker] = reasons
  if (marker?.Code !== 'ConditionalCheckFailed') return undefined
  return stateOf(marker.Item as AttributeMap | undefined, promotion.open).marker
}

const passing = new Set(['ConditionalCheckFailed', 'TransactionConflict', 'ThrottlingError'])
const grave = (code: string) => !passing.has(code) && code !== 'ProvisionedThroughputExceeded'
