/**
 * `exhaust`: one fault at every port call of a small run, each kind in turn.
 *
 * First the run without faults is counted; then it is repeated with a fault at call n of its first process, for every
 * n and every kind (optionally with a second fault in the process that follows). Deterministic: a failing pair is
 * named and can be run alone.
 */
import { prng } from '../model/prng.ts'
import type { Settings } from '../model/settings.ts'
import type { SinkLimits } from '../ports/sink.ts'
import { compile } from '../stream/compile.ts'
import type { Compiled } from '../stream/compiled.ts'
import type { Sabotage } from './actor.ts'
import { createDriver } from './drive.ts'
import { everyFault, type Fault } from './fault.ts'
import { checkWorld, simulationFailed } from './simulate.ts'
import { arrivalsOf, type SimulationInput } from './workload.ts'
import { World } from './world.ts'

/** What is enumerated. */
export interface ExhaustOptions {
  readonly input?: SimulationInput
  readonly partitions?: number
  readonly settings?: Partial<Settings>
  readonly faults?: readonly Fault[]
  /** Also a second fault at every n-th call of the second process: crash-before each time. 0: none. */
  readonly secondEvery?: number
  /** Steps start with empty memory, as fresh functions do. */
  readonly cold?: boolean
  /** First offset of every partition. */
  readonly baseOffset?: bigint
  /** How long each port call takes; 0 when absent. */
  readonly latencyMs?: number
  /** What one promotion may carry a lane. */
  readonly sinkLimits?: SinkLimits
  /** How often a silent world is woken before it counts as stuck; 30 when absent. */
  readonly rings?: number
  /** One run alone, as a failure names it. */
  readonly only?: PlannedFault
  /** Breaks the protocol on purpose. */
  readonly sabotage?: Sabotage
  /** As in `simulate`. */
  readonly workflow?: 'standard' | 'express'
}

/** How much was enumerated. */
export interface Exhausted {
  /** Port calls of the run without faults. */
  readonly calls: number
  /** Runs with a fault. */
  readonly runs: number
}

/** One fault of one run, and the call of the second process at which that one dies. */
export interface PlannedFault {
  readonly at: number
  readonly fault: Fault
  /** Call of the second process at which it dies. */
  readonly second: number | null
}

/** Runs them all. Throws `SIMULATION_FAILED` that names the first fault that broke something. */
export async function exhaust(pipeline: unknown, options: ExhaustOptions = {}): Promise<Exhausted> {
  const compiled = fixSettings(compile(pipeline), options.settings)
  if (options.only) return { calls: (await runWith(compiled, options, options.only)).calls, runs: 1 }
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
    epoch: { spanMax: 6, fuseSpanMax: 0, fuseMs: 0, convictAfter: 1_000_000 },
    checkpoint: { ...compiled.settings.checkpoint, intervalMs: 0 },
    retain: { epochs: 100 },
    // A successor watches for few calls, so that zombies meet it at work.
    leaseMs: 40_000,
    ...fixed,
  }
  return { ...compiled, settings }
}

async function runWith(compiled: Compiled, options: ExhaustOptions, planned: PlannedFault | null): Promise<World> {
  const count = options.partitions ?? 2
  const { baseOffset, latencyMs = 0, sinkLimits, workflow } = options
  const world = new World({
    compiled,
    seed: 7,
    partitions: () => count,
    baseOffset,
    latencyMs: () => latencyMs,
    sinkLimits,
    workflow,
  })
  const driver = createDriver({
    world,
    sabotage: options.sabotage,
    mortal: true,
    cold: () => options.cold ?? false,
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
    await driver.untilDone({ rings: options.rings ?? 30 })
    await driver.untilOver({ rings: options.rings ?? 30 })
    await checkWorld(world)
    return world
  } catch (error) {
    const only = planned === null ? 'faults: []' : `only: ${JSON.stringify(planned)}`
    throw simulationFailed(world, error, 'enumeration', `exhaust(pipeline, { ${only} })`)
  }
}
