/**
 * The world of a simulation: everything that outlives a process, in memory, and the clock.
 *
 * Logs, store, ledger and sinks are the memory adapters, as strict as the real ones. Starts of runs are queued here,
 * by name and once only, as Step Functions does. Every call and event leaves a line in the trace.
 */
import { type VirtualClock, virtualClock } from '../adapters/memory/clock.ts'
import { memoryLedger } from '../adapters/memory/ledger.ts'
import { type MemoryLog, memoryLog } from '../adapters/memory/log.ts'
import { type MemorySink, memorySink } from '../adapters/memory/sink.ts'
import { memoryStore } from '../adapters/memory/store.ts'
import { type Prng, prng } from '../model/prng.ts'
import type { Serde } from '../model/serde.ts'
import type { SinkSpec } from '../ports/spec.ts'
import type { RunStart } from '../ports/system.ts'
import type { Compiled } from '../stream/compiled.ts'
import type { Call, GateHost } from './gate.ts'

export interface World extends GateHost {
  readonly compiled: Compiled
  readonly random: Prng
  readonly clock: VirtualClock
  readonly ledger: ReturnType<typeof memoryLedger>
  readonly store: ReturnType<typeof memoryStore>
  readonly logs: ReadonlyMap<string, MemoryLog>
  readonly sinks: ReadonlyMap<string, MemorySink>
  /** Runs that were started and not taken up yet. */
  readonly starts: RunStart[]
  /** Names of runs ever started. */
  readonly names: Set<string>
  /** Places of processes that certainly run, and of those that are certainly gone. */
  readonly running: Set<string>
  readonly gone: Set<string>
  readonly calls: number
  readonly trace: readonly string[]
  /** Lets go of what waits for calls that will never come. True if there was anything. */
  releaseAll(): boolean
}

/** What a new world is made for. */
export interface WorldOptions {
  readonly compiled: Compiled
  readonly seed: number
  readonly partitions: (source: string) => number
  readonly baseOffset?: bigint
  readonly traceMax?: number
}

/** Serde of the rows of sinks that encode by themselves: readable, for any value. */
const anything: Serde<unknown> = {
  name: 'anything',
  encode: (value) => (value instanceof Uint8Array || typeof value === 'string' ? value : JSON.stringify(value ?? null)),
  decode: (bytes, start, end) => bytes.toString('utf8', start, end),
}

/** How rows of a sink are encoded in a simulation: as its topic says, or readably. */
export function rowSpecOf(id: string, spec: SinkSpec<unknown, unknown>) {
  if (spec.kind === 'topic') return spec
  return { topic: id, key: anything, value: anything, route: null, headers: null }
}

export function createWorld(options: WorldOptions): World {
  const { compiled, seed, partitions, traceMax = 5000 } = options
  const waiting: { at: number; then: () => void }[] = []
  const trace: string[] = []
  let calls = 0
  const note = (text: string) => {
    if (trace.length >= traceMax) trace.shift()
    trace.push(text)
  }
  const wake = (due: (at: number) => boolean): boolean => {
    const ready = waiting.filter((waiter) => due(waiter.at))
    for (const waiter of ready) {
      waiting.splice(waiting.indexOf(waiter), 1)
      waiter.then()
    }
    return ready.length > 0
  }
  return {
    compiled,
    random: prng(seed),
    clock: virtualClock({ startMs: 1_700_000_000_000 }),
    ledger: memoryLedger(),
    store: memoryStore(),
    logs: new Map(
      Object.entries(compiled.sources).map(([id, { topic }]) => [
        id,
        memoryLog({ topic, partitions: partitions(id), baseOffset: options.baseOffset ?? 0n }),
      ]),
    ),
    sinks: new Map(
      Object.entries(compiled.sinks).map(([id, spec]) => [id, memorySink({ id, spec: rowSpecOf(id, spec) })]),
    ),
    starts: [],
    names: new Set(),
    running: new Set(),
    gone: new Set(),
    trace,
    get calls() {
      return calls
    },
    called(call: Call) {
      calls++
      note(`${calls} p${call.actor}#${call.index} ${call.port}.${call.method}`)
      wake((at) => at <= calls)
    },
    after(more, then) {
      waiting.push({ at: calls + more, then })
    },
    note,
    releaseAll: () => wake(() => true),
  }
}
