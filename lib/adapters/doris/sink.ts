/**
 * `doris({...})`: a table of Apache Doris as a sink, by stream loads in two phases.
 *
 * Rows wait in the store, and in a load that is prepared in Doris as soon as they are staged: a promote commits that
 * load. Doris has no transaction over two tables, so the marker lies in the store of the pipeline and moves when all
 * loads of the epoch are committed; that no load is committed twice rests on Doris's labels (`settle.ts`). Hence a
 * Doris that was restored from a backup is not noticed, and readers may see an epoch load by load.
 */
import { createHash } from 'node:crypto'
import { isPawlError, PawlError } from '../../model/errors.ts'
import type { Committable, Marker, StagedPart } from '../../model/manifest.ts'
import type { PromoteResult, Sink, StageContext, StageWriter } from '../../ports/sink.ts'
import type { CustomSinkSpec, OpenContext } from '../../ports/spec.ts'
import { addressOf, type DatabaseConnection } from '../shared/database-address.ts'
import { markerAfter, sameMarker } from '../shared/markers.ts'
import { blockWriter } from '../shared/row-blocks.ts'
import { secretsIn } from '../shared/secret.ts'
import { rowsWritten, type StoreMarkers, storeMarkers } from '../shared/store-markers.ts'
import { type TableOptions, tableForm, tableMaker } from '../shared/table-options.ts'
import { type RowMaker, rowEncoder } from '../shared/table-rows.ts'
import { dorisHttp } from './http.ts'
import { type DorisLoads, dorisLoads } from './loads.ts'
import { bodyOf, cellText, csvCellText, type DorisForm, plainColumns } from './rows.ts'
import { type DorisHandle, handleOf, settle } from './settle.ts'

/** A table of Doris. */
export interface DorisOptions<K, V> extends Pick<TableOptions<K, V>, 'row' | 'key' | 'keyRow' | 'lanes' | 'timeoutMs'> {
  /** `http://user:password@frontend:8030` (`https:` for TLS: `?sslmode=require`), a function that gives it, or its parts. */
  readonly connection: DatabaseConnection
  /** `database.table`. */
  readonly table: string
  /**
   * `insert` (default) appends, for tables of any model. `upsert` is for Unique Key tables: the last row of a key wins,
   * a null value deletes by the delete sign; `key` names the key columns.
   */
  readonly mode?: 'insert' | 'upsert'
  /** `json` by default; `csv` is smaller and needs `columns`. */
  readonly format?: 'json' | 'csv'
  /** Columns in order, then expressions such as `day=date(at)`: Doris's header `columns`. By name if absent. */
  readonly columns?: readonly string[]
  /**
   * What to do with appended rows when Doris has forgotten whether they were committed: `fail` (default) stops with
   * `LABEL_FORGOTTEN`, `append-again` risks having them twice.
   */
  readonly onForgotten?: 'fail' | 'append-again'
}

const blocks = Object.freeze({ rowsMax: 50_000, bytesMax: 4 * 1024 * 1024 })
const limits = Object.freeze({ laneRowsMax: 500_000, laneBytesMax: 256 * 1024 * 1024 })
const labelCharsMax = 128

/** Describes a table of Doris. Throws `PIPELINE_INVALID` for options that contradict each other. */
export function doris<V, K = unknown>(options: DorisOptions<K, V>): CustomSinkSpec<K, V> {
  const form = dorisForm(options)
  const { connection, lanes = 1, timeoutMs = 60_000, onForgotten = 'fail' } = options
  return Object.freeze({
    kind: 'sink',
    type: 'doris',
    guarantee: 'exactly-once',
    lanes,
    resources: secretsIn(connection),
    async open(sink, context) {
      const address = () => addressOf(connection, { sink, protocols: ['http:', 'https:'], port: 8030 })
      const loads = dorisLoads(sink, dorisHttp({ sink, timeoutMs, address }), timeoutMs)
      return dorisSink(sink, context, { form, maker: tableMaker(options), loads, onForgotten })
    },
  } satisfies CustomSinkSpec<K, V>)
}

function dorisForm<K, V>(options: DorisOptions<K, V>): DorisForm {
  const { table, format = 'json', columns = null } = options
  const refuse = (fault: string) => new PawlError('PIPELINE_INVALID', `doris: table ${JSON.stringify(table)}: ${fault}`)
  const form = tableForm('doris', options)
  if (table.split('.').length !== 2) throw refuse('name it as database.table')
  if (format === 'csv' && columns === null) throw refuse('format csv needs columns')
  const missing = columns === null ? [] : form.key.filter((name) => !plainColumns(columns).includes(name))
  if (missing.length > 0) throw refuse(`columns lacks key column ${missing.join(', ')}`)
  return Object.freeze({ ...form, format, columns: columns === null ? null : Object.freeze([...columns]) })
}

