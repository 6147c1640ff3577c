/**
 * The marker of a lane as an item, and how it is read, made, moved and reassigned.
 *
 * Whatever writes a marker compares it first, in the same request. A condition that fails returns what is there; after
 * a try that stayed unclear it tells whether that one had succeeded. Beside the marker stand the incarnations from which
 * a person took the lane over: their items may be replaced. So a marker that is reset stays as an item that has none.
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

/** What the item of a marker says. */
export interface MarkerState {
  readonly marker: Marker | null
  /** Incarnations whose items may be replaced; never the marker's own. */
  readonly adopted: readonly string[]
}

/** Incarnations that are remembered; more takeovers than a table sees. */
const adoptedMax = 50

function markerItem(key: AttributeMap, { marker, adopted }: MarkerState): AttributeMap {
  const own: Record<string, Attribute> = { v: { N: '1' } }
  if (marker === null) own.g = { BOOL: true }
  else Object.assign(own, { i: { S: marker.incarnation }, e: { N: `${marker.epoch}` }, h: { S: marker.hash } })
  if (adopted.length > 0) own.a = { L: adopted.slice(-adoptedMax).map((S) => ({ S })) }
  return { ...key, [ownAttribute]: { M: own } }
}

/** What an item says. Throws `MARKER_UNKNOWN` for one that is no marker. */
export function stateOf(item: AttributeMap | undefined, { lane }: OpenLane): MarkerState {
  if (item === undefined) return { marker: null, adopted: [] }
  const { v, i, e, h, g, a } = membersOf(item[ownAttribute])
  const adopted = (a?.L ?? []).map(({ S = '' }) => S)
  if (v?.N === '1' && g?.BOOL === true) return { marker: null, adopted }
  if (v?.N === '1' && i?.S !== undefined && e?.N !== undefined && h?.S !== undefined) {
    return { marker: { incarnation: i.S, epoch: Number(e.N), hash: h.S }, adopted }
  }
  throw new PawlError('MARKER_UNKNOWN', `the item in place of the marker of lane ${lane.sink}/${lane.lane} is none`)
}

interface Member {
  readonly S?: string
  readonly N?: string
  readonly BOOL?: boolean
  readonly L?: readonly { readonly S?: string }[]
}

/** Members of a map, whatever they are. */
export function membersOf(attribute: Attribute | undefined): Readonly<Record<string, Member>> {
  return ((attribute as { M?: unknown } | undefined)?.M ?? {}) as Readonly<Record<string, Member>>
}

/** What the item says now. */
export async function readState(open: OpenLane): Promise<MarkerState> {
  const { sdk, client } = open.table
  const { table: TableName, key } = markerPlace(open.form, open.lane)
  const { Item } = await tryAgain(sinkDeed(open, 'read the marker', TableName, false), () =>
    client.send(new sdk.GetItemCommand({ TableName, Key: key as SdkItem, ConsistentRead: true })),
  )
  return stateOf(Item as AttributeMap | undefined, open)
}

interface MarkerPut {
  readonly TableName: string
  readonly Item: SdkItem
  readonly ReturnValuesOnConditionCheckFailure: 'ALL_OLD'
  readonly ConditionExpression: string
  readonly ExpressionAttributeNames: Record<string, string>
  readonly ExpressionAttributeValues: Record<string, { S: string } | { N: string } | { BOOL: boolean }>
}

/** The write that puts `next` in the place of `prev`, for a request or a transaction. */
export function markerMove({ form, lane }: OpenLane, prev: Marker | null, next: MarkerState): MarkerPut {
  const { table, key } = markerPlace(form, lane)
  const put = {
    TableName: table,
    Item: markerItem(key, next) as SdkItem,
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
  }
  if (prev === null) {
    return {
      ...put,
      ConditionExpression: 'attribute_not_exists(#p) OR #p.#g = :g',
      ExpressionAttributeNames: { '#p': ownAttribute, '#g': 'g' },
      ExpressionAttributeValues: { ':g': { BOOL: true } },
    }
  }
  return {
    ...put,
    ConditionExpression: '#p.#i = :i AND #p.#e = :e AND #p.#h = :h',
    ExpressionAttributeNames: { '#p': ownAttribute, '#i': 'i', '#e': 'e', '#h': 'h' },
    ExpressionAttributeValues: { ':i': { S: prev.incarnation }, ':e': { N: `${prev.epoch}` }, ':h': { S: prev.hash } },
  }
}

/** Moves the marker from `prev`. `moved` also when an earlier try of this call had moved it; else what is there. */
export async function moveMarker(
  open: OpenLane,
  prev: Marker | null,
  next: MarkerState,
): Promise<'moved' | MarkerState> {
  const { sdk, client } = open.table
  const put = markerMove(open, prev, next)
  return tryAgain(sinkDeed(open, 'write the marker', put.TableName, true), async ({ unclear }) => {
    try {
      await client.send(new sdk.PutItemCommand(put))
      return 'moved'
    } catch (error) {
      const refused = conditionFailed(error)
      if (refused === null) throw error
      const found = stateOf(refused.item, open)
      return unclear && sameMarker(found.marker, next.marker) ? 'moved' : found
    }
  })
}

/** Makes the marker unless there is one; answers with the one that is there then. */
export async function createMarker(open: OpenLane, marker: Marker): Promise<Marker> {
  const { marker: found, adopted } = await readState(open)
  if (found !== null) return found
  const moved = await moveMarker(open, null, { marker, adopted: without(adopted, marker) })
  return moved === 'moved' ? marker : (moved.marker ?? marker)
}

/** Replaces the marker by a person's decision; answers with the one that is there then. */
export async function reassignMarker(open: OpenLane, from: Marker | null, to: Marker | null): Promise<Marker | null> {
  const { marker, adopted } = await readState(open)
  if (!sameMarker(marker, from)) return marker
  const before = from === null ? adopted : [...without(adopted, from), from.incarnation]
  const moved = await moveMarker(open, from, { marker: to, adopted: to === null ? before : without(before, to) })
  return moved === 'moved' ? to : moved.marker
}

const without = (adopted: readonly string[], { incarnation }: Marker) => adopted.filter((one) => one !== incarnation)
