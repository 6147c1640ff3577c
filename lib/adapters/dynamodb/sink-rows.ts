/**
 * Rows on their way through the store: JSON lines, one object a lane and flush, and from there to items.
 *
 * A line is `+` and an item, or `-` and the key of one that is deleted. Rows of one partition key take one lane. Only
 * the last row of a key counts, so a promotion writes each key once; the ones before are read again where it is refused.
 */
import { PawlError } from '../../model/errors.ts'
import type { Committable } from '../../model/manifest.ts'
import type { StageContext, StageWriter } from '../../ports/sink.ts'
import type { Store } from '../../ports/store.ts'
import { lineStageWriter, readLines } from '../shared/lane-lines.ts'
import { laneOf } from '../shared/lanes.ts'
import { type AttributeMap, attributesOf, attributesText, bytesOf, parseAttributes } from './attributes.ts'
import { type DynamoForm, type KeyType, ownAttribute, ownPrefix } from './sink-form.ts'

/** How a pipeline file makes items of values. */
export interface DynamoMaker {
  readonly item: (value: unknown, key: unknown, timestampMs: number) => unknown
  readonly keyItem: ((key: unknown) => unknown) | null
}

/** One row, encoded. */
interface Row {
  readonly lane: number
  readonly line: string
}

/** Bytes of an item, and how many of them ours may need. */
const itemBytesMax = 400 * 1024
const ownBytes = 256
const partitionKeyBytesMax = 2048
const sortKeyBytesMax = 1024

/** Encodes the rows of one invocation. Throws `ENCODE_FAILED`, `RECORD_TOO_LARGE`. */
export function rowEncoder(form: DynamoForm, maker: DynamoMaker, sink: string, { lanes, epoch }: StageContext) {
  return (key: unknown, value: unknown, timestampMs: number): Row => {
    const deleted = value === null || value === undefined
    const made = deleted ? {} : attributesOf(plainObject(maker.item(value, key, timestampMs), form.table), '')
    const item = withKeys(made, form, maker, key)
    const [[name]] = form.keys as [readonly [string, KeyType]]
    if (ownAttribute in item) throw new PawlError('ENCODE_FAILED', `attribute ${ownAttribute} belongs to Pawl`)
    const bytes = bytesOf(item) + ownBytes
    if (bytes > itemBytesMax) {
      const fault = `sink ${sink}, epoch ${epoch}, item ${keyText(item, form)} has ${bytes} bytes, DynamoDB takes ${itemBytesMax}`
      throw new PawlError('RECORD_TOO_LARGE', fault, { sink, epoch, rowKey: keyText(item, form), bytes })
    }
    const lane = laneOf(contentOf(item, name), 0, lanes)
    return { lane, line: `${deleted ? '-' : '+'}${attributesText(item)}\n` }
  }
}

function plainObject(made: unknown, table: string): Readonly<Record<string, unknown>> {
  if (typeof made === 'object' && made !== null && Object.getPrototypeOf(made) === Object.prototype)
    return made as Readonly<Record<string, unknown>>
  const what = made === null ? 'null' : Array.isArray(made) ? 'an array' : `a ${typeof made}`
  throw new PawlError('ENCODE_FAILED', `an item of ${table} is ${what} in place of a plain object`, { table })
}

/** The item with its key attributes; those it does not have itself come from the key of the stream. */
function withKeys(item: AttributeMap, form: DynamoForm, maker: DynamoMaker, key: unknown): AttributeMap {
  const missing = form.keys.some(([name]) => item[name] === undefined)
  const whole = missing ? { ...attributesOf(keyObject(form, maker, key), ''), ...item } : item
  for (const [index, [name, type]] of form.keys.entries()) mustBeKey(whole, name, type, index, form.table)
  return whole
}

function keyObject({ keys, table }: DynamoForm, { keyItem }: DynamoMaker, key: unknown) {
  if (keyItem !== null) return plainObject(keyItem(key), table)
  const [first] = keys
  if (keys.length === 1 && first !== undefined && !isPlain(key)) return { [first[0]]: key }
  return isPlain(key) ? key : {}
}