interface Target {
  readonly form: DorisForm
  readonly maker: RowMaker
  readonly loads: DorisLoads
  readonly onForgotten: 'fail' | 'append-again'
}

function dorisSink(sink: string, { pipeline, stage, store }: OpenContext, target: Target): Sink {
  const { form, maker, loads } = target
  const markers = storeMarkers(store, pipeline, sink)
  const encode = form.format === 'csv' ? csvCellText : cellText
  return {
    target: `doris:${form.table}`,
    limits,
    async stage(context) {
      const writer = blockWriter(context, rowEncoder(form, maker, encode, context.lanes), blocks, null)
      return preparing(writer, async (part) => {
        const label = labelOf([stage, pipeline, sink], part.lane, context)
        return { version: 1, form, label, txnId: await prepareEarly(loads, form, label, part) }
      })
    },
    async base(lane, marker) {
      return (await markers.move(lane, null, marker)).marker ?? marker
    },
    async promote(committable, permit): Promise<PromoteResult> {
      const { lane, prev } = committable
      const next = markerAfter(committable, permit)
      const found = await promoteParts(markers, committable, next, (part, attempted, noteAttempt) =>
        settle(part, { loads, store, committable, onForgotten: target.onForgotten, attempted, noteAttempt }),
      )
      if (!sameMarker(found, prev)) return { result: 'refused', found }
      const { marker: now } = await markers.move(lane, prev, next)
      return sameMarker(now, next) ? { result: 'promoted' } : { result: 'refused', found: now }
    },
    async marker(lane) {
      return (await markers.look(lane)).marker
    },
    async reassign(lane, from, to) {
      return (await markers.move(lane, from, to)).marker
    },
    async discard(parts) {
      for (const part of parts) {
        const { txnId, form: staged } = handleOf(part, { sink })
        // One that Doris does not know any more, or a Doris that is away: it aborts by its own clock.
        if (txnId !== null) await loads.abort(staged, txnId).catch(unlessRetryable)
      }
    },
    async close() {},
  }

  /** A preparation is work saved, no duty: the rows are in the store. Rows that Doris refuses fail the attempt. */
  function prepareEarly(to: DorisLoads, of: DorisForm, label: string, part: StagedPart): Promise<string | null> {
    return to.prepare(of, label, () => bodyOf(store, part, of)).then((load) => load?.txnId ?? null, unlessRetryable)
  }
}

function preparing(writer: StageWriter, handle: (part: StagedPart) => Promise<DorisHandle>): StageWriter {
  return {
    get bufferedBytes() {
      return writer.bufferedBytes
    },
    add: writer.add,
    flush: writer.flush,
    async seal() {
      const parts: StagedPart[] = []
      for (const part of await writer.seal()) parts.push({ ...part, handle: await handle(part) })
      return parts
    },
  }
}

type SettlePart = (part: StagedPart, attempted: boolean, noteAttempt: () => Promise<void>) => Promise<void>

/**
 * Settles the parts that are not noted as settled, in order, as long as the marker is `prev`; answers with the marker.
 * Part k has two steps: 2k + 1, its commit was attempted; 2k + 2, it is settled.
 */
async function promoteParts(
  markers: StoreMarkers,
  { lane, prev, parts }: Committable,
  next: Marker,
  settlePart: SettlePart,
): Promise<Marker | null> {
  let place = await markers.look(lane)
  for (const [index, part] of parts.entries()) {
    const attempt = 2 * index + 1
    if (index > 0) place = await markers.look(lane)
    if (!sameMarker(place.marker, prev)) return place.marker
    const step = rowsWritten(place, next)
    if (step > attempt) continue
    const at = place
    await settlePart(part, step === attempt, () => markers.note(lane, at, next, attempt))
    if (index + 1 < parts.length) await markers.note(lane, at, next, attempt + 1)
  }
  return place.marker
}

/** Names stage, pipeline, sink, lane, incarnation, epoch and invocation, so that no two parts share one. */
function labelOf(of: readonly string[], lane: number, { incarnation, epoch, prefix }: StageContext): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([...of, lane, incarnation, epoch, prefix]))
    .digest('hex')
  const end = `-${lane}-${epoch}-${digest.slice(0, 40)}`
  return `${['pawl', ...of]
    .join('-')
    .replaceAll(/[^A-Za-z0-9-]/g, '_')
    .slice(0, labelCharsMax - end.length)}${end}`
}

function unlessRetryable(error: unknown): null {
  if (isPawlError(error) && error.kind === 'Retryable') return null
  throw error
}
