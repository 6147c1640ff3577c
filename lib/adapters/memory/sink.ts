/**
 * A sink in memory, of the transactional, staged family and as strict as the real ones.
 *
 * Rows wait in the store; promote reads them back with their checksums, then compares the marker with `prev`,
 * adds the rows and sets the marker in one transaction. What is visible outlives `close`, as a database does:
 * one `MemorySink` stands for it, and each process opens a client with its own store.
 */
import { assert } from '../../model/assert.ts'
import { PawlError } from '../../model/errors.ts'
import type { PromoteResult, Sink, SinkLimits } from '../../ports/sink.ts'
import type { Store } from '../../ports/store.ts'
import { markerAfter, sameMarker } from '../shared/markers.ts'
import type { RowSpec } from '../shared/row-encoding.ts'
import { memoryStageWriter, readStagedRows } from './staged-rows.ts'
import { type MemoryTable, memoryTable } from './table.ts'

/** The sink itself, apart from the processes that use it. */
export interface MemorySink extends MemoryTable {
  /** The sink as one process sees it; staged rows are read back from `store`. */
  open(store: Store): Sink
  /** While true, every call of every client throws `SINK_UNAVAILABLE`. */
  down: boolean
}

/** What a new sink is called and how it encodes. */
export interface MemorySinkOptions {
  readonly id: string
  /** Serdes, route and headers of the rows. */
  readonly spec: RowSpec
  readonly limits?: SinkLimits
}

/** An empty sink. */
export function memorySink(options: MemorySinkOptions): MemorySink {
  const table = memoryTable()
  const sink: MemorySink = { ...table, down: false, open: (store) => openMemorySink(sink, options, store) }
  return sink
}

function openMemorySink(sink: MemorySink, { id, spec, limits }: MemorySinkOptions, store: Store): Sink {
  const target = `memory:${id}`
  const assertUp = () => {
    if (sink.down) throw new PawlError('SINK_UNAVAILABLE', target, { sink: id })
  }
  return {
    target,
    limits: limits ?? { laneRowsMax: 1_000_000, laneBytesMax: 256 * 1024 * 1024 },
    async stage(context) {
      return memoryStageWriter(context, spec)
    },
    async base(lane, marker) {
      assertUp()
      sink.transact(lane, (found) => (found === null ? { rows: [], marker } : null))
      return sink.marker(lane) ?? marker
    },
    async promote(committable, permit) {
      assertUp()
      assert(committable.target === target, `committable for ${committable.target} at ${target}`)
      const rows = await readStagedRows(store, committable)
      const marker = markerAfter(committable, permit)
      let answer: PromoteResult = { result: 'promoted' }
      sink.transact(committable.lane, (found) => {
        if (sameMarker(found, committable.prev)) return { rows, marker }
        answer = { result: 'refused', found }
        return null
      })
      return answer
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
    async close() {},
  }
}
