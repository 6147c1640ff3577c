/**
 * Refused rows in a table of their own: recorded in the transaction that moves the marker, read by the next plan, then
 * forgotten.
 *
 * Its keys are `pk`, the lane, and `sk`: epoch, first row and a random id of the recording, so that no recording ever
 * touches another's items. An item holds up to a hundred rows by position, each as JSON text; the id of a row is its
 * item's sort key and its position. Version 1.
 */
import { randomBytes } from 'node:crypto'
import { isPawlError, PawlError } from '../../model/errors.ts'
import type { Marker, RefusedRow } from '../../model/manifest.ts'
import { tryAgain } from '../shared/aws.ts'
import { sameMarker } from '../shared/markers.ts'
import { type RefusedRowRecord, withinBytes } from '../shared/refused-rows.ts'
import type { AttributeMap } from './attributes.ts'
import { epochKey } from './client.ts'
import { refusedText } from './sink-form.ts'
import {
  conditionFailed,
  type MarkerState,
  markerMove,
  type OpenLane,
  type SdkItem,
  sinkDeed,
  stateOf,
} from './sink-marker.ts'
import { isInvalid } from './sink-promotion.ts'
import { reasonsOf } from './write.ts'

const chunkRowsMax = 100
/** Below the 400 KB of an item, and above the largest row. */
const chunkBytesMax = 380_000
/** Below the 4 MB of a transaction, with room for the marker. */
export const recordedBytesMax = 3_500_000

/** Refused rows as writes for a transaction. */
export interface Recording {
  readonly puts: readonly { readonly Put: { readonly TableName: string; readonly Item: SdkItem } }[]
  readonly bytes: number
}

/** Packs refused rows, in the order of their positions. */
export function recordingOf({ lane }: OpenLane, TableName: string, rows: readonly RefusedRowRecord[]): Recording {
  const id = randomBytes(16).toString('hex')
  const puts: Recording['puts'][number][] = []
  let total = 0
  let bytes = 0
  let chunk: Record<string, { readonly S: string }> = {}
  for (const refusal of [...rows].sort((a, b) => a.row - b.row)) {
    const text = JSON.stringify(refusal)
    const size = Buffer.byteLength(text) + 32
    if (puts.length === 0 || bytes + size > chunkBytesMax || Object.keys(chunk).length === chunkRowsMax) {
      chunk = {}
      bytes = 0
      const sk = `${epochKey(refusal.epoch)}#${refusal.row.toString().padStart(10, '0')}#${id}`
      const Item = { pk: { S: refusedText(lane) }, sk: { S: sk }, v: { N: '1' }, rows: { M: chunk } }
      puts.push({ Put: { TableName, Item: Item as unknown as SdkItem } })
    }
    chunk[refusal.row] = { S: text }
    bytes += size
    total += size
  }
  return { puts, bytes: total + puts.length * 512 }
}

/** Moves the marker from `prev` and records in one step. `moved` also when an earlier try of this call had done it. */
export async function moveAndRecord(
  open: OpenLane,
  prev: Marker | null,
  next: MarkerState,
  { puts }: Recording,
): Promise<'moved' | MarkerState> {
  const { sdk, client } = open.table
  const move = markerMove(open, prev, next)
  const TransactItems = [{ Put: move }, ...puts]
  return tryAgain(sinkDeed(open, 'write the marker and refused rows', move.TableName, true), async ({ unclear }) => {
    try {
      await client.send(new sdk.TransactWriteItemsCommand({ TransactItems }))
      return 'moved'
    } catch (error) {
      const [marker] = reasonsOf(error)
      if (marker?.Code !== 'ConditionalCheckFailed') throw error
      const found = stateOf(marker.Item as AttributeMap | undefined, open)
      return unclear && sameMarker(found.marker, next.marker) ? 'moved' : found
    }
  })
}

/** Throws `AWS_RESOURCE_MISSING` and `SINK_SCHEMA_INVALID` where nothing could be recorded. */
export async function mustTakeRefused(open: OpenLane, table: string): Promise<void> {
  await queryPage(open, table, { Limit: 1, ProjectionExpression: 'pk' })
}

/** Recorded rows by epoch and row, at most so many, ending once they have so many bytes. */
export async function readRefused(
  open: OpenLane,
  table: string,
  max: { readonly rows: number; readonly bytes: number },
): Promise<readonly RefusedRow[]> {
  const rows: RefusedRow[] = []
  let bytes = 0
  let from: SdkItem | undefined
  do {
    const { Items = [], LastEvaluatedKey } = await queryPage(open, table, { ExclusiveStartKey: from })
    for (const item of Items as unknown as readonly Chunk[]) {
      const found = rowsIn(item, open, table)
      // Several recordings of an epoch, after a restore, lie side by side.
      const begins = found[0]?.epoch !== rows.at(-1)?.epoch
      if (begins && (rows.length >= max.rows || bytes >= max.bytes)) return firstOf(rows, max)
      rows.push(...found)
      for (const { key, value } of found) bytes += (key?.length ?? 0) + (value?.length ?? 0)
    }
    from = LastEvaluatedKey as SdkItem | undefined
  } while (from !== undefined)
  return firstOf(rows, max)
}

