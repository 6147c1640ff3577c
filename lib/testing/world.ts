/**
 * The world of a simulation: everything that outlives a process, in memory, and the clock.
 *
 * Logs, store, ledger and sinks are the memory adapters, as strict as the real ones. Starts of runs are queued here,
 * by name and once only, as Step Functions does. Every call and event leaves a line in the trace.
 */
import { type VirtualClock, virtualClock } from '../adapters/memory/clock.ts'
import { memoryLedger } from '../adapters/memory/ledger.ts'
import { type MemoryLog, memoryLog } from '../adapters/memory/log.ts'
import { type MemorySink, type MemorySinkOptions, memorySink, type RowRefusal } from '../adapters/memory/sink.ts'
import type { MemorySinkSpec } from '../adapters/memory/spec.ts'
import { type MemoryStore, memoryStore } from '../adapters/memory/store.ts'
import type { MemoryRow } from '../adapters/memory/table.ts'
import type { RowSpec } from '../adapters/shared/row-encoding.ts'
import { crc32c } from '../model/crc32c.ts'
import type { RefusedLane, RejectedRecord } from '../model/manifest.ts'
import { type Prng, prng } from '../model/prng.ts'
import type { Serde } from '../model/serde.ts'
import type { SinkLimits } from '../ports/sink.ts'
import type { SinkSpec } from '../ports/spec.ts'
import type { RunStart } from '../ports/system.ts'
import type { Compiled } from '../stream/compiled.ts'
import { type Audited, auditedLedger, type ChainMemory } from './audit.ts'
import type { Call, GateHost } from './gate.ts'
import type { StoryLine } from './story.ts'

/** What a new world is made for. */
export interface WorldOptions {
  readonly compiled: Compiled
  readonly seed: number
  readonly partitions: (source: string) => number
  readonly baseOffset?: bigint
  /** How long a port call takes, in milliseconds; no time when absent. */
  readonly latencyMs?: () => number
  /** What one promotion may carry a lane. */
  readonly sinkLimits?: SinkLimits
  /** `express`: runs may start twice, live for five minutes, and tell nothing of themselves. */
  readonly workflow?: 'standard' | 'express'
}

/** Serde of the rows of sinks that encode by themselves: readable, for any value. */
const anything: Serde<unknown> = {
  name: 'anything',
  encode: (value) => (value instanceof Uint8Array || typeof value === 'string' ? value : JSON.stringify(value ?? null)),
  decode: (bytes, start, end) => bytes.toString('utf8', start, end),
}

/** How rows of a sink are encoded in a simulation: as its topic says, or readably. */
export function rowSpecOf(compiled: Compiled, id: string): RowSpec {
  const spec = compiled.sinks[id]
  const rows = spec.kind === 'topic' ? spec : { topic: id, key: anything, value: anything, route: null, headers: null }
  if (id !== compiled.topology.deadLetterSink) return rows
  return { ...rows, value: withoutLateBytes(compiled, rows.value) }
}

/** Dead letters carry their bytes where they are at hand, which depends on whether an epoch was fused: not here. */
function withoutLateBytes(compiled: Compiled, value: Serde<unknown>): Serde<unknown> {
  const keyed = new Set(compiled.topology.nodes.filter((node) => node.stage > 0).map((node) => node.id))
  const bare = (letter: RejectedRecord) =>
    keyed.has(letter.operator) ? { ...letter, key: null, value: null, cutBytes: 0 } : letter
  return { ...value, encode: (letter) => value.encode(bare(letter as RejectedRecord)) }
}

/** A sink in memory that gives what the spec gives, and refuses rows where the spec can bear it. */
function kindOf(spec: SinkSpec<unknown, unknown>): Pick<MemorySinkOptions, 'marked' | 'onReject' | 'refuses'> {
  if (spec.kind === 'topic') return {}
  const { guarantee, onReject, refuses = unlucky } = spec as Partial<MemorySinkSpec<unknown, unknown>>
  return { marked: guarantee === 'exactly-once', onReject, refuses: onReject === 'dead-letter' ? refuses : undefined }
}

/** About one row in eight, always the same ones. */
function unlucky({ key, value }: MemoryRow): RowRefusal | null {
  const sum = crc32c(value ?? key ?? Buffer.alloc(0))
  return sum % 8 === 0 ? { code: '23514', column: 'value', reason: 'the simulation refuses this row' } : null
}

