/**
 * Sinks that break the marker rule on purpose.
 *
 * To prove that the simulation sees it: each of these is a sink that somebody might write, and each must be caught
 * by the checker. Never for anything but such proofs.
 */
import type { MemorySink } from '../adapters/memory/sink.ts'
import { readStagedRows } from '../adapters/memory/staged-rows.ts'
import { markerAfter, sameMarker } from '../adapters/shared/markers.ts'
import type { Sink } from '../ports/sink.ts'
import type { Store } from '../ports/store.ts'

/**
 * - `marker-outside` the marker is tested first, then rows and marker are written without looking again.
 * - `rows-then-marker` rows in one transaction, the marker in a second one.
 * - `marker-ge` an epoch at or below the marker is skipped, any other is written, whatever `prev` says.
 * - `no-marker` rows are written, no marker is compared or kept beyond the base.
 */
export type SinkSabotage = 'marker-outside' | 'rows-then-marker' | 'marker-ge' | 'no-marker'

/** The sink as one process sees it, with a promote that breaks the rule named by `sabotage`. */
export function sabotagedSink(sink: MemorySink, store: Store, sabotage: SinkSabotage): Sink {
  return { ...sink.open(store), promote: promotes(sink, store)[sabotage] }
}

function promotes(sink: MemorySink, store: Store): Record<SinkSabotage, Sink['promote']> {
  return {
    async 'marker-outside'(committable, permit) {
      const found = sink.marker(committable.lane)
      if (!sameMarker(found, committable.prev)) return { result: 'refused', found }
      const rows = await readStagedRows(store, committable)
      sink.transact(committable.lane, () => ({ rows, marker: markerAfter(committable, permit) }))
      return { result: 'promoted' }
    },
    async 'rows-then-marker'(committable, permit) {
      const found = sink.marker(committable.lane)
      if (!sameMarker(found, committable.prev)) return { result: 'refused', found }
      const rows = await readStagedRows(store, committable)
      sink.transact(committable.lane, () => ({ rows }))
      // Any call of a port is a point where the simulation may end the process.
      await store.read(committable.parts[0]?.objects[0]?.name ?? 'nothing')
      sink.transact(committable.lane, () => ({ rows: [], marker: markerAfter(committable, permit) }))
      return { result: 'promoted' }
    },
    async 'marker-ge'(committable, permit) {
      const rows = await readStagedRows(store, committable)
      sink.transact(committable.lane, (found) => {
        if (found !== null && found.epoch >= committable.epoch) return null
        return { rows, marker: markerAfter(committable, permit) }
      })
      return { result: 'promoted' }
    },
    async 'no-marker'(committable) {
      const rows = await readStagedRows(store, committable)
      sink.transact(committable.lane, () => ({ rows }))
      return { result: 'promoted' }
    },
  }
}
