/**
 * The world in which calls are counted: a pipeline of a given shape, its input, and a place in memory.
 *
 * Apart from the counting, which knows nothing of how a shape becomes a pipeline.
 */
import { virtualClock } from '../adapters/memory/clock.ts'
import { memoryLedger } from '../adapters/memory/ledger.ts'
import type { MemoryLog } from '../adapters/memory/log.ts'
import { seededRandom } from '../adapters/memory/random.ts'
import { memory } from '../adapters/memory/spec.ts'
import { memoryStore } from '../adapters/memory/store.ts'
import type { PartitionBatch } from '../model/mapping-event.ts'
import { text } from '../model/serde.ts'
import type { Place } from '../ports/place.ts'
import type { Sink } from '../ports/sink.ts'
import type { Store } from '../ports/store.ts'
import type { RunStart, Telemetry } from '../ports/system.ts'
import { compile } from '../stream/compile.ts'
import type { Compiled } from '../stream/compiled.ts'
import type { Stream } from '../stream/language.ts'
import { pipeline } from '../stream/pipeline.ts'
import { topic } from '../stream/topic.ts'

/** What of a pipeline decides how much an epoch asks for. */
export interface EpochShape {
  readonly sources: number
  /** Partitions of each source. */
  readonly partitions: number
  /** Operators with state, each behind a shuffle of its own. */
  readonly stateful: number
  /** Lanes of each sink that has rows in every epoch. */
  readonly lanes: readonly number[]
  readonly shards: number
  /** The epoch is split over the shards; else one task does it all. */
  readonly split: boolean
  readonly intervalMs: number
  /** All input is there at once, so that no epoch waits for its interval. */
  readonly backlog?: boolean
  /** Nobody can tell whether a run is gone, as with Express. */
  readonly blind?: boolean
  /** Events that bring the input of an epoch, where they are laid down to be read; absent: it is read from brokers. */
  readonly events?: number
}

/** The arrived records of an epoch in so many events, each with some of every partition. */
export function eventsOf(arrived: readonly PartitionBatch[], events: number): PartitionBatch[][] {
  return Array.from({ length: events }, (_, event) =>
    arrived.flatMap(({ records, ...place }) => {
      const [from, to] = [event, event + 1].map((i) => Math.floor((i * records.length) / events))
      return from === to ? [] : [{ ...place, records: records.slice(from, to) }]
    }),
  )
}

/** Where every run of the count is. */
export const here = 'here'

/** Everything of a place but its sources and sinks, in memory. */
export function placeOf(starts: RunStart[], telemetry: Telemetry, blind: boolean): Omit<Place, 'sink' | 'source'> {
  return {
    ledger: memoryLedger(),
    store: memoryStore(),
    launcher: {
      blind,
      async start(run) {
        starts.push(run)
        return 'started'
      },
      status: async () => (blind ? 'unknown' : 'running'),
    },
    clock: virtualClock({ startMs: 1_700_000_000_000 }),
    random: seededRandom(1),
    telemetry,
    place: here,
  }
}

/** Opens the sinks of one function, which read staging back from its own store. */
export function sinksOn(store: Store): Place['sink'] {
  const sinks = new Map<string, Sink>()
  return async (pipelineId, id, spec, incarnation) => {
    if (spec.kind !== 'sink') throw new TypeError(`sink ${id} is not in memory`)
    const context = { pipeline: pipelineId, incarnation, stage: 'count', directory: null, store }
    const sink = sinks.get(id) ?? (await spec.open(id, context))
    sinks.set(id, sink)
    return sink
  }
}

/** Appends so many records to each partition of each log; what was appended, by partition. */
export async function appendTo(
  logs: ReadonlyMap<string, MemoryLog>,
  partitions: number,
  each: number,
): Promise<PartitionBatch[]> {
  const arrived: PartitionBatch[] = []
  for (const [topic, log] of logs) {
    for (let partition = 0; partition < partitions; partition++) {
      const records = Array.from({ length: each }, (_, i) => {
        const value = Buffer.from(`${topic}-${partition}-${i}`)
        return { key: null, value, headers: [], timestampMs: 1_700_000_000_000 + i }
      })
      const { baseOffset } = await log.append(partition, records)
      const placed = records.map((record, i) => ({ ...record, offset: baseOffset + BigInt(i) }))
      arrived.push({ topic, partition, records: placed })
    }
  }
  return arrived
}

/** A pipeline of the shape, whose epochs take so many records of each partition. */
export function pipelineOf(shape: EpochShape, perPartition: number): Compiled {
  const { sources, partitions, stateful, lanes, shards, split, intervalMs } = shape
  const spanMax = perPartition * partitions * sources
  const head = pipeline('counted', {
    shards,
    checkpoint: { intervalMs, timeoutMs: 60_000 },
    epoch: { spanMax, fuseSpanMax: split ? 0 : spanMax },
  })
  const inputs = Array.from({ length: sources }, (_, i) => {
    return head.from(topic(`source-${i}`, { value: text() })).withKey(`key-${i}`, (value: string) => value)
  })
  let stream = inputs.reduce((all, one, i) => all.merge(`merge-${i}`, one)) as Stream<string, string>
  for (let i = 0; i < stateful; i++) {
    const counts = stream.keyBy(`by-${i}`, (value) => value).count(`count-${i}`)
    stream = counts.map(`value-${i}`, (_, { key }) => key)
  }
  lanes.forEach((count, i) => {
    stream = stream.to(`sink-${i}`, memory({ value: text(), lanes: count }))
  })
  return compile(stream)
}
