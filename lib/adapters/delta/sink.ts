/**
 * A Delta table as a sink: data files under their final names, then one log entry that names them all.
 *
 * Rows wait in the store as Parquet files; nothing of an epoch is in the table before it is committed, so a failed
 * attempt leaves nothing there to discard. A promote puts the files where nobody looks yet, and creates one log entry
 * with them and the lane's marker under the next free number. Readers see the entry or do not: whole epochs of a lane.
 * The marker is tested in the state which that entry follows, so an entry that another writer was faster with means to
 * look again, and never to guess.
 */
import { randomUUID } from 'node:crypto'
import { isPawlError, PawlError } from '../../model/errors.ts'
import type { CommitPermit, Committable, Marker } from '../../model/manifest.ts'
import type { PromoteResult, Sink } from '../../ports/sink.ts'
import type { OpenContext } from '../../ports/spec.ts'
import { markerAfter, sameMarker } from '../shared/markers.ts'
import type { TableFiles } from '../shared/table-files.ts'
import type { Action, Add } from './actions.ts'
import { type LaneIdentity, laneAppId, markerOf, markerTxns } from './marker-txns.ts'
import { placeFiles } from './place-files.ts'
import { assertProtocol, createTableSql, evolved, newMetaData, ourProtocol, type TableForm } from './schema.ts'
import { type DeltaRow, deltaStageWriter, handleOf, rowPlan } from './staging.ts'
import { type Decision, TableLog } from './table-log.ts'
import type { TableState } from './table-state.ts'

/** How the place of a table is named and opened; see `lib/delta.ts`. */
export interface TablePlace {
  /** The table as committables name it. */
  locate(table: string, within: string | null): string
  open(located: string, within: string | null): TableFiles
}

/** A table, and who writes it. */
export interface DeltaSinkOptions {
  readonly table: string
  readonly form: TableForm
  readonly row: DeltaRow
  readonly checkpointEvery: number
  readonly place: TablePlace
}

/** What is read, hashed and written in a quarter of a promotion's time at 10 MiB a second. */
const limits = Object.freeze({ laneRowsMax: 20_000_000, laneBytesMax: 2 * 1024 ** 3 })
const scheme = 'delta:'

interface OpenTable {
  readonly files: TableFiles
  readonly log: TableLog
}

/** The sink; nothing is read or written until a lane is registered, promoted or looked at. */
export function deltaSink(sink: string, context: OpenContext, options: DeltaSinkOptions): Sink {
  const { form, row, checkpointEvery, place } = options
  const { stage, pipeline, store, directory } = context
  const target = `${scheme}${place.locate(options.table, directory)}`
  const plan = rowPlan(form)
  const tables = new Map<string, OpenTable>()
  const tableOf = (of: string): OpenTable => {
    const known = tables.get(of)
    if (known !== undefined) return known
    const files = place.open(of.slice(scheme.length), directory)
    const opened = { files, log: new TableLog(files, checkpointEvery) }
    tables.set(of, opened)
    return opened
  }
  const identityOf = (lane: number): LaneIdentity => ({ stage, pipeline, sink, lane })
  return {
    target,
    limits,
    stage: (context) => deltaStageWriter(context, plan, row),
    base(lane, marker) {
      const { files, log } = tableOf(target)
      return log.change<Marker>((state) => {
        const found = markerOf(identityOf(lane), state.txns)
        if (found !== null) return { actions: null, answer: found }
        return { actions: registration(state, identityOf(lane), marker, form, files.location), answer: marker }
      })
    },
    async promote(committable, permit) {
      const { files, log } = tableOf(committable.target)
      const identity = identityOf(committable.lane)
      const found = markerOf(identity, (await log.state()).txns)
      if (!sameMarker(found, committable.prev)) return { result: 'refused', found }
      const parts = committable.parts.map((part) => ({ ...part, ...handleOf(part, committable) }))
      const placed = parts.flatMap(({ files, objects }) =>
        objects.map((object, i) => ({ name: files[i]!.name, object })),
      )
      await placeFiles(files, store, placed)
      return log.change<PromoteResult>((state, unclear) =>
        promotion(state, unclear, identity, committable, permit, files.location),
      )
    },
    async marker(lane) {
      return markerOf(identityOf(lane), (await tableOf(target).log.state()).txns)
    },
    async prepare({ dryRun }) {
      const { files, log } = tableOf(target)
      if (!dryRun) await log.change((state) => ({ actions: creation(state, form), answer: null }))
      return [createTableSql(form, files.location)]
    },
    reassign(lane, from, to) {
      const { files, log } = tableOf(target)
      return log.change((state, unclear) =>
        reassignment(state, unclear, identityOf(lane), from, to, form, files.location),
      )
    },
    async close() {
      for (const { files } of tables.values()) await files.close()
    },
  }
}

