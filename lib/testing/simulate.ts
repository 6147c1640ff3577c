/**
 * `simulate`: your pipeline in a hostile world, from a seed.
 *
 * The seed draws everything: partitions, shards, sizes of epochs, when records arrive and rings are lost, and what
 * goes wrong at which call. First faults, and safety is checked after each process; then the faults stop, and all
 * input must become visible; then the whole world is checked. The same seed gives the same trace.
 */

import type { MemoryRow } from '../adapters/memory/table.ts'
import { collect } from '../epoch/collect.ts'
import { PawlError } from '../model/errors.ts'
import { type Prng, prng } from '../model/prng.ts'
import { expressSettings, type Settings } from '../model/settings.ts'
import { compile } from '../stream/compile.ts'
import type { Compiled } from '../stream/compiled.ts'
import { jobOf, type Sabotage } from './actor.ts'
import { Broken, type Chain } from './broken.ts'
import { chainOf, checkChain, checkStore, checkVisible } from './check.ts'
import { createDriver } from './drive.ts'
import { drawFault, type Fault, faultKinds } from './fault.ts'
import { type FaultScript, gate } from './gate.ts'
import { personOf } from './person.ts'
import { tell } from './story.ts'
import { type Arrival, arrivalsOf, type SimulationInput } from './workload.ts'
import { World } from './world.ts'

const personSalt = 0x9e3779b9

/** What a simulation is given; everything else is drawn from the seed. */
export interface SimulateOptions {
  /** Draws the whole run; 1 when absent. */
  readonly seed?: number
  /** Values by source id; lines of words for sources of text when absent. */
  readonly input?: SimulationInput
  /** Settings that the seed may not draw. */
  readonly settings?: Partial<Settings>
  /** Most processes that are made to fail. Drawn when absent. */
  readonly failing?: number
  /** Kinds of faults to draw from; all when absent. */
  readonly faults?: readonly Fault['fault'][]
  /** Sinks are sometimes restored from a backup. On when absent. */
  readonly rollbacks?: boolean
  /** A person sometimes pauses, drains, resumes, hurries and aborts. On when absent. */
  readonly steering?: boolean
  /** Called with all visible rows at the end; throws to fail. */
  readonly verify?: (rows: ReadonlyMap<string, readonly MemoryRow[]>) => void
  /** Breaks the protocol on purpose. */
  readonly sabotage?: Sabotage
  /** `express`: runs start twice now and then, end after five minutes, and nobody can tell whether one is gone. */
  readonly workflow?: 'standard' | 'express'
}

/** What a simulation that broke nothing went through. */
export interface Simulated {
  readonly seed: number
  readonly epochs: number
  readonly processes: number
  readonly calls: number
  readonly faults: number
  readonly healed: number
  /** Outputs of a lane and epoch that at-most-once gave up. */
  readonly unconfirmed: number
  /** Rows that sinks had refused and that became dead letters. */
  readonly carried: number
  readonly rows: ReadonlyMap<string, readonly MemoryRow[]>
  /** Every port call and event, one line each. */
  readonly trace: readonly string[]
  /** What happened, in words: one line an event, by process. */
  readonly story: string
}

/** Runs one simulation. Throws `SIMULATION_FAILED` with the broken invariant, what happened, and how to repeat it. */
export async function simulate(pipeline: unknown, options: SimulateOptions = {}): Promise<Simulated> {
  const seed = options.seed ?? 1
  const random = prng(seed)
  const drawn = drawSettings(compile(pipeline), random.fork(), options.settings)
  const compiled = options.workflow === 'express' ? onExpress(drawn) : drawn
  const counts = new Map(Object.keys(compiled.sources).map((source) => [source, 1 + random.int(4)]))
  const partitions = (source: string) => counts.get(source) ?? 1
  const baseOffset = random.chance(0.2) ? 9_007_199_254_740_993n : BigInt(random.int(100))
  const arrivals = arrivalsOf(compiled, options.input, random.fork(), partitions)
  const { workflow = 'standard' } = options
  const latency = drawLatency(random.fork(), workflow === 'express' ? 500 : 5000)
  const world = new World({ compiled, seed: random.uint32(), partitions, baseOffset, workflow, ...latency })
  try {
    return await run(world, seed, random, arrivals, options)
  } catch (error) {
    throw simulationFailed(world, error, `seed ${seed}`, `simulate(pipeline, { seed: ${seed} })`)
  }
}

