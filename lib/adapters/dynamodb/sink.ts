/**
 * `dynamodb({...})`: items of a table as a sink, by guarded upserts or by small transactions.
 *
 * Rows wait in the store; see `sink-write.ts` for how they become items. Guarded, each key shows each epoch once, and
 * readers see the items of an epoch one by one; in transactions they see all of a lane's rows at once. No session stays
 * open, so nothing of ours is lost by a clock of theirs, however long the table is away.
 */
import { PawlError } from '../../model/errors.ts'
import type { Sink, SinkLimits } from '../../ports/sink.ts'
import type { CustomSinkSpec, OpenContext } from '../../ports/spec.ts'
import type { AwsOptions } from '../shared/aws.ts'
import { markerAfter } from '../shared/markers.ts'
import { lazyTable } from './client.ts'
import { type DynamoForm, type DynamoMode, type KeyType, ownAttribute, type TombstoneTtl } from './sink-form.ts'
import { createMarker, type OpenLane, readState, reassignMarker } from './sink-marker.ts'
import { prepareMarkers } from './sink-prepare.ts'
import { type DynamoMaker, dynamoStageWriter, readLastRows } from './sink-rows.ts'
import { promoteGuarded, promoteInTransaction, transactionRowsMax } from './sink-write.ts'

/** A table, and how values become its items. */
export interface DynamoOptions<K, V> extends AwsOptions {
  readonly table: string
  /** Its key attributes and their types, the partition key first: `{ customer: 'S', day: 'N' }`. */
  readonly keys: Readonly<Record<string, KeyType>>
  /**
   * `upsert` (default) writes item by item, each guarded by its epoch; `transactions` writes a lane's rows and its
   * marker at once, at most 99 an epoch and lane.
   */
  readonly mode?: DynamoMode
  /** The item of a value; the value itself by default. Key attributes that it lacks come from the key. */
  readonly item?: (value: NonNullable<V>, key: K, timestampMs: number) => object
  /** Key attributes of a row; by default the key of the stream, for a table with a partition key only. */
  readonly keyItem?: (key: K) => object
  /** Promotion strands; items of one partition key stay in one. 1 by default. */
  readonly lanes?: number
  /** A table for the markers, with the one key `pk` of type S; by default they lie among the rows. */
  readonly markerTable?: string
  /** For `upsert`: when the items that deletions leave behind may go. Never by default; a day at least. */
  readonly tombstoneTtl?: TombstoneTtl
}

const dayMs = 86_400_000
/** At a thousand writes a second, which one partition takes, a minute. */
const upsertLimits: SinkLimits = Object.freeze({ laneRowsMax: 50_000, laneBytesMax: 64 * 1024 * 1024 })
/** 4 MB with the marker; staged rows are larger than their items. */
const transactionLimits: SinkLimits = Object.freeze({ laneRowsMax: transactionRowsMax, laneBytesMax: 3_900_000 })

/** Describes a table of DynamoDB as a sink. Throws `PIPELINE_INVALID` for options that contradict each other. */
export function dynamodb<V, K = string>(options: DynamoOptions<K, V>): CustomSinkSpec<K, V> {
  const form = formOf(options)
  const { item, keyItem, lanes = 1, region } = options
  const maker: DynamoMaker = {
    item: (item as DynamoMaker['item'] | undefined) ?? ((value) => value),
    keyItem: (keyItem as DynamoMaker['keyItem'] | undefined) ?? null,
  }
  return Object.freeze({
    kind: 'sink',
    type: 'dynamodb',
    guarantee: 'exactly-once',
    lanes,
    resources: [
      {
        of: 'dynamodb',
        table: form.table,
        keyType: form.keys[0]![1],
        markerTable: form.markerTable,
        deletes: form.mode === 'transactions',
        ...(region === undefined ? {} : { region }),
      },
    ],
    open: async (sink, context) => dynamoSink(sink, context, form, maker, options),
  } satisfies CustomSinkSpec<K, V>)
}

function formOf<K, V>({ table, keys, mode = 'upsert', ...options }: DynamoOptions<K, V>): DynamoForm {
  const { lanes = 1, markerTable = null, tombstoneTtl = null } = options
  const refuse = (fault: string) =>
    new PawlError('PIPELINE_INVALID', `dynamodb: table ${JSON.stringify(table)}: ${fault}`)
  const named = Object.entries(keys)
  const [first] = named
  if (table === '') throw refuse('the name is empty')
  if (first === undefined || named.length > 2)
    throw refuse('keys names its partition key and, if it has one, its sort key')
  for (const [name, type] of named) {
    if (!['S', 'N', 'B'].includes(type)) throw refuse(`key ${name} has type ${JSON.stringify(type)}, not S, N or B`)
    if (name === '' || name === ownAttribute) throw refuse(`a key is called ${JSON.stringify(name)}`)
  }
  if (first[1] === 'N' && markerTable === null)
    throw refuse('markers have no place beside a partition key of type N: name a markerTable')
  if (markerTable === table) throw refuse('markerTable is another table, or left out')
  if (!Number.isSafeInteger(lanes) || lanes < 1) throw refuse(`lanes is ${lanes}`)
  if (tombstoneTtl !== null) {
    if (mode !== 'upsert') throw refuse('tombstoneTtl belongs to mode upsert; a transaction deletes')
    if (!(tombstoneTtl.afterMs >= dayMs))
      throw refuse(`tombstoneTtl.afterMs is ${tombstoneTtl.afterMs}, a day at least`)
    if (tombstoneTtl.attribute in keys) throw refuse('tombstoneTtl.attribute is a key')
  }
  return Object.freeze({ version: 1, mode, table, keys: Object.freeze(named), markerTable, tombstoneTtl })
}

function dynamoSink<K, V>(
  sink: string,
  { stage, pipeline, store }: OpenContext,
  form: DynamoForm,
  maker: DynamoMaker,
  options: DynamoOptions<K, V>,
): Sink {
  const { region, endpoint, credentials, timeoutMs } = options
  const given = { region, endpoint, credentials, timeoutMs }
  const aws = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as AwsOptions
  const table = lazyTable({ ...aws, table: form.table })
  const openLane = async (lane: number, staged = form): Promise<OpenLane> => {
    return { table: await table.open(), form: staged, lane: { stage, pipeline, sink, lane } }
  }
  return {
    target: `dynamodb:${form.table}`,
    limits: form.mode === 'upsert' ? upsertLimits : transactionLimits,
    async stage(context) {
      return dynamoStageWriter(form, maker, sink, context)
    },
    base: async (lane, marker) => createMarker(await openLane(lane), marker),
    async promote(committable, permit, { healing = false } = {}) {
      const next = markerAfter(committable, permit)
      const { form: staged, rows } = await readLastRows(store, committable)
      const open = await openLane(committable.lane, staged)
      const promotion = { open, committable, next, rows, healing }
      return staged.mode === 'upsert' ? promoteGuarded(promotion) : promoteInTransaction(promotion)
    },
    marker: async (lane) => (await readState(await openLane(lane))).marker,
    prepare: async ({ dryRun }) => prepareMarkers(table.open, form.markerTable, dryRun),
    reassign: async (lane, from, to) => reassignMarker(await openLane(lane), from, to),
    close: () => table.close(),
  }
}
