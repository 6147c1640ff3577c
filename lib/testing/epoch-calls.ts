/**
 * Epoch calls: what an epoch asks of a deployed place, counted while epochs are run.
 *
 * A pipeline of the given shape runs without faults: the real steps, each with a memory of its own as each function has,
 * and the real machine. Nothing here is a formula, so what is counted cannot drift from what is done. Two runs of
 * different length are subtracted: that is what an epoch takes, and the rest what a run takes beside its epochs.
 */
import { interpreter } from '../adapters/interpreter/machine.ts'
import { virtualClock } from '../adapters/memory/clock.ts'
import { memoryLedger } from '../adapters/memory/ledger.ts'
import { type MemoryLog, memoryLog } from '../adapters/memory/log.ts'
import { seededRandom } from '../adapters/memory/random.ts'
import { memory } from '../adapters/memory/spec.ts'
import { memoryStore } from '../adapters/memory/store.ts'
import { stepCalls } from '../epoch/execute.ts'
import type { Job } from '../epoch/job.ts'
import { machine, type StepName, stepNames, taskStates, transitionsOf } from '../epoch/machine.ts'
import { ring } from '../epoch/ring.ts'
import { wake } from '../epoch/wake.ts'
import { text } from '../model/serde.ts'
import type { RunKey, StepOutput } from '../model/steps.ts'
import type { Wake } from '../model/wake.ts'
import type { Place } from '../ports/place.ts'
import type { Sink } from '../ports/sink.ts'
import type { Store } from '../ports/store.ts'
import type { RunStart, Telemetry } from '../ports/system.ts'
import { StateCache } from '../state/cache.ts'
import { compile } from '../stream/compile.ts'
import type { Compiled } from '../stream/compiled.ts'
import type { Stream } from '../stream/language.ts'
import { pipeline } from '../stream/pipeline.ts'
import { topic } from '../stream/topic.ts'
import { type Asked, type Calls, type Counter, counted } from './counted.ts'

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
}

/** What a pipeline of a shape takes. */
export interface EpochCalls {
  /** An epoch more in a run that goes on; what is done every ten epochs counts a tenth. */
  readonly epoch: Calls
  /** A run, beside its epochs: the ring that starts it, its claim and its end. */
  readonly run: Calls
  /** An event of a mapping while a run is busy. */
  readonly event: Calls
  /** A tick of the schedule that finds nothing to do. */
  readonly tick: Calls
}

const shortRun = 2
const longRun = 22

/** Runs a pipeline of the shape and counts. `telemetry` hears what its steps say in the longer run. */
export async function countEpochCalls(shape: EpochShape, telemetry?: Telemetry): Promise<EpochCalls> {
  const bench = benchOf(shape, telemetry)
  await bench.run(1)
  const [short, long] = [await bench.run(shortRun), await bench.run(longRun)]
  const epoch = scaled(minus(long, short), 1 / (longRun - shortRun))
  // What is done once in ten epochs falls into the longer run alone: no run gives anything back.
  const run = combined(short, scaled(epoch, shortRun), (a, b) => (a - b < 0.5 ? 0 : a - b))
  return { epoch, run, event: await bench.event(), tick: await bench.tick() }
}

function minus(calls: Calls, other: Calls): Calls {
  return combined(calls, other, (a, b) => a - b)
}

function scaled(calls: Calls, by: number): Calls {
  return combined(calls, {}, (a) => a * by)
}

function combined(calls: Calls, other: Calls, by: (a: number, b: number) => number): Calls {
  const names = [...new Set([...Object.keys(calls), ...Object.keys(other)])]
  const rows = names.map((name) => {
    const [a, b] = [calls[name] ?? {}, other[name] ?? {}]
    const asked = [...new Set([...Object.keys(a), ...Object.keys(b)])] as Asked[]
    const counts = asked.map((one) => [one, by(a[one] ?? 0, b[one] ?? 0)] as const)
    return [name, counts.filter(([, count]) => count !== 0)] as const
  })
  const filled = rows.filter(([, counts]) => counts.length > 0)
  return Object.fromEntries(filled.map(([name, counts]) => [name, Object.fromEntries(counts)]))
}