function isPlain(key: unknown): key is Readonly<Record<string, unknown>> {
  return typeof key === 'object' && key !== null && Object.getPrototypeOf(key) === Object.prototype
}

function mustBeKey(item: AttributeMap, name: string, type: KeyType, index: number, table: string): void {
  const refuse = (fault: string) =>
    new PawlError('ENCODE_FAILED', `key attribute ${name} of ${table} ${fault}`, { table, attribute: name })
  const attribute = item[name]
  if (attribute === undefined) throw refuse('is missing')
  if (!(type in attribute)) throw refuse(`is not of type ${type}`)
  const content = contentOf(item, name)
  const bytes = Buffer.byteLength(content)
  if (bytes === 0) throw refuse('is empty')
  if (type !== 'N' && bytes > (index === 0 ? partitionKeyBytesMax : sortKeyBytesMax)) throw refuse('is too long')
  if (index === 0 && Buffer.from(content).toString('utf8', 0, ownPrefix.length) === ownPrefix)
    throw refuse(`begins with ${ownPrefix}, as keys of Pawl do`)
}

/** What a key attribute holds. */
function contentOf(item: AttributeMap, name: string): string | Uint8Array {
  return Object.values(item[name]!)[0] as string | Uint8Array
}

/** The key of an item as text: for errors, and to tell keys apart. */
export function keyText(item: AttributeMap, { keys }: DynamoForm): string {
  return keys
    .map(([name, type]) => {
      const content = contentOf(item, name)
      return `${name}=${type === 'B' ? Buffer.from(content).toString('base64') : content}`
    })
    .join(', ')
}

/** A writer for one invocation. */
export function dynamoStageWriter(
  form: DynamoForm,
  maker: DynamoMaker,
  sink: string,
  context: StageContext,
): StageWriter {
  const encode = rowEncoder(form, maker, sink, context)
  return lineStageWriter(context, form, (put, key, value, timestampMs) => {
    const { lane, line } = encode(key, value, timestampMs)
    put(lane, line)
  })
}

/** A row that waits in the store. */
export interface StagedRow {
  readonly deleted: boolean
  /** Only the key where it is deleted. */
  readonly item: AttributeMap
  /** Position in the lane's output of the epoch. */
  readonly row: number
}

/** The form of a committable and the last row of each key. Throws `OBJECT_MISSING`, `OBJECT_DAMAGED`. */
export async function readLastRows(
  store: Store,
  committable: Committable,
): Promise<{ readonly form: DynamoForm; readonly rows: ReadonlyMap<string, StagedRow> }> {
  const { sink, parts } = committable
  const form = parts[0]?.handle as DynamoForm | undefined
  if (form?.version !== 1)
    throw new PawlError('STEP_INPUT_INVALID', `staged output of sink ${sink} is of another version`, { sink })
  const rows = new Map<string, StagedRow>()
  await readRows(store, committable, (row) => rows.set(keyText(row.item, form), row))
  return { form, rows }
}

/** All rows of these keys, each key's in order. Throws `OBJECT_MISSING`, `OBJECT_DAMAGED`. */
export async function readRowsOf(
  keys: { has(key: string): boolean },
  store: Store,
  committable: Committable,
  form: DynamoForm,
): Promise<ReadonlyMap<string, readonly StagedRow[]>> {
  const rows = new Map<string, StagedRow[]>()
  await readRows(store, committable, (row) => {
    const key = keyText(row.item, form)
    if (!keys.has(key)) return
    const mine = rows.get(key)
    if (mine === undefined) rows.set(key, [row])
    else mine.push(row)
  })
  return rows
}

async function readRows(store: Store, committable: Committable, take: (row: StagedRow) => void): Promise<void> {
  let row = 0
  await readLines(store, committable, (line) =>
    take({ deleted: line[0] === '-', item: parseAttributes(line.slice(1)), row: row++ }),
  )
}

/** The key attributes of an item. */
export function keyOf(item: AttributeMap, { keys }: DynamoForm): AttributeMap {
  return Object.fromEntries(keys.map(([name]) => [name, item[name]!]))
}
