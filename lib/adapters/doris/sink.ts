/**
 * `doris({...})`: a table of Apache Doris as a sink, by stream loads in two phases.
 *
 * Rows wait in the store, and in a load that is prepared in Doris as soon as they are staged: a promote commits that
 * load. Doris has no transaction over two tables, so the marker lies in the store of the pipeline and moves when all
 * loads of the epoch are committed; that no load is committed twice rests on Doris's labels (`settle.ts`). Hence a
 * Doris that was restored from a backup is not noticed, and readers may see an epoch load by load. What becomes of
 * refused rows was said when their part was staged, so that all who promote it do the same (`settle-decided.ts`).
 */
import { createHash } from 'node:crypto'
import { isPawlError, PawlError } from '../../model/errors.ts'
import type { Committable, Marker, StagedPart } from '../../model/manifest.ts'
import type { PromoteResult, RejectPolicy, Sink, StageContext, StageWriter } from '../../ports/sink.ts'
import type { CustomSinkSpec, OpenContext } from '../../ports/spec.ts'
import type { Store } from '../../ports/store.ts'
import { addressOf, type DatabaseConnection } from '../shared/database-address.ts'
import { markerAfter, sameMarker } from '../shared/markers.ts'
import { blockWriter } from '../shared/row-blocks.ts'
import { secretsIn } from '../shared/secret.ts'
import { type LanePlace, refusedCount, rowsWritten, type StoreMarkers, storeMarkers } from '../shared/store-markers.ts'
import { type TableOptions, tableForm, tableMaker } from '../shared/table-options.ts'
import { type RowMaker, rowEncoder } from '../shared/table-rows.ts'
import { dorisHttp } from './http.ts'
import { type DorisLoads, dorisLoads, type PreparedLoad, unlessRetryable } from './loads.ts'
import { namingRow, RefusalSearch, refusalBudget } from './refusals.ts'
import { bodyOf, cellText, csvCellText, type DorisForm, plainColumns } from './rows.ts'
import { type DorisHandle, handleOf, settle } from './settle.ts'
import { settleDecided } from './settle-decided.ts'

/** A table of Doris. */
export interface DorisOptions<K, V>
  extends Pick<TableOptions<K, V>, 'row' | 'key' | 'keyRow' | 'lanes' | 'onReject' | 'timeoutMs'> {
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
  const { connection, lanes = 1, timeoutMs = 60_000, onForgotten = 'fail', onReject = 'park' } = options
  return Object.freeze({
    kind: 'sink',
    type: 'doris',
    guarantee: 'exactly-once',
    onReject,
    lanes,
    resources: secretsIn(connection),
    async open(sink, context) {
      const address = () => addressOf(connection, { sink, protocols: ['http:', 'https:'], port: 8030 })
      const loads = dorisLoads(sink, dorisHttp({ sink, timeoutMs, address }), timeoutMs)
      return dorisSink(sink, context, { form, maker: tableMaker(options), loads, onForgotten, onReject })
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
  readonly onReject: RejectPolicy
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
        const { incarnation, epoch } = context
        const committable = { sink, lane: part.lane, epoch }
        const budget = refusalBudget()
        const search = { loads, store, committable, incarnation, budget, firstRow: 0, countNoted: async () => 0 }
        const prepare = () => loads.prepare(form, label, () => bodyOf(store, part, form))
        const txnId = await prepareEarly(target, prepare, new RefusalSearch(part, form, label, search))
        return { version: target.onReject === 'dead-letter' ? 2 : 1, form, label, txnId }
      })
    },
    async base(lane, marker) {
      return (await markers.move(lane, null, marker)).marker ?? marker
    },
    async promote(committable, permit): Promise<PromoteResult> {
      const { lane, prev } = committable
      const next = markerAfter(committable, permit)
      const place = await promoteParts(markers, committable, next, settling(store, markers, target))
      if (!sameMarker(place.marker, prev)) return { result: 'refused', found: place.marker }
      const now = await markers.move(lane, prev, next, place.since)
      if (!sameMarker(now.marker, next)) return { result: 'refused', found: now.marker }
      const refused = refusedCount(now, next)
      return refused === 0 ? { result: 'promoted' } : { result: 'promoted', refused }
    },
    async marker(lane) {
      return (await markers.look(lane)).marker
    },
    async reassign(lane, from, to) {
      return (await markers.move(lane, from, to)).marker
    },
    refused: markers.refused,
    forget: markers.forget,
    async discard(parts) {
      for (const part of parts) {
        const { txnId, form: staged } = handleOf(part, { sink })
        // One that Doris does not know any more, or a Doris that is away: it aborts by its own clock.
        if (txnId !== null) await loads.abort(staged, txnId).catch(unlessRetryable)
      }
    },
    async close() {},
  }
}

