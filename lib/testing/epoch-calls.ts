/**
 * Epoch calls: what an epoch asks of a deployed place, counted while epochs are run.
 *
 * A pipeline of the given shape runs without faults: the real steps, each with a memory of its own as each function has,
 * and the real machine. Nothing here is a formula, so what is counted cannot drift from what is done. Two runs of
 * different length are subtracted: that is what an epoch takes, and the rest what a run takes beside its epochs.
 */
import { interpreter } from '../adapters/interpreter/machine.ts'
import { memoryLog } from '../adapters/memory/log.ts'
import { stepCalls } from '../epoch/execute.ts'
import type { Job } from '../epoch/job.ts'
import { machine, type StepName, stepNames, taskStates, transitionsOf } from '../epoch/machine.ts'
import { ring } from '../epoch/ring.ts'
import { wake } from '../epoch/wake.ts'
import type { PartitionBatch } from '../model/mapping-event.ts'
import type { RunKey, StepOutput } from '../model/steps.ts'
import type { Wake } from '../model/wake.ts'
import type { LogSource } from '../ports/log.ts'
import type { Place } from '../ports/place.ts'
import type { Store } from '../ports/store.ts'
import type { RunStart, Telemetry } from '../ports/system.ts'
import { StateCache } from '../state/cache.ts'
import type { Compiled } from '../stream/compiled.ts'
import { type Asked, type Calls, type Counter, counted } from './counted.ts'
import { appendTo, type EpochShape, eventsOf, here, pipelineOf, placeOf, sinksOn } from './counted-world.ts'

export type { EpochShape } from './counted-world.ts'

/** How events are laid down, read and completed: the intake of a deployed place, over the store of each function. */
export interface CountedIntake {
  open(
    store: Store,
    pipeline: string,
    topic: string,
  ): LogSource & {
    describe(topicId: string, partition: number, start: bigint): Promise<void>
  }
  lay(job: Job, batches: readonly PartitionBatch[]): Promise<unknown>
  recover(job: Job, broker: (source: string) => Promise<LogSource>): Promise<unknown>
}

/** What else a count may be told. */
export interface CountOptions {
  /** Hears what steps say. */
  readonly telemetry?: Telemetry
  /** Needed by a shape with `events`. */
  readonly intake?: CountedIntake
}

/** What a pipeline of a shape takes. */
export interface EpochCalls {
  /** An epoch more in a run that goes on; what is done every ten epochs counts a tenth. */
  readonly epoch: Calls
  /** A run, beside its epochs: the ring that starts it, its claim and its end. */
  readonly run: Calls
  /** An event of a mapping while a run is busy. */
  readonly event: Calls
  /** A tick of the schedule that finds nothing to do; with an intake of events also a look at the brokers. */
  readonly tick: Calls
}

const shortRun = 2
const longRun = 22

/** Runs a pipeline of the shape and counts. */
export async function countEpochCalls(shape: EpochShape, options: CountOptions = {}): Promise<EpochCalls> {
  const bench = benchOf(shape, options)
  await bench.describe()
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

function benchOf(shape: EpochShape, { telemetry = { emit: () => {} }, intake }: CountOptions) {
  const { partitions, sources, events = 0 } = shape
  const perPartition = Math.max(8, events, Math.ceil(400 / (partitions * sources)))
  const compiled = pipelineOf(shape, perPartition)
  const { pipeline: id } = compiled.topology
  const counter = counted()
  const logs = new Map(
    Object.keys(compiled.sources).map((source) => [source, memoryLog({ topic: source, partitions })]),
  )
  const starts: RunStart[] = []
  const place = placeOf(starts, telemetry, shape.blind ?? false)
  const jobs = new Map<string, Job>()
  const jobOf = (name: string): Job => {
    const known = jobs.get(name)
    if (known !== undefined) return known
    const own = counter.place(name, place)
    const source: Place['source'] = async (_, topic) =>
      intake === undefined ? logs.get(topic)! : intake.open(own.store, id, topic)
    const job = {
      compiled,
      place: { ...own, source, sink: sinksOn(own.store) },
      states: new StateCache(),
      warm: new Map(),
    }
    jobs.set(name, job)
    return job
  }
  const arrive = async () => {
    const arrived = await appendTo(logs, partitions, perPartition)
    for (const batches of intake === undefined ? [] : eventsOf(arrived, events))
      await intake?.lay(jobOf('intake'), batches)
  }
  const busy: { event: Calls | null } = { event: null }
  const run = async (epochs: number): Promise<Calls> => {
    counter.reset()
    let toCome = epochs
    const next = async () => void (toCome-- > 0 && (await arrive()))
    for (let i = 0; i < (shape.backlog ? epochs : 1); i++) await next()
    await ring(jobOf('trigger').place, id)
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
    async describe() {
      for (const [topic, log] of intake === undefined ? [] : logs) {
        const { topicId } = await log.bounds()
        for (let partition = 0; partition < partitions; partition++)
          await intake?.open(place.store, id, topic).describe(topicId, partition, 0n)
      }
    },
    event: async () => busy.event ?? {},
    async tick() {
      counter.reset()
      counter.note('tick', 'invocation')
      await wake(jobOf('tick'), { wake: 'tick' })
      if (intake !== undefined) {
        counter.note('recover', 'invocation')
        await intake.recover(jobOf('recover'), async (source) => logs.get(source)!)
      }
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
