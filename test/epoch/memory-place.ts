/**
 * An embedded place in memory: everything that outlives a process, to be looked at, rewound and damaged by tests.
 */
import { memoryLedger } from '../../lib/adapters/memory/ledger.ts'
import { memoryLog } from '../../lib/adapters/memory/log.ts'
import { memorySink } from '../../lib/adapters/memory/sink.ts'
import { memoryStore } from '../../lib/adapters/memory/store.ts'
import { systemClock } from '../../lib/adapters/system/clock.ts'
import { systemRandom } from '../../lib/adapters/system/random.ts'
import type { ProgressEvent } from '../../lib/model/event.ts'
import type { EmbeddedPlace } from '../../lib/places/embedded.ts'
import type { RunStart } from '../../lib/ports/system.ts'
import type { Compiled } from '../../lib/stream/compiled.ts'

/** A place for one pipeline whose sinks are topics. */
export function memoryPlace(compiled: Compiled, partitions: number, onEvent: (event: ProgressEvent) => void) {
  const ledger = memoryLedger()
  const store = memoryStore()
  const logs = new Map(
    Object.entries(compiled.sources).map(([id, { topic }]) => [id, memoryLog({ topic, partitions })]),
  )
  const sinks = new Map(
    Object.entries(compiled.sinks).map(([id, spec]) => {
      if (spec.kind !== 'topic') throw new Error(`sink ${id} is no topic`)
      return [id, memorySink({ id, spec })]
    }),
  )
  const starts: RunStart[] = []
  const place: EmbeddedPlace = {
    directory: 'memory',
    ledger,
    store,
    starts,
    clock: systemClock(),
    random: systemRandom(),
    place: 'memory',
    telemetry: { emit: onEvent },
    launcher: {
      async start(run) {
        starts.push(run)
        return 'started'
      },
      status: async () => 'gone',
    },
    source: async (_pipeline, id) => logs.get(id)!,
    sink: async (_pipeline, id) => sinks.get(id)!.open(store),
    close: async () => undefined,
  }
  return { place, ledger, store, logs, sinks }
}

/** What `memoryPlace` makes. */
export type MemoryPlace = ReturnType<typeof memoryPlace>
