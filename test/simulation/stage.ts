/**
 * A stage for scenarios: one world, its driver, and what a test needs to disturb and to look at.
 *
 * Nothing here judges; `settle` runs to the end and holds the whole world to the checker.
 */

import { ring } from '../../lib/epoch/ring.ts'
import { compile, isPawlError, type Settings } from '../../lib/index.ts'
import type { ProgressEvent } from '../../lib/model/event.ts'
import type { Head } from '../../lib/model/head.ts'
import { prng } from '../../lib/model/prng.ts'
import type { LogRecord } from '../../lib/model/records.ts'
import type { Compiled } from '../../lib/stream/compiled.ts'
import { launcherOf, type Sabotage } from '../../lib/testing/actor.ts'
import type { Chain } from '../../lib/testing/broken.ts'
import { createDriver, type Driver, isDone } from '../../lib/testing/drive.ts'
import { type FaultScript, gate, guarded } from '../../lib/testing/gate.ts'
import { checkWorld } from '../../lib/testing/simulate.ts'
import { arrivalsOf } from '../../lib/testing/workload.ts'
import { World, type WorldOptions } from '../../lib/testing/world.ts'
import type { Sample } from './pipelines.ts'

/** How a stage differs from the plain one. */
export interface StageOptions extends Partial<Pick<WorldOptions, 'baseOffset' | 'latencyMs' | 'sinkLimits'>> {
  readonly settings?: Partial<Settings>
  readonly partitions?: number
  readonly sabotage?: Sabotage
  readonly script?: (actor: number) => FaultScript
  readonly mortal?: boolean
  readonly cold?: boolean
  readonly resume?: (actor: number) => boolean
}

/** A world with everything at hand. */
export interface Stage {
  readonly world: World
  readonly driver: Driver
  readonly events: ProgressEvent[]
  /** Appends so many of the sample's records that have not come yet; all of them when absent. */
  arrive(count?: number): void
  /** Appends records to a partition. */
  append(source: string, partition: number, ...values: (string | null)[]): void
  /** Runs until all input is visible; throws when it does not become so. */
  run(rings?: number): Promise<void>
  /** Runs what was started, then wakes the pipeline so often, whatever comes of it. */
  wake(times?: number): Promise<void>
  /** Rings once, as a trigger does: nothing but rings wakes anybody. */
  ring(script?: FaultScript, by?: typeof ring): Promise<void>
  quiet(): Promise<void>
  done(): Promise<boolean>
  head(): Promise<Head>
  parked(): Promise<string | null>
  /** Ends all processes, runs to the end and checks everything. */
  settle(rings?: number): Promise<Chain>
  /** Deploys another pipeline file; settings of this stage but for those given. */
  deploy(pipeline: unknown, settings?: Partial<Settings>): Compiled
  /** Values visible in a sink, as text. */
  values(sink: string): string[]
}

const plain: Partial<Settings> = {
  epoch: { spanMax: 6, fuseSpanMax: 1000, fuseMs: 0, convictAfter: 2 },
  checkpoint: { intervalMs: 0, minPauseMs: 0, timeoutMs: 600_000, tolerableFailures: 0 },
  retain: { epochs: 100 },
}

/** A stage on which nothing has happened yet. */
export function stage(sample: Sample, options: StageOptions = {}): Stage {
  const { settings, partitions = 2, sabotage, script = () => () => null, mortal = true, cold, resume } = options
  const fixed = (pipeline: unknown, more: Partial<Settings> = {}): Compiled => {
    const compiled = compile(pipeline)
    return { ...compiled, settings: { ...compiled.settings, ...plain, ...settings, ...more } }
  }
  const world = new World({ ...options, compiled: fixed(sample.pipeline), seed: 5, partitions: () => partitions })
  const arrivals = arrivalsOf(world.compiled, sample.input, prng(11), () => partitions)
  const events: ProgressEvent[] = []
  const driver = createDriver({
    world,
    script,
    sabotage,
    mortal,
    cold: () => cold ?? false,
    resume,
    onEvent: (event) => events.push(event),
  })
  const { pipeline } = world.compiled.topology
  const append = (source: string, partition: number, records: LogRecord[]) =>
    void world.logs.get(source)!.append(partition, records)
  const head = async () => (await world.ledger.read(pipeline))!
  return {
    world,
    driver,
    events,
    arrive(count = arrivals.length) {
      for (const { source, partition, record } of arrivals.splice(0, count)) append(source, partition, [record])
    },
    append: (source, partition, ...values) =>
      append(
        source,
        partition,
        values.map((value) => ({ key: null, value, timestampMs: world.clock.nowMs() })),
      ),
    run: (rings = 30) => driver.untilDone({ rings }),
    async wake(times = 1) {
      for (let i = 0; i < times; i++) {
        await driver.untilDone({ rings: 1 }).catch((error: Error) => {
          if (!error.message.includes('all input becomes visible')) throw error
        })
      }
    },
    async ring(faults = () => null, by = ring) {
      const held = gate(world, 900, faults)
      const place = {
        ledger: guarded(held, 'ledger', world.ledger),
        clock: world.clock,
        launcher: guarded(held, 'launcher', launcherOf(world)),
      }
      await by(place, pipeline)
    },
    quiet: () => driver.untilQuiet(),
    done: () => isDone(world),
    head,
    parked: async () => (await world.ledger.read(pipeline))?.parked?.code ?? null,
    async settle(rings = 30) {
      await driver.untilOver({ rings })
      return checkWorld(world)
    },
    deploy(changed, more) {
      const compiled = fixed(changed, more)
      world.deploy(compiled)
      return compiled
    },
    values: (sink) =>
      world.sinks
        .get(sink)!
        .visible()
        .map((row) => row.value?.toString() ?? 'null'),
  }
}

/** The invariant that breaks while `play` goes on, or null: what a proof of the prover asks for. */
export async function brokenIn(play: () => Promise<unknown>): Promise<string | null> {
  try {
    await play()
    return null
  } catch (error) {
    if (isPawlError(error) && error.code === 'SIMULATION_FAILED') return String(error.details.invariant)
    if (error instanceof Error && error.name === 'Broken') return error.message
    throw error
  }
}
