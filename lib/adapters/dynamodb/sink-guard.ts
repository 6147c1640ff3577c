/**
 * What an item says of the epoch that wrote it, and writes that hold only while it says what they expect.
 *
 * The guard is the attribute `_pawl`: incarnation `i`, epoch `e`, beginning of the manifest's hash `h`; `d` marks a
 * tombstone. Where rows of the epoch were refused, `r` is the position of the first of them, and `k` says that the item
 * was kept as it was before the epoch. So what was decided of a row stands in its item, for every promoter.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Marker } from '../../model/manifest.ts'
import { tryAgain, verdictOf } from '../shared/aws.ts'
import type { Attribute, AttributeMap } from './attributes.ts'
import { ownAttribute } from './sink-form.ts'
import { conditionFailed, membersOf, type SdkItem, sinkDeed } from './sink-marker.ts'
import { conflict, isInvalid, type Promotion, rowRefused } from './sink-promotion.ts'
import { keyOf, keyText, type StagedRow } from './sink-rows.ts'
import { judgeWrite } from './write.ts'

/** Enough of a hash to tell two histories of one epoch apart. */
const hashChars = 16

/** What was decided of a key's rows: those from `from` on are refused; the one before is written, unless `kept`. */
export interface Decided {
  readonly from: number
  readonly kept: boolean
}

/** How an item stands to the epoch that is promoted. */
export type Standing = 'older' | 'newer' | 'written' | Decided

/** Throws `MARKER_FOREIGN` and `MARKER_UNKNOWN` for an item of another incarnation or history. */
export function standingOf(
  promotion: Promotion,
  adopted: readonly string[],
  key: string,
  item: AttributeMap | undefined,
): Standing {
  const { next } = promotion
  if (item?.[ownAttribute] === undefined) return 'older'
  const { i, e, h, r, k } = membersOf(item[ownAttribute])
  if (i?.S !== next.incarnation) {
    if (i?.S !== undefined && adopted.includes(i.S)) return 'older'
    throw conflict(promotion, key, 'MARKER_FOREIGN', `belongs to incarnation ${i?.S ?? 'of nobody'}`)
  }
  const epoch = Number(e?.N)
  if (epoch > next.epoch) return 'newer'
  if (epoch < next.epoch) return 'older'
  if (epoch !== next.epoch || h?.S !== next.hash.slice(0, hashChars))
    throw conflict(promotion, key, 'MARKER_UNKNOWN', `was written by another epoch ${e?.N}`)
  return r?.N === undefined ? 'written' : { from: Number(r.N), kept: k?.BOOL === true }
}

/** The guard of an item of this epoch. */
function guardOf(next: Marker, decided: Decided | null, deleted: boolean): Attribute {
  const guard: Record<string, Attribute> = {
    i: { S: next.incarnation },
    e: { N: `${next.epoch}` },
    h: { S: next.hash.slice(0, hashChars) },
  }
  if (decided !== null) guard.r = { N: `${decided.from}` }
  if (decided?.kept === true) guard.k = { BOOL: true }
  if (deleted) guard.d = { BOOL: true }
  return { M: guard }
}

/** What must hold for a write. */
export interface Condition {
  readonly text: string
  readonly names: Readonly<Record<string, string>>
  readonly values: Readonly<Record<string, Attribute>>
}

/** The item is of an earlier epoch, or of an incarnation whose items may be replaced. */
export function whileOlder(next: Marker, adopted: readonly string[]): Condition {
  const others = adopted.map((incarnation, index) => [`:a${index}`, { S: incarnation }] as const)
  const taken = others.length === 0 ? '' : ` OR #p.#i IN (${others.map(([name]) => name).join(', ')})`
  return {
    text: `attribute_not_exists(#p) OR (#p.#i = :i AND #p.#e < :e)${taken}`,
    names: { '#p': ownAttribute, '#i': 'i', '#e': 'e' },
    values: { ':i': { S: next.incarnation }, ':e': { N: `${next.epoch}` }, ...Object.fromEntries(others) },
  }
}

/** The item was kept, and the rows from this position on are refused. */
export function whileKept(next: Marker, from: number): Condition {
  const { M } = guardOf(next, { from, kept: true }, false) as { readonly M: AttributeMap }
  const members = Object.entries(M)
  return {
    text: members.map(([name]) => `#p.#${name} = :${name}`).join(' AND '),
    names: { '#p': ownAttribute, ...Object.fromEntries(members.map(([name]) => [`#${name}`, name])) },
    values: Object.fromEntries(members.map(([name, value]) => [`:${name}`, value])),
  }
}

/** What became of a conditional write. */
export type Answer =
  | { readonly did: 'written' }
  | { readonly did: 'blocked'; readonly item: AttributeMap | undefined }
  | { readonly did: 'refused'; readonly reason: string; readonly cause: unknown }

