/**
 * What the tests of the language run pipelines with: batches, writers that keep rows, and the two ways to run an
 * epoch (fused, or stage by stage with segments), without any store.
 */
import type { SourceOffset } from '../../lib/model/head.ts'
import type { Counts, RejectedRecord, Snapshot } from '../../lib/model/manifest.ts'
import type { LogBatch } from '../../lib/model/records.ts'
import type { StageWriter } from '../../lib/ports/sink.ts'
import { shardRange } from '../../lib/state/key-groups.ts'
import type { OperatorState } from '../../lib/state/operator-state.ts'
import type { Compiled } from '../../lib/stream/compiled.ts'
import type { Program, ShuffleSegment } from '../../lib/stream/program.ts'

export interface TestRecord {
  readonly value: string | null
  readonly key?: string | null
  readonly timestampMs?: number
}

/** A batch of consecutive offsets. */
export function batchOf(
  records: readonly TestRecord[],
  options: { partition?: number; baseOffset?: bigint } = {},
): LogBatch {
  const count = records.length
  const chunks: Buffer[] = []
  let length = 0
  const place = (text: string | null | undefined): [number, number] => {
    if (text === null || text === undefined) return [-1, -1]
    const chunk = Buffer.from(text)
    chunks.push(chunk)
    length += chunk.length
    return [length - chunk.length, length]
  }
  const keys = records.map(({ key }) => place(key))
  const values = records.map(({ value }) => place(value))
  return {
    partition: options.partition ?? 0,
    baseOffset: options.baseOffset ?? 0n,
    count,
    offsetDeltas: Int32Array.from({ length: count }, (_, i) => i),
    timestamps: Float64Array.from(records, ({ timestampMs }) => timestampMs ?? 0),
    bytes: Buffer.concat(chunks),
    keyStarts: Int32Array.from(keys, ([start]) => start),
    keyEnds: Int32Array.from(keys, ([, end]) => end),
    valueStarts: Int32Array.from(values, ([start]) => start),
    valueEnds: Int32Array.from(values, ([, end]) => end),
    headerStarts: new Int32Array(count).fill(-1),
  }
}

/** A batch of plain text lines. */
export function linesOf(lines: readonly string[], options: { partition?: number; baseOffset?: bigint } = {}): LogBatch {
  return batchOf(
    lines.map((value) => ({ value })),
    options,
  )
}

export interface Row {
  readonly key: unknown
  readonly value: unknown
  readonly timestampMs: number
}

export type Rows = Record<string, Row[]>

export interface EpochInput {
  readonly source: string
  readonly batch: LogBatch
}

export interface EpochOptions {
  readonly shards?: number
  readonly unfused?: boolean
  /** Stage-0 tasks when unfused; inputs are dealt out in order. */
  readonly readers?: number
  readonly watermarkMs?: number | null
  readonly newWatermarkMs?: number | null
  readonly convicted?: readonly SourceOffset[]
  readonly processingTimeMs?: number
  /** What the writers of these sinks throw. */
  readonly failing?: Readonly<Record<string, Error>>
}

export interface EpochOutcome {
  readonly rows: Rows
  readonly counts: Counts
  readonly rejected: readonly RejectedRecord[]
  readonly eventTimes: ReturnType<Program['eventTimes']>
}

interface Held {
  state: OperatorState
  snapshot: Snapshot
  files: readonly Buffer[]
}

/** Runs epochs of one pipeline, keeping its state in memory and in snapshot files from one to the next. */
export function runner(compiled: Compiled, shards = 1) {
  const held = Array.from({ length: shards }, (_, shard) =>
    compiled.stateful.map((operator) =>
      emptyState(compiled, operator, shardRange(shard, shards, compiled.settings.keyGroups)),
    ),
  )
  return {
    epoch(inputs: readonly EpochInput[], options: EpochOptions = {}): EpochOutcome {
      const states = held.map((shard) => shard.map(({ state }) => state))
      const outcome = (options.unfused ? unfused : fused)(compiled, states, inputs, options)
      for (const one of held.flat()) store(one)
      return outcome
    },
    /** Forgets what is in memory and reads the snapshots back. */
    restart(): void {
      for (const one of held.flat()) {
        const { operator, keyGroups } = one.snapshot
        one.state = compiled.state(operator, keyGroups, one.snapshot, one.files)
      }
    },
    /** Entries held by all states together. */
    entries: () => held.flat().reduce((sum, { state }) => sum + state.entries, 0),
  }
}

