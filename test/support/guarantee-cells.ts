/**
 * The table of the literature, run: kinds of sources by kinds of sinks, a process killed at each of its calls.
 *
 * A cell says what a reader of the sink can see in the worst run: rows that are missing, rows that come again, values
 * that are older than what was shown before. From that follows the guarantee that the cell has; nothing is asserted
 * here. Source of the table: F. Hueske, V. Kalavri, "Stream Processing with Apache Flink", chapter 8.
 */
import { memorySink } from '../../lib/adapters/memory/sink.ts'
import { writeAhead } from '../../lib/adapters/writeahead/sink.ts'
import { compile, nullable, type PipelineGuarantee, pipeline, text, topic } from '../../lib/index.ts'
import type { CustomSinkSpec } from '../../lib/ports/spec.ts'
import type { Store } from '../../lib/ports/store.ts'
import type { Sabotage } from '../../lib/testing/actor.ts'
import { createDriver } from '../../lib/testing/drive.ts'
import { type Fault, memory } from '../../lib/testing/index.ts'
import { rowSpecOf, World } from '../../lib/testing/world.ts'

/** Kinds of sinks, as the literature has them. */
export const sinkKinds = ['any', 'idempotent', 'write-ahead', 'transactional'] as const
/** One kind of sink. */
export type SinkKind = (typeof sinkKinds)[number]

/** A source, and the mode in which a pipeline reads it. */
export interface Column {
  readonly title: string
  readonly replayable: boolean
  /** By kind of sink. */
  readonly mode: (kind: SinkKind) => PipelineGuarantee
}

const weak = (kind: SinkKind) => kind === 'any' || kind === 'write-ahead'

/** Columns of the table. */
export const columns: readonly Column[] = [
  { title: 'source that cannot be read again', replayable: false, mode: () => 'at-most-once' },
  {
    title: 'source that can be read again',
    replayable: true,
    mode: (kind) => (weak(kind) ? 'at-least-once' : 'exactly-once'),
  },
  { title: 'source that can be read again, `at-most-once`', replayable: true, mode: () => 'at-most-once' },
]

/** The worst that a reader of the sink can see, over all runs. */
export interface Cell {
  readonly runs: number
  readonly losses: boolean
  readonly repeats: boolean
  /** A value that is older than one which the same key had shown before. */
  readonly older: boolean
  /** A loss that neither a manifest nor the head names. */
  readonly silent: boolean
}

const crashes: readonly Fault['fault'][] = ['crash-before', 'crash-after', 'reply-lost', 'refused']
const records = [
  ['a', 1],
  ['a', 2],
  ['b', 3],
  ['a', 4],
] as const

type Shown = readonly [key: string, value: number]

interface Bench {
  readonly world: World
  readonly sabotage: Sabotage
  shown(): readonly Shown[]
}

/** Runs a cell with each fault at each call of the first process. */
export async function runCell(kind: SinkKind, column: Column, guarded = false, faults = crashes): Promise<Cell> {
  const calls = (await runOnce(benchOf(kind, column, guarded), null)).calls
  const cells: Cell[] = []
  for (let at = 0; at < calls; at++) {
    for (const fault of faults) {
      const one = await runOnce(benchOf(kind, column, guarded), { at, fault: { fault, calls: 1e9 } as Fault })
      cells.push(judged(kind, one.shown, one.recorded))
    }
  }
  const any = (of: (cell: Cell) => boolean) => cells.some(of)
  return {
    runs: cells.length,
    losses: any((cell) => cell.losses),
    repeats: any((cell) => cell.repeats),
    older: any((cell) => cell.older),
    silent: any((cell) => cell.silent),
  }
}

/** What a cell guarantees, by what was seen. */
export function guaranteeOf({ losses, repeats }: Cell): string {
  if (losses) return repeats ? 'nothing' : 'at-most-once'
  return repeats ? 'at-least-once' : 'exactly-once'
}

async function runOnce(bench: Bench, planned: { readonly at: number; readonly fault: Fault } | null) {
  const { world } = bench
  let calls = 0
  const driver = createDriver({
    world,
    sabotage: bench.sabotage,
    mortal: true,
    script: (actor) =>
      function script({ index, port, method }) {
        if (actor === 0) calls = index + 1
        // A stall is told where it matters: in the promotion.
        const stalls = planned?.fault.fault === 'zombie' && !(port.endsWith('sink') && method === 'promote')
        return actor === 0 && index === planned?.at && !stalls ? planned.fault : null
      },
  })
  for (const [key, value] of records)
    void world.logs.get('in')!.append(0, [{ key, value: `${value}`, timestampMs: value }])
  await driver.untilDone({ rings: 40 })
  await driver.untilOver({ rings: 40 })
  const head = await world.ledger.read('guarantees')
  const lost = [...world.manifests.values()].flatMap((manifest) => manifest.lost)
  const span = lost.reduce((sum, { start, end }) => sum + Number(BigInt(end) - BigInt(start)), 0)
  return { calls, shown: bench.shown(), recorded: span + (head?.unconfirmed?.rows ?? 0) }
}

