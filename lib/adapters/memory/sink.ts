/**
 * A sink in memory, of the transactional, staged family and as strict as the real ones.
 *
 * Rows wait in the store; promote reads them back with their checksums, then compares the marker with `prev`,
 * adds the rows and sets the marker in one transaction, in which it also records the rows that it refuses. What is
 * visible outlives `close`, as a database does: one `MemorySink` stands for it, and each process opens a client with
 * its own store. Without a marker it is the weakest sink that there is: rows become visible one by one.
 */
import { assert } from '../../model/assert.ts'
import { PawlError } from '../../model/errors.ts'
import type { CommitPermit, Committable } from '../../model/manifest.ts'
import type { PromoteResult, RejectPolicy, Sink, SinkLimits } from '../../ports/sink.ts'
import type { Store } from '../../ports/store.ts'
import { markerAfter, sameMarker } from '../shared/markers.ts'
import { withinBytes } from '../shared/refused-rows.ts'
import type { RowSpec } from '../shared/row-encoding.ts'
import { memoryStageWriter, readStagedRows } from './staged-rows.ts'
import { type MemoryRow, type MemoryTable, memoryTable, type RefusedInLane } from './table.ts'

/** The sink itself, apart from the processes that use it. */
export interface MemorySink extends MemoryTable {
  /** The sink as one process sees it; staged rows are read back from `store`. */
  open: (store: Store) => Sink
  /** While true, every call of every client throws `SINK_UNAVAILABLE`. */
  down: boolean
  readonly marked: boolean
  /** How often the promotion of a lane's epoch was begun. */
  tries(lane: number, epoch: number): number
  /** Changed by whoever mends or breaks the table. */
  refuses: (row: MemoryRow) => RowRefusal | null
}

/** Why a row is refused. */
export interface RowRefusal {
  readonly code: string
  readonly column: string | null
  readonly reason: string
}

/** What a new sink is called and how it encodes. */
export interface MemorySinkOptions {
  readonly id: string
  /** Serdes, route and headers of the rows. */
  readonly spec: RowSpec
  readonly limits?: SinkLimits
  /** False: it keeps no marker, and shows rows again when a promotion is repeated. */
  readonly marked?: boolean
  readonly onReject?: RejectPolicy
  readonly refuses?: (row: MemoryRow) => RowRefusal | null
}

/** An empty sink. */
export function memorySink(options: MemorySinkOptions): MemorySink {
  const { marked = true, refuses = () => null } = options
  const tries = new Map<string, number>()
  let recordings = 0
  const nextId = () => `${options.id}-${recordings++}`
  const sink: MemorySink = {
    ...memoryTable(),
    down: false,
    marked,
    refuses,
    tries: (lane, epoch) => tries.get(`${lane}/${epoch}`) ?? 0,
    open: (store) => openMemorySink({ sink, options, store, tries, nextId }),
  }
  return sink
}

interface Client {
  readonly sink: MemorySink
  readonly options: MemorySinkOptions
  readonly store: Store
  readonly tries: Map<string, number>
  /** Recordings of one sink are told apart by number. */
  nextId(): string
}

function openMemorySink(client: Client): Sink {
  const { sink, options, store, tries } = client
  const { id, spec, limits } = options
  const target = `memory:${id}`
  const assertUp = () => {
    // Nothing was touched: not even a weak sink has shown anything.
    if (sink.down) throw new PawlError('SINK_UNAVAILABLE', target, { sink: id, untouched: true })
  }
  return {
    target,
    limits: limits ?? { laneRowsMax: 1_000_000, laneBytesMax: 256 * 1024 * 1024 },
    async stage(context) {
      return memoryStageWriter(context, spec)
    },
    async base(lane, marker) {
      assertUp()
      if (sink.marked) sink.transact(lane, (found) => (found === null ? { rows: [], marker } : null))
      return sink.marker(lane) ?? marker
    },
    async promote(committable, permit) {
      assertUp()
      assert(committable.target === target, `committable for ${committable.target} at ${target}`)
      const name = `${committable.lane}/${committable.epoch}`
      tries.set(name, (tries.get(name) ?? 0) + 1)
      const rows = await readStagedRows(store, committable)
      return sink.marked ? promoteAtOnce(client, committable, permit, rows) : promoteByRow(client, committable, rows)
    },
    async marker(lane) {
      assertUp()
      return sink.marker(lane)
    },
    async reassign(lane, from, to) {
      assertUp()
      sink.transact(lane, (found) => (sameMarker(found, from) ? { rows: [], marker: to } : null))
      return sink.marker(lane)
    },
    async refused(lane, max) {
      assertUp()
      return withinBytes(sink.refused(lane).slice(0, max.rows), max.bytes)
    },
    async forget(_lane, ids) {
      assertUp()
      sink.forget(ids)
    },
    async close() {},
  }
}

function promoteAtOnce(
  client: Client,
  committable: Committable,
  permit: CommitPermit,
  rows: readonly MemoryRow[],
): PromoteResult {
  const { sink, options } = client
  const marker = markerAfter(committable, permit)
  let answer: PromoteResult = { result: 'promoted' }
  sink.transact(committable.lane, (found) => {
    if (!sameMarker(found, committable.prev)) {
      answer = { result: 'refused', found }
      return null
    }
    const refused = refusedAmong(client, rows, committable, permit)
    if (refused.length > 0) answer = { result: 'promoted', refused: refused.length }
    if (refused.length > 0 && options.onReject !== 'dead-letter') throw refusalOf(options.id, committable, refused[0])
    return { rows: refused.length === 0 ? rows : rows.filter((row) => sink.refuses(row) === null), marker, refused }
  })
  return answer
}

/** Each row is an effect of its own, with the world going on in between. */
async function promoteByRow(
  { sink, store }: Client,
  { lane, parts }: Committable,
  rows: readonly MemoryRow[],
): Promise<PromoteResult> {
  for (const row of rows) {
    sink.transact(lane, () => ({ rows: [row] }))
    await store.read(parts[0].objects[0].name, { start: 0, end: 0 })
  }
  return { result: 'promoted' }
}

function refusedAmong(
  { sink, nextId }: Client,
  rows: readonly MemoryRow[],
  { lane, epoch }: Committable,
  { incarnation }: CommitPermit,
): RefusedInLane[] {
  return rows.flatMap((row, index) => {
    const refusal = sink.refuses(row)
    if (refusal === null) return []
    const content = { key: row.key?.toString('base64') ?? null, value: row.value?.toString('base64') ?? null }
    return [{ id: nextId(), lane, incarnation, epoch, row: index, ...refusal, ...content, cutBytes: 0 }]
  })
}

function refusalOf(sink: string, { lane, epoch }: Committable, { row, reason, column }: RefusedInLane): PawlError {
  const fault = `sink ${sink}, lane ${lane}, epoch ${epoch}, row ${row}: ${reason}`
  return new PawlError('ROWS_REFUSED', fault, { sink, lane, epoch, row, column, reason })
}