function firstOf(rows: RefusedRow[], max: { readonly rows: number; readonly bytes: number }): readonly RefusedRow[] {
  rows.sort((a, b) => a.epoch - b.epoch || a.row - b.row || (a.id < b.id ? -1 : 1))
  return withinBytes(rows.slice(0, max.rows), max.bytes)
}

/** An item of the table, as it is written here. */
interface Chunk {
  readonly sk: { readonly S: string }
  readonly v: { readonly N: string }
  readonly rows: { readonly M: Readonly<Record<string, { readonly S: string }>> }
}

function rowsIn({ sk, v, rows }: Chunk, { lane }: OpenLane, table: string): RefusedRow[] {
  if (v.N !== '1') {
    const { sink } = lane
    const fault = `refused rows of sink ${sink} in table ${table} are of another version`
    throw new PawlError('STEP_INPUT_INVALID', fault, { sink, table })
  }
  return Object.entries(rows.M).map(([row, { S }]) => ({
    id: `${sk.S}#${row}`,
    ...(JSON.parse(S) as RefusedRowRecord),
  }))
}

/** Rows that one request removes; an expression has 4 KB. */
const removedMax = 100

/** Drops recorded rows by id, and items that are empty then. */
export async function forgetRefused(open: OpenLane, table: string, ids: readonly string[]): Promise<void> {
  const chunks = new Map<string, string[]>()
  for (const id of ids) {
    const at = id.lastIndexOf('#')
    if (at <= 0) continue
    const sk = id.slice(0, at)
    chunks.set(sk, [...(chunks.get(sk) ?? []), id.slice(at + 1)])
  }
  for (const [sk, rows] of chunks) {
    for (let at = 0; at < rows.length; at += removedMax) await remove(open, table, sk, rows.slice(at, at + removedMax))
    await removeEmpty(open, table, sk)
  }
}

async function remove(open: OpenLane, TableName: string, sk: string, rows: readonly string[]): Promise<void> {
  const { sdk, client } = open.table
  const update = new sdk.UpdateItemCommand({
    TableName,
    Key: { pk: { S: refusedText(open.lane) }, sk: { S: sk } },
    UpdateExpression: `REMOVE ${rows.map((_, index) => `#r.#${index}`).join(', ')}`,
    ConditionExpression: 'attribute_exists(pk)',
    ExpressionAttributeNames: { '#r': 'rows', ...Object.fromEntries(rows.map((row, index) => [`#${index}`, row])) },
  })
  await inRefused(open, TableName, 'forget refused rows', true, () => orElse(() => client.send(update)))
}

async function removeEmpty(open: OpenLane, TableName: string, sk: string): Promise<void> {
  const { sdk, client } = open.table
  const remove = new sdk.DeleteItemCommand({
    TableName,
    Key: { pk: { S: refusedText(open.lane) }, sk: { S: sk } },
    ConditionExpression: 'size(#r) = :none',
    ExpressionAttributeNames: { '#r': 'rows' },
    ExpressionAttributeValues: { ':none': { N: '0' } },
  })
  await inRefused(open, TableName, 'forget refused rows', true, () => orElse(() => client.send(remove)))
}

/** A condition that fails tells that there is nothing to do. */
async function orElse(deed: () => Promise<unknown>): Promise<void> {
  try {
    await deed()
  } catch (error) {
    if (conditionFailed(error) === null) throw error
  }
}

interface Page {
  readonly Limit?: number
  readonly ProjectionExpression?: string
  readonly ExclusiveStartKey?: SdkItem | undefined
}

function queryPage(open: OpenLane, TableName: string, page: Page) {
  const { sdk, client } = open.table
  const query = new sdk.QueryCommand({
    TableName,
    ConsistentRead: true,
    // Every sort key begins with a digit; that it has one is what a table of another form is told by.
    KeyConditionExpression: 'pk = :pk AND sk > :before',
    ExpressionAttributeValues: { ':pk': { S: refusedText(open.lane) }, ':before': { S: '#' } },
    ...page,
  })
  return inRefused(open, TableName, 'read refused rows', false, () => client.send(query))
}

/** A request at the table of refused rows; what is wrong with the table itself is told with the way to mend it. */
async function inRefused<T>(
  open: OpenLane,
  table: string,
  verb: string,
  writes: boolean,
  deed: () => Promise<T>,
): Promise<T> {
  const { sink } = open.lane
  const wrong = (code: 'SINK_SCHEMA_INVALID' | 'AWS_RESOURCE_MISSING', fault: string, cause: unknown) =>
    new PawlError(code, `sink ${sink}: table ${table} of refused rows ${fault}`, { sink, table }, cause)
  try {
    return await tryAgain(sinkDeed(open, verb, table, writes), async () => {
      try {
        return await deed()
      } catch (error) {
        throw isInvalid(error) ? wrong('SINK_SCHEMA_INVALID', 'needs the keys pk and sk, both of type S', error) : error
      }
    })
  } catch (error) {
    if (!isPawlError(error) || error.code !== 'AWS_RESOURCE_MISSING') throw error
    throw wrong('AWS_RESOURCE_MISSING', 'is missing: `pawl sinks prepare` makes it', error.cause)
  }
}
