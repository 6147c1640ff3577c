/**
 * The marker of a lane as an item, and how it is read, made and moved.
 *
 * Whatever writes a marker compares it first, in the same request. A condition that fails returns what is there; after
 * a try that stayed unclear it tells whether that one had succeeded.
 */
import { PawlError } from '../../model/errors.ts'
import type { Marker } from '../../model/manifest.ts'
import { answerOf, type Deed, tryAgain } from '../shared/aws.ts'
import { sameMarker } from '../shared/markers.ts'
import type { Attribute, AttributeMap } from './attributes.ts'
import type { Table } from './client.ts'
import { type DynamoForm, type DynamoLane, markerPlace, ownAttribute } from './sink-form.ts'
import { judgeWrite } from './write.ts'

/** What the SDK takes for attributes: ours are the same, but for being read-only. */
export type SdkItem = Record<string, never>

/** A lane of a sink that is open. */
export interface OpenLane {
  readonly table: Table
  readonly form: DynamoForm
  readonly lane: DynamoLane
}

/** A deed of the sink in one of its tables. */
export function sinkDeed({ lane }: OpenLane, verb: string, table: string, writes: boolean): Deed {
  const text = `${verb} of sink ${lane.sink}, lane ${lane.lane}, in table ${table}`
  return { text, writes, unavailable: 'SINK_UNAVAILABLE', judge: judgeWrite }
}

/** The item that an error of a failed condition returns; null when that is not what happened. */
export function conditionFailed(error: unknown): { readonly item: AttributeMap | undefined } | null {
  if (answerOf(error).name !== 'ConditionalCheckFailedException') return null
  return { item: (error as { readonly Item?: AttributeMap }).Item }
}

function markerItem(key: AttributeMap, { incarnation, epoch, hash }: Marker): AttributeMap {
  return {
    ...key,
    [ownAttribute]: { M: { v: { N: '1' }, i: { S: incarnation }, e: { N: `${epoch}` }, h: { S: hash } } },
  }
}

/** The marker in an item. Throws `MARKER_UNKNOWN` for what is none. */
export function markerOf(item: AttributeMap | undefined, { lane }: OpenLane): Marker | null {
  if (item === undefined) return null
  const { v, i, e, h } = membersOf(item[ownAttribute])
  if (v?.N === '1' && i?.S !== undefined && e?.N !== undefined && h?.S !== undefined) {
    return { incarnation: i.S, epoch: Number(e.N), hash: h.S }
  }
  throw new PawlError('MARKER_UNKNOWN', `the item in place of the marker of lane ${lane.sink}/${lane.lane} is none`)
}

/** Members of a map, whatever they are. */
export function membersOf(attribute: Attribute | undefined): Readonly<Record<string, { S?: string; N?: string }>> {
  return ((attribute as { M?: unknown } | undefined)?.M ?? {}) as Readonly<Record<string, { S?: string; N?: string }>>
}

/** The marker that is there now. */
export async function readMarker(open: OpenLane): Promise<Marker | null> {
  const { sdk, client } = open.table
  const { table: TableName, key } = markerPlace(open.form, open.lane)
  const { Item } = await tryAgain(sinkDeed(open, 'read the marker', TableName, false), () =>
    client.send(new sdk.GetItemCommand({ TableName, Key: key as SdkItem, ConsistentRead: true })),
  )
  return markerOf(Item as AttributeMap | undefined, open)
}

/** Makes the marker unless there is one; answers with the one that is there then. */
export async function createMarker(open: OpenLane, marker: Marker): Promise<Marker> {
  const { sdk, client } = open.table
  const { table: TableName, key } = markerPlace(open.form, open.lane)
  const put = {
    TableName,
    Item: markerItem(key, marker) as SdkItem,
    ConditionExpression: 'attribute_not_exists(#k)',
    ExpressionAttributeNames: { '#k': Object.keys(key)[0]! },
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
  }
  return tryAgain(sinkDeed(open, 'make the marker', TableName, true), async () => {
    try {
      await client.send(new sdk.PutItemCommand(put))
      return marker
    } catch (error) {
      const found = conditionFailed(error)
      if (found === null) throw error
      return markerOf(found.item, open) ?? marker
    }
  })
}

/** The write that moves a marker from `prev`, for a request or a transaction. */
export function markerMove({ form, lane }: OpenLane, prev: Marker, next: Marker) {
  const { table, key } = markerPlace(form, lane)
  return {
    TableName: table,
    Item: markerItem(key, next) as SdkItem,
    ConditionExpression: '#p.#i = :i AND #p.#e = :e AND #p.#h = :h',
    ExpressionAttributeNames: { '#p': ownAttribute, '#i': 'i', '#e': 'e', '#h': 'h' },
    ExpressionAttributeValues: { ':i': { S: prev.incarnation }, ':e': { N: `${prev.epoch}` }, ':h': { S: prev.hash } },
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
  }
}

/** Moves the marker from `prev`. `moved` also when an earlier try of this call had moved it; else what is there. */
export async function moveMarker(open: OpenLane, prev: Marker, next: Marker): Promise<'moved' | Marker | null> {
  const { sdk, client } = open.table
  const put = markerMove(open, prev, next)
  return tryAgain(sinkDeed(open, 'move the marker', put.TableName, true), async ({ unclear }) => {
    try {
      await client.send(new sdk.PutItemCommand(put))
      return 'moved'
    } catch (error) {
      const refused = conditionFailed(error)
      if (refused === null) throw error
      const found = markerOf(refused.item, open)
      return unclear && sameMarker(found, next) ? 'moved' : found
    }
  })
}