/** Small epochs, several shards, early hand-overs: what a large pipeline meets in a day, in a few calls. */
function drawSettings(compiled: Compiled, random: Prng, fixed: Partial<Settings> = {}): Compiled {
  const drawn: Settings = {
    ...compiled.settings,
    shards: 1 + random.int(3),
    epoch: {
      spanMax: 3 + random.int(40),
      fuseSpanMax: random.chance(0.5) ? 0 : random.int(30),
      fuseMs: 0,
      convictAfter: 1_000_000,
    },
    checkpoint: {
      ...compiled.settings.checkpoint,
      intervalMs: random.pick([0, 100, 1000]),
      minPauseMs: random.pick([0, 50]),
      timeoutMs: 600_000,
    },
    retain: { epochs: random.pick([100, 100, 12]) },
    runEpochsMax: 2 + random.int(20),
    leaseMs: random.pick([40_000, 40_000, 150_000]),
  }
  const epoch = { ...drawn.epoch, fuseMs: random.pick([0, 0, 1, 1000]) }
  return { ...compiled, settings: { ...drawn, epoch, ...fixed }, topology: compiled.topology }
}

/** What a deployment as Express makes of the settings. */
function onExpress(compiled: Compiled): Compiled {
  const checkpoint = { ...compiled.settings.checkpoint, timeoutMs: 60_000 }
  return { ...compiled, settings: expressSettings({ ...compiled.settings, checkpoint }) }
}

/** Often calls take no time; sometimes so much that leases must be renewed, and others find them expired. */
function drawLatency(random: Prng, mostMs: number): { latencyMs?: () => number } {
  const slowest = Math.min(mostMs, random.pick([0, 0, 10, 1000, 5000]))
  return slowest === 0 ? {} : { latencyMs: () => random.int(slowest) }
}

async function run(
  world: World,
  seed: number,
  random: Prng,
  arrivals: readonly Arrival[],
  options: SimulateOptions,
): Promise<Simulated> {
  const tally = { faults: 0, healed: 0, unconfirmed: 0 }
  // A stream of its own: who steers changes nothing that a seed draws otherwise.
  const person = (options.steering ?? true) ? personOf(world, prng(seed ^ personSalt)) : () => {}
  const chaos = chaosOf(world, random.fork(), arrivals, options, tally, person)
  const cold = random.fork()
  const coldChance = random.pick([0, 0.3, 1])
  const driver = createDriver({
    world,
    sabotage: options.sabotage,
    mortal: random.chance(0.8),
    cold: () => cold.chance(coldChance),
    script: chaos.script,
    onEvent: (event) => {
      if (event.event === 'healed') tally.healed++
      if (event.event === 'unconfirmed') tally.unconfirmed++
    },
  })
  chaos.arrive(random.int(arrivals.length + 1))
  await driver.untilDone({ rings: 400 })
  while (chaos.left() > 0) {
    world.releaseAll()
    chaos.arrive(Math.max(1, random.int(20)))
    await driver.untilDone({ rings: 400 })
    checkChain(await chainOf(world))
  }
  await driver.untilOver({ rings: 400 })
  if (world.restored) {
    // A sink that was restored after its last epoch is healed by its next one.
    chaos.again()
    await driver.untilOver({ rings: 400 })
  }
  const chain = await checkWorld(world)
  const rows = new Map([...world.sinks].map(([id, sink]) => [id, sink.visible()]))
  options.verify?.(rows)
  const { calls, trace } = world
  const story = tell(world.story, world.story.length)
  const { epoch: epochs } = chain.head.committed
  const carried = chain.manifests.reduce((sum, { refused }) => sum + (refused?.rows ?? 0), 0)
  return { seed, epochs, processes: driver.actors.length, calls, ...tally, carried, rows, trace, story }
}

/** Everything that must hold once a world has come to rest. */
export async function checkWorld(world: World): Promise<Chain> {
  if (world.broken !== null) throw new Broken(world.broken)
  const chain = await chainOf(world)
  checkChain(chain)
  await checkVisible(world, chain, world.restored ? 'by marker' : 'all')
  await collectAll(world)
  await checkStore(world, await chainOf(world), true)
  if (world.broken !== null) throw new Broken(world.broken)
  return chain
}

