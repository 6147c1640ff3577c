/**
 * `dynamodb({...})`: items of a table as a sink, by guarded upserts or by small transactions.
 *
 * Rows wait in the store; see `sink-guarded.ts` and `sink-transaction.ts` for how they become items. Guarded, each key shows each epoch once, and
 * readers see the items of an epoch one by one; in transactions they see all of a lane's rows at once. No session stays
 * open, so nothing of ours is lost by a clock of theirs, however long the table is away.
 */
import { PawlError } from '../../model/errors.ts'
import type { RejectPolicy, Sink, SinkLimits } from '../../ports/sink.ts'
import type { CustomSinkSpec, OpenContext } from '../../ports/spec.ts'
import type { AwsOptions } from '../shared/aws.ts'
import { markerAfter } from '../shared/markers.ts'
import { lazyTable } from './client.ts'
import { type DynamoForm, type DynamoMode, type KeyType, ownAttribute, type TombstoneTtl } from './sink-form.ts'
import { promoteGuarded } from './sink-guarded.ts'
import { createMarker, type OpenLane, readState, reassignMarker } from './sink-marker.ts'
import { prepareTables } from './sink-prepare.ts'
import { forgetRefused, mustTakeRefused, readRefused } from './sink-refused.ts'
import { type DynamoMaker, dynamoStageWriter, readLastRows } from './sink-rows.ts'
import { promoteInTransaction, transactionRowsMax } from './sink-transaction.ts'

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
  /**
   * What becomes of a row that the table refuses: `park` (default) stops the pipeline there; `dead-letter` writes the
   * others and sends it to the pipeline's dead letters.
   */
  readonly onReject?: RejectPolicy
  /**
   * The table in which refused rows wait for the next epoch, with the keys `pk` and `sk` of type S; `pawl_refused` by
   * default. `pawl sinks prepare` makes it, a run never does.
   */
  readonly refusedTable?: string
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
  const { item, keyItem, lanes = 1, region, onReject = 'park' } = options
  const refusedTable = refusedTableOf(form, options)
  const maker: DynamoMaker = {
    item: (item as DynamoMaker['item'] | undefined) ?? ((value) => value),
    keyItem: (keyItem as DynamoMaker['keyItem'] | undefined) ?? null,
  }
  return Object.freeze({
    kind: 'sink',
    type: 'dynamodb',
    guarantee: 'exactly-once',
    onReject,
    lanes,
    resources: [
      {
        of: 'dynamodb',
        table: form.table,
        keyType: form.keys[0]![1],
        markerTable: form.markerTable,
        refusedTable,
        deletes: form.mode === 'transactions',
        ...(region === undefined ? {} : { region }),
      },
    ],
    open: async (sink, context) => dynamoSink(sink, context, { form, maker, refusedTable }, options),
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

const refusedTableDefault = 'pawl_refused'

/** Null where refused rows park. */
function refusedTableOf<K, V>({ table, markerTable }: DynamoForm, options: DynamoOptions<K, V>): string | null {
  const { onReject = 'park', refusedTable = refusedTableDefault } = options
  if (onReject === 'park') return null
  if (refusedTable !== '' && refusedTable !== table && refusedTable !== markerTable) return refusedTable
  const fault = `refusedTable is ${JSON.stringify(refusedTable)}: it is a table of its own`
  throw new PawlError('PIPELINE_INVALID', `dynamodb: table ${JSON.stringify(table)}: ${fault}`)
}

interface Made {
  readonly form: DynamoForm
  readonly maker: DynamoMaker
  readonly refusedTable: string | null
}

function dynamoSink<K, V>(
  sink: string,
  { stage, pipeline, store }: OpenContext,
  { form, maker, refusedTable }: Made,
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
    async base(lane, marker) {
      const open = await openLane(lane)
      if (refusedTable !== null) await mustTakeRefused(open, refusedTable)
      return createMarker(open, marker)
    },
    async promote(committable, permit, { healing = false } = {}) {
      const next = markerAfter(committable, permit)
      const { form: staged, rows } = await readLastRows(store, committable)
      const open = await openLane(committable.lane, staged)
      const promotion = { open, committable, next, rows, healing, store, refusedTable }
      return staged.mode === 'upsert' ? promoteGuarded(promotion) : promoteInTransaction(promotion)
    },
    marker: async (lane) => (await readState(await openLane(lane))).marker,
    prepare: async ({ dryRun }) => prepareTables(table.open, { markerTable: form.markerTable, refusedTable }, dryRun),
    reassign: async (lane, from, to) => reassignMarker(await openLane(lane), from, to),
    ...(refusedTable === null
      ? {}
      : ({
          refused: async (lane, max) => readRefused(await openLane(lane), refusedTable, max),
          forget: async (lane, ids) => forgetRefused(await openLane(lane), refusedTable, ids),
        } satisfies Partial<Sink>)),
    close: () => table.close(),
  }
}