/** The entry that begins a table; null where there is one. */
function creation({ protocol, metaData }: TableState, form: TableForm): Action[] | null {
  if (protocol !== null && metaData !== null) return null
  const created = newMetaData(form, randomUUID(), Date.now())
  const commitInfo = { timestamp: Date.now(), operation: 'CREATE TABLE', engineInfo: 'pawl' }
  return [{ commitInfo }, { protocol: ourProtocol }, { metaData: created }]
}

/** The entry that gives a lane a marker, and begins the table where there is none. Throws `SINK_SCHEMA_INVALID`. */
function registration(
  state: TableState,
  identity: LaneIdentity,
  marker: Marker,
  form: TableForm,
  location: string,
): Action[] {
  const txns = markerTxns(identity, marker).map((txn) => ({ txn }))
  const created = creation(state, form)
  if (created !== null) return [...created, ...txns]
  assertProtocol(state.protocol!, location)
  evolved(state.metaData!, form, location)
  return [commitInfo(identity, marker), ...txns]
}

/** What becomes of a person's decision in this state. */
function reassignment(
  state: TableState,
  unclear: boolean,
  identity: LaneIdentity,
  from: Marker | null,
  to: Marker | null,
  form: TableForm,
  location: string,
): Decision<Marker | null> {
  const found = markerOf(identity, state.txns)
  if (!sameMarker(found, from) || (unclear && sameMarker(found, to))) return { actions: null, answer: found }
  if (to !== null) return { actions: registration(state, identity, to, form, location), answer: to }
  return { actions: found === null ? null : markerTxns(identity, null).map((txn) => ({ txn })), answer: null }
}

/** What becomes of a promotion in this state. */
function promotion(
  state: TableState,
  unclear: boolean,
  identity: LaneIdentity,
  committable: Committable,
  permit: CommitPermit,
  location: string,
): Decision<PromoteResult> {
  const found = markerOf(identity, state.txns)
  const after = markerAfter(committable, permit)
  if (unclear && sameMarker(found, after)) return { actions: null, answer: { result: 'promoted' } }
  if (!sameMarker(found, committable.prev)) return { actions: null, answer: { result: 'refused', found } }
  const metaData = schemaChange(state, committable, location)
  return {
    actions: [
      commitInfo(identity, after),
      ...(metaData === null ? [] : [{ metaData }]),
      ...addsOf(committable).map((add) => ({ add })),
      ...markerTxns(identity, after).map((txn) => ({ txn })),
    ],
    answer: { result: 'promoted' },
  }
}

/** New metadata, if the staged rows have columns that the table lacks. Throws `SINK_SCHEMA_INVALID`, naming all. */
function schemaChange({ protocol, metaData }: TableState, committable: Committable, location: string) {
  const { sink, lane, epoch, parts } = committable
  if (protocol === null || metaData === null) {
    throw new PawlError('DELTA_LOG_DAMAGED', `${location}: neither protocol nor metadata`, { table: location })
  }
  try {
    assertProtocol(protocol, location)
    let changed = metaData
    for (const part of parts) changed = evolved(changed, handleOf(part, committable).form, location) ?? changed
    return changed === metaData ? null : changed
  } catch (error) {
    if (!isPawlError(error) || error.code !== 'SINK_SCHEMA_INVALID') throw error
    const fault = `sink ${sink}, lane ${lane}, epoch ${epoch}: table ${location} ${error.details.reason}`
    throw new PawlError(error.code, fault, { sink, lane, epoch, ...error.details }, error.cause)
  }
}

function addsOf(committable: Committable): Add[] {
  return committable.parts.flatMap((part) => {
    const { files } = handleOf(part, committable)
    return part.objects.map(({ bytes }, i): Add => {
      const { name, partitionValues, stagedAtMs, stats } = files[i]!
      return { path: name, partitionValues, size: bytes, modificationTime: stagedAtMs, dataChange: true, stats }
    })
  })
}

/** For people who look at the history of the table. */
function commitInfo(identity: LaneIdentity, marker: Marker): Action {
  const operation = 'STREAMING UPDATE'
  const { incarnation, epoch, hash } = marker
  const operationParameters = { outputMode: 'Append', queryId: laneAppId(identity), epochId: String(epoch) }
  const pawl = { incarnation, epoch, manifestSha256: hash }
  return {
    commitInfo: {
      timestamp: Date.now(),
      operation,
      operationParameters,
      isBlindAppend: true,
      engineInfo: 'pawl',
      pawl,
    },
  }
}
