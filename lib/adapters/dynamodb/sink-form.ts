/**
 * What becomes of rows in a table of DynamoDB: the form that travels with staged output, and the names that are ours.
 *
 * Everything of ours in an item lies in one attribute, `_pawl`. Markers are items of the same table under a key that
 * begins with `pawl#`, so that one backup holds both, or of a table of their own with the one key `pk`.
 */
import type { AttributeMap } from './attributes.ts'

/** `upsert`: item by item, each guarded by its epoch. `transactions`: rows and marker in one, up to 99 rows. */
export type DynamoMode = 'upsert' | 'transactions'

/** Type of a key attribute. */
export type KeyType = 'S' | 'N' | 'B'

/** When tombstones may go. */
export interface TombstoneTtl {
  /** The attribute that the table's time to live looks at. */
  readonly attribute: string
  readonly afterMs: number
}

/** Kept in the staged parts, so that promotion does not depend on the pipeline file. */
export interface DynamoForm {
  readonly version: 1
  readonly mode: DynamoMode
  readonly table: string
  /** Partition key, then sort key if there is one. */
  readonly keys: readonly (readonly [name: string, type: KeyType])[]
  /** Null: the markers lie among the rows. */
  readonly markerTable: string | null
  readonly tombstoneTtl: TombstoneTtl | null
}

/** Whose marker. */
export interface DynamoLane {
  readonly stage: string
  readonly pipeline: string
  readonly sink: string
  readonly lane: number
}

/** The attribute of an item in which everything of ours lies. */
export const ownAttribute = '_pawl'

/** What partition keys of ours begin with; rows may not. */
export const ownPrefix = 'pawl#'

/** What decides where a lane's marker lies. */
export function markerText({ stage, pipeline, sink, lane }: DynamoLane): string {
  return `${ownPrefix}marker#${stage}#${pipeline}#${sink}#${lane}`
}

/** The partition in which refused rows of a lane wait. */
export function refusedText({ stage, pipeline, sink, lane }: DynamoLane): string {
  return `${ownPrefix}refused#${stage}#${pipeline}#${sink}#${lane}`
}

/** Table and key of a lane's marker. */
export function markerPlace(
  form: DynamoForm,
  lane: DynamoLane,
): { readonly table: string; readonly key: AttributeMap } {
  const text = markerText(lane)
  if (form.markerTable !== null) return { table: form.markerTable, key: { pk: { S: text } } }
  const key: Record<string, AttributeMap[string]> = {}
  for (const [index, [name, type]] of form.keys.entries()) {
    const value = index === 0 ? text : 'pawl'
    key[name] = type === 'S' ? { S: value } : type === 'B' ? { B: Buffer.from(value) } : { N: '0' }
  }
  return { table: form.table, key }
}