/** Writes a row, or the tombstone of one. Throws `ROWS_REFUSED` for what no row is to be blamed for. */
export function putRow(
  promotion: Promotion,
  row: StagedRow,
  decided: Decided | null,
  { text, names, values }: Condition,
): Promise<Answer> {
  const { open, next } = promotion
  const { sdk, client } = open.table
  const guarded: AttributeMap = { ...row.item, [ownAttribute]: guardOf(next, decided, row.deleted) }
  const put = new sdk.PutItemCommand({
    TableName: open.form.table,
    Item: (row.deleted ? { ...guarded, ...expiry(promotion) } : guarded) as SdkItem,
    ConditionExpression: text,
    ExpressionAttributeNames: names,
    ExpressionAttributeValues: values as SdkItem,
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  })
  return write(promotion, row, () => client.send(put))
}

/**
 * Keeps an item as it is and marks it with what was decided; one without content becomes a tombstone. `bare` says that it
 * has none, and is tested in the same write.
 */
export function keepItem(
  promotion: Promotion,
  row: StagedRow,
  bare: boolean,
  { text, names, values }: Condition,
): Promise<Answer> {
  const { open, next } = promotion
  const { sdk, client } = open.table
  const [[key]] = open.form.keys as [readonly [string, unknown]]
  const ttl = bare ? Object.entries(expiry(promotion)) : []
  const same = bare
    ? '(attribute_not_exists(#key) OR #p.#d = :yes)'
    : 'attribute_exists(#key) AND attribute_not_exists(#p.#d)'
  const update = new sdk.UpdateItemCommand({
    TableName: open.form.table,
    Key: keyOf(row.item, open.form) as SdkItem,
    UpdateExpression: ttl.length === 0 ? 'SET #p = :guard' : 'SET #p = :guard, #t = :t',
    ConditionExpression: `(${text}) AND ${same}`,
    ExpressionAttributeNames: {
      ...names,
      '#key': key,
      '#d': 'd',
      ...Object.fromEntries(ttl.map(([name]) => ['#t', name])),
    },
    ExpressionAttributeValues: {
      ...values,
      ...(bare ? { ':yes': { BOOL: true } } : {}),
      ':guard': guardOf(next, { from: row.row, kept: true }, bare),
      ...Object.fromEntries(ttl.map(([, value]) => [':t', value])),
    } as unknown as SdkItem,
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  })
  return write(promotion, row, () => client.send(update))
}

function write(promotion: Promotion, row: StagedRow, send: () => Promise<unknown>): Promise<Answer> {
  const { open } = promotion
  return tryAgain(sinkDeed(open, 'write an item', open.form.table, true), async (): Promise<Answer> => {
    try {
      await send()
      return { did: 'written' }
    } catch (error) {
      const refused = conditionFailed(error)
      if (refused !== null) return { did: 'blocked', item: refused.item }
      const reason = (error as Error).message
      if (isInvalid(error)) return { did: 'refused', reason, cause: error }
      const verdict = judgeWrite(error) ?? verdictOf(error)
      throw verdict === 'refused' ? rowRefused(promotion, keyText(row.item, open.form), reason, error) : error
    }
  })
}

/** When a tombstone may go. */
function expiry({ open }: Promotion): AttributeMap {
  const { tombstoneTtl } = open.form
  if (tombstoneTtl === null) return {}
  return { [tombstoneTtl.attribute]: { N: `${Math.ceil((Date.now() + tombstoneTtl.afterMs) / 1000)}` } }
}

/** True when the item has no content: it is not there, or a tombstone. */
export function isBare(item: AttributeMap | undefined): boolean {
  return item === undefined || membersOf(item[ownAttribute]).d?.BOOL === true
}

/** True when nobody of ours has changed an item. */
export function sameGuard(a: AttributeMap | undefined, b: AttributeMap | undefined): boolean {
  return isDeepStrictEqual(a?.[ownAttribute], b?.[ownAttribute])
}

/** Works on many at once; all work has ended when it returns. Throws the first error, after which nothing more is begun. */
export async function manyAtOnce<T>(all: Iterable<T>, deed: (one: T) => Promise<'go-on' | 'stop'>): Promise<void> {
  const rest = all[Symbol.iterator]()
  let stopped = false
  const work = async () => {
    while (!stopped) {
      const { done, value } = rest.next()
      if (done === true) return
      try {
        if ((await deed(value as T)) === 'stop') return
      } catch (error) {
        stopped = true
        throw error
      }
    }
  }
  const ends = await Promise.allSettled(Array.from({ length: writesAtOnce }, work))
  for (const end of ends) if (end.status === 'rejected') throw end.reason
}

const writesAtOnce = 32