/**
 * A preparation is work saved, no duty: the rows are in the store. Rows that Doris refuses fail the attempt, unless they
 * are to be left out when it is promoted.
 */
async function prepareEarly(
  { onReject }: Target,
  prepare: () => Promise<PreparedLoad | null>,
  search: RefusalSearch,
): Promise<string | null> {
  try {
    const prepared = onReject === 'park' ? namingRow(prepare, search) : prepare()
    return (await prepared)?.txnId ?? null
  } catch (error) {
    if (onReject === 'dead-letter' && isPawlError(error) && error.code === 'ROWS_REFUSED') return null
    return unlessRetryable(error)
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

/** A part that is to be settled, and where its lane stands. */
interface OpenPart {
  readonly part: StagedPart
  readonly committable: Committable
  readonly next: Marker
  readonly place: LanePlace
  /** Rows of the lane's output that come before the part. */
  readonly firstRow: number
  /** What is noted before its commit is attempted, and whether it is. */
  readonly attempt: number
  readonly attempted: boolean
}

/** False when the lane has moved on. */
type SettlePart = (open: OpenPart) => Promise<boolean>

/** Settles parts of one promotion. */
function settling(store: Store, markers: StoreMarkers, { loads, onForgotten }: Target): SettlePart {
  const budget = refusalBudget()
  return async ({ part, committable, next, place, firstRow, attempt, attempted }) => {
    const { lane } = committable
    const { version, form, label } = handleOf(part, committable)
    const countNoted = async () => (await markers.noted(lane, place, next)).length
    const search = { loads, store, committable, incarnation: next.incarnation, budget, firstRow, countNoted }
    if (version === 2)
      return settleDecided(part, {
        ...{ ...search, onForgotten },
        decided: attempted ? await markers.noted(lane, place, next, attempt) : null,
        decide: (refused) => markers.decide(lane, place, next, attempt, refused),
      })
    const noteAttempt = () => markers.note(lane, place, next, attempt)
    const options = { loads, store, committable, onForgotten, attempted, noteAttempt }
    await namingRow(() => settle(part, options), new RefusalSearch(part, form, label, search))
    return true
  }
}

/**
 * Settles the parts that are not noted as settled, in order, as long as the marker is `prev`; answers with where the
 * lane stood when they were. Part k has two steps: 2k + 1, its commit was attempted; 2k + 2, it is settled.
 */
async function promoteParts(
  markers: StoreMarkers,
  committable: Committable,
  next: Marker,
  settlePart: SettlePart,
): Promise<LanePlace> {
  const { lane, prev, parts } = committable
  let place = await markers.look(lane)
  let firstRow = 0
  for (const [index, part] of parts.entries()) {
    const attempt = 2 * index + 1
    const before = firstRow
    firstRow += part.rows
    if (index > 0) place = await markers.look(lane)
    if (!sameMarker(place.marker, prev)) return place
    const step = rowsWritten(place, next)
    if (step > attempt) continue
    const open = { part, committable, next, place, firstRow: before, attempt, attempted: step === attempt }
    if (!(await settlePart(open))) return place
    if (index + 1 < parts.length) await markers.note(lane, place, next, attempt + 1)
  }
  return place
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