function benchOf(shape: EpochShape, telemetry: Telemetry = { emit: () => {} }) {
  const perPartition = Math.max(8, Math.ceil(400 / (shape.partitions * shape.sources)))
  const compiled = pipelineOf(shape, perPartition)
  const counter = counted()
  const logs = new Map(
    Object.keys(compiled.sources).map((id) => [id, memoryLog({ topic: id, partitions: shape.partitions })]),
  )
  const starts: RunStart[] = []
  const place = placeOf(logs, starts, telemetry)
  const jobs = new Map<string, Job>()
  const jobOf = (name: string): Job => {
    const known = jobs.get(name)
    if (known !== undefined) return known
    const own = counter.place(name, place)
    const job = { compiled, place: { ...own, sink: sinksOn(own.store) }, states: new StateCache(), warm: new Map() }
    jobs.set(name, job)
    return job
  }
  const arrive = () => appendTo(logs, shape.partitions, perPartition)
  const busy: { event: Calls | null } = { event: null }
  const run = async (epochs: number): Promise<Calls> => {
    counter.reset()
    let toCome = epochs
    const next = async () => void (toCome-- > 0 && (await arrive()))
    for (let i = 0; i < (shape.backlog ? epochs : 1); i++) await next()
    await ring(jobOf('trigger').place, compiled.topology.pipeline)
    counter.note('trigger', 'invocation')
    const finalized = async () => {
      busy.event ??= await eventOf(counter, jobOf('trigger'), compiled)
      await next()
    }
    for (const start of starts.splice(0)) await walk(compiled, counter, jobOf, start, finalized)
    return counter.calls()
  }
  return {
    run,
    event: async () => busy.event ?? {},
    async tick() {
      counter.reset()
      counter.note('tick', 'invocation')
      await wake(jobOf('tick'), { wake: 'tick' })
      return counter.calls()
    },
  }
}

/** What one event of a mapping asks for while a run is busy; the counter goes on as if it had not been. */
async function eventOf(counter: Counter, job: Job, compiled: Compiled): Promise<Calls> {
  const before = counter.calls()
  const [[, { topic }]] = Object.entries(compiled.sources)
  const ends = new Map([[`${topic}/0`, { topic, partition: 0, end: 1n << 40n }]])
  counter.note('trigger', 'invocation')
  await wake(job, { wake: 'records', ends } satisfies Wake)
  const after = counter.calls()
  counter.reset(before)
  return minus(after, before)
}

/** One run of the machine, to its end; each step is called as a function of its own. */
async function walk(
  compiled: Compiled,
  counter: Counter,
  jobOf: (name: string) => Job,
  { pipeline: id, sequence }: RunStart,
  finalized: () => Promise<void>,
): Promise<void> {
  const call = async (name: StepName, input: never) => {
    counter.note(name, 'invocation')
    const output = await stepCalls(jobOf(name))[taskStates[name]](input)
    counter.note('machine', 'transition', transitionsOf(name, (output as Partial<StepOutput>).next ?? null))
    if (name === 'finalize') await finalized()
    return output
  }
  const resources = Object.fromEntries(stepNames.map((name) => [name, `local:${name}`])) as Record<StepName, string>
  const { clock } = jobOf('plan').place
  const called = Object.fromEntries(
    stepNames.map((name) => [taskStates[name], (input: never) => call(name, input)] as const),
  )
  const definition = machine({ resources, settings: compiled.settings })
  const walker = await interpreter({ definition, steps: called, clock, retryPauseMs: 0 })
  const startedAtMs = clock.nowMs()
  const run: RunKey = {
    pipeline: id,
    id: `${sequence}`,
    sequence,
    place: here,
    lingerMs: 0,
    resume: false,
    startedAtMs,
  }
  counter.note('machine', 'execution')
  await walker.run({ run })
}

const here = 'here'

function placeOf(logs: ReadonlyMap<string, MemoryLog>, starts: RunStart[], telemetry: Telemetry): Omit<Place, 'sink'> {
  return {
    ledger: memoryLedger(),
    store: memoryStore(),
    launcher: {
      async start(run) {
        starts.push(run)
        return 'started'
      },
      status: async () => 'running',
    },
    clock: virtualClock({ startMs: 1_700_000_000_000 }),
    random: seededRandom(1),
    telemetry,
    place: here,
    source: async (_pipeline, id) => logs.get(id)!,
  }
}

/** Opens the sinks of one function, which read staging back from its own store. */
function sinksOn(store: Store): Place['sink'] {
  const sinks = new Map<string, Sink>()
  return async (pipelineId, id, spec, incarnation) => {
    if (spec.kind !== 'sink') throw new TypeError(`sink ${id} is not in memory`)
    const context = { pipeline: pipelineId, incarnation, stage: 'count', directory: null, store }
    const sink = sinks.get(id) ?? (await spec.open(id, context))
    sinks.set(id, sink)
    return sink
  }
}

async function appendTo(logs: ReadonlyMap<string, MemoryLog>, partitions: number, each: number): Promise<void> {
  for (const [id, log] of logs) {
    for (let partition = 0; partition < partitions; partition++) {
      const records = Array.from({ length: each }, (_, i) => {
        return { key: null, value: Buffer.from(`${id}-${partition}-${i}`), timestampMs: 1_700_000_000_000 + i }
      })
      await log.append(partition, records)
    }
  }
}

function pipelineOf(shape: EpochShape, perPartition: number): Compiled {
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
