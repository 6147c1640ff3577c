/**
 * `exhaust`: one fault at every port call of a small run, each kind in turn.
 *
 * First the run without faults is counted; then it is repeated with a fault at call n of its first process, for every
 * n and every kind (optionally with a second fault in the process that follows). Deterministic: a failing pair is
 * named and can be run alone.
 */
import { isPawlError, PawlError } from '../model/errors.ts'
import { prng } from '../model/prng.ts'
import type { Settings } from '../model/settings.ts'
import { compile } from '../stream/compile.ts'
import type { Compiled } from '../stream/compiled.ts'
import type { Sabotage } from './actor.ts'
import { Broken, type ChainMemory } from './check.ts'
import { createDriver } from './drive.ts'
import type { Fault } from './gate.ts'
import { checkWorld } from './simulate.ts'
import { arrivalsOf, type SimulationInput } from './workload.ts'
import { createWorld, type World } from './world.ts'

/** What is enumerated. */
export interface ExhaustOptions {
  readonly input?: SimulationInput
  readonly partitions?: number
  readonly settings?: Partial<Settings>
  readonly faults?: readonly Fault[]
  /** Also a second fault at every n-th call of the second process: crash-before each time. 0: none. */
  readonly secondEvery?: number
  readonly sabotage?: Sabotage
}

/** How much was enumerated. */
export interface Exhausted {
  /** Port calls of the run without faults. */
  readonly calls: number
  /** Runs with a fault. */
  readonly runs: number
}

/** Every way in which one call can go wrong, with zombies that come back soon, later and last of all. */
export const everyFault: readonly Fault[] = [
  { fault: 'crash-before' },
  { fault: 'crash-after' },
  { fault: 'reply-lost' },
  { fault: 'refused' },
  { fault: 'repeated', answer: 'first' },
  { fault: 'repeated', answer: 'second' },
  ...[1, 7, 30].map((calls) => ({ fault: 'late', calls }) as const),
  ...[3, 12, 40, 1e9].map((calls) => ({ fault: 'zombie', calls }) as const),
  ...[2, 9, 25, 1e9].map((calls) => ({ fault: 'timeout', calls }) as const),
]

interface Planned {
  readonly at: number
  readonly fault: Fault
  /** Call of the second process at which it dies. */
  readonly second: number | null
}

/** Runs them all. Throws `SIMULATION_FAILED` that names the first fault that broke something. */
export async function exhaust(pipeline: unknown, options: ExhaustOptions = {}): Promise<Exhausted> {
  const compiled = fixSettings(compile(pipeline), options.settings)
  const calls = (await runWith(compiled, options, null)).calls
  const faults = options.faults ?? everyFault
  let runs = 0
  for (let at = 0; at < calls; at++) {
    for (const fault of faults) {
      for (const second of secondsOf(calls, options.secondEvery ?? 0)) {
        runs++
        await runWith(compiled, options, { at, fault, second })
      }
    }
  }
  return { calls, runs }
}

function secondsOf(calls: number, every: number): (number | null)[] {
  if (every === 0) return [null]
  return Array.from({ length: Math.ceil(calls / every) }, (_, i) => i * every)
}

function fixSettings(compiled: Compiled, fixed: Partial<Settings> = {}): Compiled {
  const settings: Settings = {
    ...compiled.settings,
    epoch: { spanMax: 6, fuseSpanMax: 0, convictAfter: 1_000_000 },
    checkpoint: { ...compiled.settings.checkpoint, intervalMs: 0 },
    retain: { epochs: 100 },
    ...fixed,
  }
  return { ...compiled, settings }
}

async function runWith(compiled: Compiled, options: ExhaustOptions, planned: Planned | null): Promise<World> {
  const count = options.partitions ?? 2
  const world = createWorld({ compiled, seed: 7, partitions: () => count, traceMax: 2000 })
  const memory: ChainMemory = new Map()
  const driver = createDriver({
    world,
    memory,
    sabotage: options.sabotage,
    mortal: true,
    script:
      (actor) =>
      ({ index }) => {
        if (planned !== null && actor === 0 && index === planned.at) return planned.fault
        if (planned !== null && actor === 1 && index === planned.second) return { fault: 'crash-before' }
        return null
      },
  })
  try {
    for (const { source, partition, record } of arrivalsOf(compiled, options.input, prng(11), () => count)) {
      await world.logs.get(source)!.append(partition, [record])
    }
    await driver.untilDone({ rings: 30 })
    await driver.untilOver({ rings: 30 })
    await checkWorld(world, memory, false)
    return world
  } catch (error) {
    throw failure(world, planned, error)
  }
}

function failure(world: World, planned: Planned | null, error: unknown): PawlError {
  const why = error instanceof Broken || isPawlError(error) || error instanceof Error ? error.message : String(error)
  const what =
    planned === null
      ? 'without faults'
      : `${JSON.stringify(planned.fault)} at call ${planned.at}, second ${planned.second}`
  const trace = world.trace.slice(-80).join('\n')
  return new PawlError(
    'SIMULATION_FAILED',
    `${what}: ${why}\n--- the end of the trace\n${trace}\n---`,
    { invariant: why },
    error,
  )
}