function emptyState(compiled: Compiled, of: Compiled['stateful'][number], keyGroups: readonly [number, number]): Held {
  const { operator, stateKind, stateVersion } = of
  const state = compiled.state(operator, keyGroups, null, [])
  return { state, snapshot: { operator, stateKind, stateVersion, keyGroups, files: [] }, files: [] }
}

function store(one: Held): void {
  const encoded = one.state.encode(one.snapshot)
  if (encoded !== null) {
    const bytes = Buffer.concat(encoded.chunks)
    const { file, entries, keep } = encoded
    const listed = { name: `file-${one.files.length}`, bytes: bytes.length, sha256: '', file, entries }
    one.files = [...one.files.slice(0, keep), bytes]
    one.snapshot = { ...one.snapshot, files: [...one.snapshot.files.slice(0, keep), listed] }
  }
  one.state.settle()
}

function fused(compiled: Compiled, states: OperatorState[][], inputs: readonly EpochInput[], options: EpochOptions) {
  const rows: Rows = {}
  const program = programOf(compiled, 'fused', 0, states.flat(), rows, states.length, options)
  for (const { source, batch } of inputs) program.consume(source, batch)
  program.finish(options.newWatermarkMs ?? null)
  return outcomeOf(rows, [program])
}

function unfused(compiled: Compiled, states: OperatorState[][], inputs: readonly EpochInput[], options: EpochOptions) {
  const rows: Rows = {}
  const segments: ShuffleSegment[] = []
  const programs: Program[] = []
  const readers = options.readers ?? 1
  for (let stage = 0; stage < compiled.topology.stages; stage++) {
    for (let task = 0; task < (stage === 0 ? readers : states.length); task++) {
      const own = stage === 0 ? [] : states[task].filter(({ operator }) => stageOf(compiled, operator) === stage)
      const program = programOf(compiled, stage, task, own, rows, states.length, options)
      programs.push(program)
      if (stage === 0) {
        for (const { source, batch } of dealt(inputs, task, readers)) {
          program.consume(source, batch)
          if (program.bufferedShuffleBytes > 200) segments.push(...program.takeSegments())
        }
      } else
        for (const segment of segments)
          if (segment.stage === stage && segment.shard === task) program.consumeSegment(Buffer.concat(segment.chunks))
      program.finish(options.newWatermarkMs ?? null)
      segments.push(...program.takeSegments())
    }
  }
  return outcomeOf(rows, programs)
}

function dealt(inputs: readonly EpochInput[], task: number, tasks: number): readonly EpochInput[] {
  const each = Math.ceil(inputs.length / tasks)
  return inputs.slice(task * each, (task + 1) * each)
}

function stageOf(compiled: Compiled, operator: string): number {
  return compiled.stateful.find((one) => one.operator === operator)!.stage
}

function programOf(
  compiled: Compiled,
  stage: number | 'fused',
  shard: number,
  states: readonly OperatorState[],
  rows: Rows,
  shards: number,
  options: EpochOptions,
): Program {
  const writers = Object.fromEntries(
    compiled.sinksOf(stage).map((id) => [id, keepingWriter(compiled, id, rows, options.failing?.[id])]),
  )
  return compiled.program({
    stage,
    shards,
    shard,
    processingTimeMs: options.processingTimeMs ?? 1000,
    watermarkMs: options.watermarkMs ?? null,
    writers,
    states,
    convicted: options.convicted ?? [],
  })
}

/** Keeps rows as the serdes give them back; throws what a serde throws. */
function keepingWriter(compiled: Compiled, id: string, rows: Rows, failing: Error | undefined): StageWriter {
  const spec = compiled.sinks[id]
  rows[id] ??= []
  return {
    add: (key, value, timestampMs) => {
      if (failing) throw failing
      if (spec.kind === 'topic') {
        spec.key.encode(key)
        spec.value.encode(value)
      }
      rows[id].push({ key, value, timestampMs })
    },
    bufferedBytes: 0,
    flush: async () => {},
    seal: async () => [],
  }
}

function outcomeOf(rows: Rows, programs: readonly Program[]): EpochOutcome {
  const counts = programs.map((program) => program.counts())
  const out: Record<string, number> = {}
  for (const one of counts)
    for (const [sink, rowCount] of Object.entries(one.out)) out[sink] = (out[sink] ?? 0) + rowCount
  const sum = (name: 'in' | 'late' | 'rejected') => counts.reduce((total, one) => total + one[name], 0)
  return {
    rows,
    counts: { in: sum('in'), out, late: sum('late'), rejected: sum('rejected') },
    rejected: programs.flatMap((program) => program.rejected()),
    eventTimes: programs.flatMap((program) => program.eventTimes()),
  }
}