/** Everything that outlives the processes of one simulation. */
export class World implements GateHost, Audited {
  readonly random: Prng
  readonly clock: VirtualClock = virtualClock({ startMs: 1_700_000_000_000 })
  readonly store: MemoryStore = memoryStore()
  readonly logs = new Map<string, MemoryLog>()
  readonly sinks = new Map<string, MemorySink>()
  readonly manifests: ChainMemory = new Map()
  readonly carried = new Map<string, readonly RefusedLane[]>()
  readonly ledger = auditedLedger(memoryLedger(), this)
  /** Runs that were started and not taken up yet. */
  readonly starts: RunStart[] = []
  /** Names of runs ever started. */
  readonly names = new Set<string>()
  /** Places of processes that certainly run, and of those that are certainly gone. */
  readonly running = new Set<string>()
  readonly gone = new Set<string>()
  /** Every call and event, one line each. */
  readonly trace: string[] = []
  /** What a person needs to read of it. */
  readonly story: StoryLine[] = []
  readonly workflow: 'standard' | 'express'
  /** Ids of runs by what started them. */
  readonly ids = new WeakMap<RunStart, string>()
  calls = 0
  /** The first invariant that was seen broken while things went on. */
  broken: string | null = null
  /** Set by whoever damages the world on purpose: steps may then report corruption. */
  damaged = false
  /** Set by whoever restores a sink from a backup. */
  restored = false
  /** What is deployed now. */
  compiled: Compiled
  readonly #options: WorldOptions
  readonly #builds = new Map<string, Compiled>()
  #waiting: { readonly at: number; readonly then: () => void }[] = []

  constructor(options: WorldOptions) {
    this.#options = options
    this.workflow = options.workflow ?? 'standard'
    this.random = prng(options.seed)
    this.compiled = options.compiled
    this.deploy(options.compiled)
  }

  /** From now on new processes run this; earlier builds are remembered for the checker. */
  deploy(compiled: Compiled): void {
    const { partitions, baseOffset = 0n, sinkLimits: limits } = this.#options
    this.compiled = compiled
    this.#builds.set(compiled.build, compiled)
    for (const [id, { topic }] of Object.entries(compiled.sources)) {
      if (!this.logs.has(id)) this.logs.set(id, memoryLog({ topic, partitions: partitions(id), baseOffset }))
    }
    for (const id of Object.keys(compiled.sinks)) {
      if (!this.sinks.has(id))
        this.sinks.set(id, memorySink({ ...kindOf(compiled.sinks[id]), id, spec: rowSpecOf(compiled, id), limits }))
    }
  }

  /** What was deployed under a build. */
  compiledOf(build: string): Compiled {
    return this.#builds.get(build) ?? this.compiled
  }

  report(invariant: string): void {
    if (this.broken === null) this.note(`✗ broken: ${invariant}`)
    this.broken ??= invariant
  }

  called(call: Call): void {
    this.calls++
    this.trace.push(`${this.calls} p${call.actor}#${call.index} ${call.port}.${call.method}`)
    this.#mustBeCommitted()
    const { latencyMs } = this.#options
    if (latencyMs !== undefined) this.clock.advance(latencyMs())
    this.#wake((at) => at <= this.calls)
  }

  after(more: number, then: () => void): void {
    this.#waiting.push({ at: this.calls + more, then })
  }

  note(text: string, actor: number | null = null): void {
    this.trace.push(actor === null ? text : `p${actor} ${text}`)
    this.story.push({ actor, text })
  }

  /** Lets go of what waits for calls that will never come. True if there was anything. */
  releaseAll(): boolean {
    return this.#wake(() => true)
  }

  #wake(due: (at: number) => boolean): boolean {
    const ready = this.#waiting.filter((waiter) => due(waiter.at))
    this.#waiting = this.#waiting.filter((waiter) => !ready.includes(waiter))
    for (const waiter of ready) waiter.then()
    return ready.length > 0
  }

  /** Nothing is visible that is not committed. */
  #mustBeCommitted(): void {
    const { committed } = this.ledger
    for (const [id, sink] of this.sinks) {
      for (let lane = 0; lane < (this.compiled.sinks[id]?.lanes ?? 1); lane++) {
        const shown = sink.marked ? (sink.marker(lane)?.epoch ?? 0) : (sink.visible(lane).at(-1)?.epoch ?? 0)
        if (shown > committed && !this.damaged)
          this.report(`lane ${id}/${lane} shows epoch ${shown}, which is not committed`)
      }
    }
  }
}