function judged(kind: SinkKind, shown: readonly Shown[], recorded: number): Cell {
  const values = shown.map(([, value]) => value)
  const missing = records.filter(([, value]) => !values.includes(value)).length
  const newest = new Map<string, number>()
  const table = new Map<string, number>()
  let older = false
  for (const [key, value] of shown) {
    older ||= value < (newest.get(key) ?? 0)
    newest.set(key, Math.max(value, newest.get(key) ?? 0))
    table.set(key, value)
  }
  const settled = [...newest].every(([key, value]) => table.get(key) === value)
  const repeats = kind === 'idempotent' ? !settled : new Set(values).size < values.length
  return { runs: 1, losses: missing > 0, repeats, older, silent: missing > recorded }
}

function benchOf(kind: SinkKind, column: Column, guarded: boolean): Bench {
  const endpoint: Shown[] = []
  const guarantee = column.mode(kind)
  const compiled = compile(
    pipeline('guarantees', { guarantee })
      .from(topic('in', { key: nullable(text()), value: text(), onLostOffsets: 'skip' }))
      .to('out', specOf(kind, endpoint, null)),
  )
  const epoch = { spanMax: 2, fuseSpanMax: 1000, fuseMs: 0, convictAfter: 1_000_000 }
  const checkpoint = { ...compiled.settings.checkpoint, intervalMs: 0 }
  const settings = { ...compiled.settings, epoch, checkpoint, leaseMs: 40_000 }
  const world = new World({ compiled: { ...compiled, settings }, seed: 3, partitions: () => 1 })
  // A reader sees the effect: rows of a table by key, whoever wrote them and how often.
  if (kind === 'idempotent')
    world.sinks.set('out', memorySink({ id: 'out', spec: rowSpecOf(compiled, 'out'), marked: false }))
  const context = { pipeline: 'guarantees', incarnation: 'i', stage: 'test', directory: null }
  return {
    world,
    shown: () => (kind === 'write-ahead' ? endpoint : guarded ? byGuard(shownIn(world)) : shownIn(world)),
    sabotage: {
      ...(column.replayable ? {} : { place: (place) => ({ ...place, source: forgetful(world, place.source) }) }),
      ...(kind === 'write-ahead'
        ? { sink: (_, id, store) => lazily(specOf(kind, endpoint, store), id, { ...context, store }) }
        : {}),
    },
  }
}

function shownIn(world: World): Shown[] {
  return world.sinks
    .get('out')!
    .visible()
    .map(({ key, value }) => [key!.toString(), Number(value!.toString())])
}

/** What a table shows that refuses a row which is older, by epoch and row, than what the key has. */
function byGuard(shown: readonly Shown[]): Shown[] {
  const newest = new Map<string, number>()
  return shown.filter(([key, value]) => {
    if (value < (newest.get(key) ?? 0)) return false
    newest.set(key, value)
    return true
  })
}

function specOf(kind: SinkKind, endpoint: Shown[], store: Store | null): CustomSinkSpec<string | null, string> {
  const serdes = { key: nullable(text()), value: text() }
  if (kind !== 'write-ahead') return memory({ ...serdes, guarantee: kind === 'any' ? 'at-least-once' : 'exactly-once' })
  return writeAhead<string, string | null>({
    ...serdes,
    async write(rows) {
      for (const { key, value } of rows) {
        endpoint.push([key!, Number(value)])
        // The process may end between any two effects.
        await store?.read('nothing')
      }
    },
  })
}

/** A sink whose spec opens it only when it is called. */
function lazily(spec: CustomSinkSpec<string | null, string>, id: string, context: Parameters<typeof spec.open>[1]) {
  const opening = spec.open(id, context)
  return {
    target: `write-ahead:${id}`,
    limits: { laneRowsMax: 1000, laneBytesMax: 1_000_000 },
    stage: async (...args) => (await opening).stage(...args),
    base: async (...args) => (await opening).base(...args),
    promote: async (...args) => (await opening).promote(...args),
    marker: async (...args) => (await opening).marker(...args),
    close: async () => (await opening).close(),
  } satisfies Awaited<ReturnType<typeof spec.open>>
}

type OpenSource = Parameters<NonNullable<Sabotage['place']>>[0]['source']

/** Hands each record out once, and forgets it. */
function forgetful(world: World, open: OpenSource): OpenSource {
  return async (...args) => {
    const log = await open(...args)
    return {
      bounds: () => log.bounds(),
      resolve: (position) => log.resolve(position),
      async *read(range) {
        for await (const batch of log.read(range)) {
          const last = batch.baseOffset + BigInt(batch.offsetDeltas[batch.count - 1]!)
          world.logs.get('in')!.truncateBefore(range.partition, last + 1n)
          yield batch
        }
      },
      close: () => log.close(),
    }
  }
}
