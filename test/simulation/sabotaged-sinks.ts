/**
 * More sinks that break a rule on purpose, beside those of `lib/testing/sabotage.ts`.
 *
 * Each keeps all rules but one. Used by the mutation proofs only.
 */
import type { MemorySink } from '../../lib/adapters/memory/sink.ts'
import { readStagedRows } from '../../lib/adapters/memory/staged-rows.ts'
import { markerAfter } from '../../lib/adapters/shared/markers.ts'
import { PawlError } from '../../lib/index.ts'
import type { Sink } from '../../lib/ports/sink.ts'
import type { Store } from '../../lib/ports/store.ts'
import type { Sabotage } from '../../lib/testing/actor.ts'
import { type SinkSabotage, sabotagedSink } from '../../lib/testing/sabotage.ts'
import type { World } from '../../lib/testing/world.ts'

type Change = (sink: Sink, table: MemorySink, store: Store, world: World) => Partial<Sink>

const sinkWith = (change: Change): Sabotage => ({
  sink(world, id, store) {
    const table = world.sinks.get(id)!
    const sink = table.open(store)
    return { ...sink, ...change(sink, table, store, world) }
  },
})

/** A sink of `lib/testing/sabotage.ts`. */
export const sinkOf = (kind: SinkSabotage): Sabotage => ({
  sink: (world, id, store) => sabotagedSink(world.sinks.get(id)!, store, kind),
})

/** The marker must be that of the epoch right before. */
export const prevIsLastEpoch = sinkWith((sink, table) => ({
  async promote(committable, permit) {
    const found = table.marker(committable.lane)
    if (found?.epoch !== committable.epoch - 1) return { result: 'refused', found }
    return sink.promote(committable, permit)
  },
}))

/** No marker: nothing was ever written, so write. */
export const absenceIsBeginning = sinkWith((sink, table, store) => ({
  async promote(committable, permit) {
    if (table.marker(committable.lane) !== null) return sink.promote(committable, permit)
    const rows = await readStagedRows(store, committable)
    table.transact(committable.lane, () => ({ rows, marker: markerAfter(committable, permit) }))
    return { result: 'promoted' }
  },
}))

/** Markers hold epochs and no hash. */
export const markerWithoutHash = sinkWith((_, table, store) => ({
  async promote(committable, permit) {
    const rows = await readStagedRows(store, committable)
    table.transact(committable.lane, (found) =>
      found?.epoch === committable.prev.epoch ? { rows, marker: markerAfter(committable, permit) } : null,
    )
    return { result: 'promoted' }
  },
}))

/** What was prepared in the sink is forgotten after a quarter of an hour, and its promotion still succeeds. */
export const forgetful = sinkWith((sink, table, _, world) => {
  const preparedAtMs = new Map<number, number>()
  return {
    stage(context) {
      preparedAtMs.set(context.epoch, world.clock.nowMs())
      return sink.stage(context)
    },
    async promote(committable, permit) {
      const ageMs = world.clock.nowMs() - (preparedAtMs.get(committable.epoch) ?? 0)
      if (table.down || ageMs < 900_000) return sink.promote(committable, permit)
      table.transact(committable.lane, () => ({ rows: [], marker: markerAfter(committable, permit) }))
      return { result: 'promoted' }
    },
  }
})

/** Promotes at most so many rows a lane; says so to precommit, or keeps it to itself. */
export const narrow = (rowsMax: number, says: boolean): Sabotage =>
  sinkWith((sink) => ({
    limits: says ? { ...sink.limits, laneRowsMax: rowsMax } : sink.limits,
    async promote(committable, permit) {
      if (committable.rows > rowsMax) throw new PawlError('SINK_UNAVAILABLE', 'too many rows for one promotion')
      return sink.promote(committable, permit)
    },
  }))

/** Writes an empty value for a null one. */
export const nullIsEmpty = sinkWith((sink) => ({
  async stage(context) {
    const writer = await sink.stage(context)
    return {
      ...writer,
      add: (key, value, timestampMs, partition) =>
        writer.add(key, value === null ? Buffer.alloc(0) : value, timestampMs, partition),
    }
  },
}))