async function collectAll(world: World): Promise<void> {
  const calm = gate(world, -1, () => null)
  const start = { pipeline: '', sequence: 0, wakes: 0 }
  await collect(jobOf({ world, number: -1, start, script: () => null, mortal: true, onEvent: () => {} }, calm))
}

/** The failure as a person reads it: what broke, what happened before, how to see it again. */
export function simulationFailed(world: World, error: unknown, which: string, repeat: string): PawlError {
  const invariant = error instanceof Error ? error.message : String(error)
  const text = [
    `${which} of ${world.compiled.topology.pipeline} broke an invariant: ${invariant}`,
    '',
    `what happened (${world.calls} port calls)`,
    tell(world.story),
    '',
    `again: ${repeat}, with the same pipeline and input`,
    '',
  ].join('\n')
  return new PawlError('SIMULATION_FAILED', text, { invariant, repeat }, error)
}

interface Chaos {
  readonly script: (actor: number) => FaultScript
  /** Appends so many of the records that are still to come. */
  arrive(count: number): void
  left(): number
  /** Appends all records once more. */
  again(): void
}

function chaosOf(
  world: World,
  random: Prng,
  arrivals: readonly Arrival[],
  options: SimulateOptions,
  tally: { faults: number },
  person: () => void,
): Chaos {
  const failing = options.failing ?? random.int(8)
  const rollbackChance = (options.rollbacks ?? true) && random.chance(0.3) ? 0.01 : 0
  const outageChance = random.pick([0, 0, 0.01, 0.05])
  const backups = new Map<string, ReturnType<NonNullable<ReturnType<World['sinks']['get']>>['snapshot']>>()
  let arrived = 0
  const arrive = (count: number) => {
    for (const arrival of arrivals.slice(arrived, arrived + count)) lay(world, random, arrival)
    arrived = Math.min(arrivals.length, arrived + count)
  }
  const disturb = () => {
    person()
    if (random.chance(0.03)) arrive(1 + random.int(5))
    if (random.chance(outageChance)) takeDown(world, random)
    if (rollbackChance === 0) return
    for (const [id, sink] of world.sinks) {
      if (random.chance(0.02)) backups.set(id, sink.snapshot())
      const backup = backups.get(id)
      // A backup without the base markers is a sink that was recreated: that is another test.
      if (backup && backup.markers.size === world.compiled.sinks[id].lanes && random.chance(rollbackChance)) {
        sink.restore(backup)
        world.restored = true
        world.note(`sink ${id} was restored from a backup`)
      }
    }
  }
  const left = () => arrivals.length - arrived
  return {
    arrive,
    left,
    again() {
      arrived = 0
      arrive(arrivals.length)
    },
    script(actor) {
      const doomed = actor < failing
      const at = new Set(
        doomed ? Array.from({ length: 1 + random.int(3) }, () => random.int(random.pick([15, 60, 200]))) : [],
      )
      return ({ index }) => {
        if (doomed && left() > 0) disturb()
        if (!at.has(index)) return null
        tally.faults++
        return drawFault(random, options.faults ?? faultKinds)
      }
    },
  }
}

/** Appends a record, now and then after a hole, after an aborted transaction, or in a partition that is new. */
function lay(world: World, random: Prng, { source, partition, record }: Arrival): void {
  const log = world.logs.get(source)!
  const oddity = random.int(60)
  if (oddity === 0) log.skip(partition, BigInt(1 + random.int(4)))
  if (oddity === 1) log.appendAborted(partition, [record])
  if (oddity === 2) {
    log.grow(partition + 2)
    world.note(`${source} has at least ${partition + 2} partitions`)
    void log.append(partition + 1, [record])
  } else void log.append(partition, [record])
}

/** One sink does not answer for some calls. */
function takeDown(world: World, random: Prng): void {
  const [id, sink] = random.pick([...world.sinks])
  if (sink.down) return
  sink.down = true
  world.note(`sink ${id} is down`)
  world.after(random.pick([1, 5, 30, 150]), () => {
    sink.down = false
    world.note(`sink ${id} is up again`)
  })
}
