/**
 * Drive: lets a world run its course.
 *
 * Starts what was started, lets stalled processes lie, rings when nothing is alive, and stops when all input is
 * committed and promoted. The order of things depends on the seed alone.
 */

import { turn } from '../adapters/memory/clock.ts'
import { ring } from '../epoch/ring.ts'
import type { ProgressEvent } from '../model/event.ts'
import { type Actor, launcherOf, type Sabotage, startActor } from './actor.ts'
import { Broken, mustHoldThat } from './broken.ts'
import type { FaultScript } from './gate.ts'
import { eventWords } from './story.ts'
import type { World } from './world.ts'

/** Moves a world on. */
export interface Driver {
  readonly actors: readonly Actor[]
  /** Runs until all input is visible. `rings` bounds how often a silent world is woken. */
  untilDone(options: { readonly rings: number }): Promise<void>
  /** Runs until nothing is alive, however far that got. */
  untilQuiet(): Promise<void>
  /** Lets go of every stalled call, until no process is left; then runs until all input is visible. */
  untilOver(options: { readonly rings: number }): Promise<void>
}

/** What is to run, and what goes wrong in it. */
export interface DriverOptions {
  readonly world: World
  /** The faults of each process, by its number. */
  readonly script: (actor: number) => FaultScript
  readonly sabotage?: Sabotage
  readonly mortal: boolean
  /** Processes whose steps start with empty memory; none when absent. */
  readonly cold?: (actor: number) => boolean
  /** Processes that a person started to go on although the pipeline is parked. */
  readonly resume?: (actor: number) => boolean
  readonly onEvent?: (event: ProgressEvent) => void
}

const actorsMax = 2000
const turnsMax = 100_000
/** The schedule that makes up for lost rings: parked promotions come due, leases run out. */
const scheduleMs = 60_000

/** A driver of the world, with no process yet. */
export function createDriver(options: DriverOptions): Driver {
  const { world } = options
  const actors: Actor[] = []
  const live = new Set<Actor>()
  const unfinished = new Set<Actor>()

  const spawn = () => {
    for (const start of world.starts.splice(0)) {
      mustHoldThat(actors.length < actorsMax, 'progress is made with a bounded number of runs')
      const number = actors.length
      const actor = startActor({
        world,
        number,
        start,
        script: options.script(number),
        sabotage: options.sabotage,
        mortal: options.mortal,
        cold: options.cold?.(number),
        resume: options.resume?.(number),
        onEvent(event) {
          const words = eventWords(event)
          if (words !== null) world.note(words, number)
          options.onEvent?.(event)
        },
      })
      actors.push(actor)
      live.add(actor)
      unfinished.add(actor)
      actor.ended.then(() => unfinished.delete(actor))
      const gone = () => live.delete(actor)
      actor.ended.then(gone)
      actor.gate.stuck.then(gone)
    }
  }
  const mustBeWhole = () => {
    if (world.broken !== null) throw new Broken(world.broken)
  }
  const untilQuiet = async () => {
    spawn()
    while (live.size > 0) {
      await Promise.race([...live].flatMap((actor) => [actor.ended, actor.gate.stuck]))
      await turn()
      mustBeWhole()
      spawn()
    }
    mustBeWhole()
  }
  const untilDone: Driver['untilDone'] = async ({ rings }) => {
    await untilQuiet()
    for (let rung = 0; !(await isDone(world)); rung++) {
      mustHoldThat(rung < rings, `all input becomes visible after ${rings} rings`)
      world.note('the schedule rings')
      world.clock.advance(scheduleMs)
      const launcher = world.workflow === 'express' ? launcherOf(world) : tickLauncher(world)
      await ring({ ledger: world.ledger, launcher, clock: world.clock }, world.compiled.topology.pipeline)
      await untilQuiet()
    }
  }
  return {
    actors,
    untilQuiet,
    untilDone,
    async untilOver(options) {
      do {
        for (let turns = 0; world.releaseAll() || unfinished.size > 0; turns++) {
          mustHoldThat(turns < turnsMax, 'every process ends once it is let go')
          await turn()
        }
        mustBeWhole()
        await untilDone(options)
        // A call that is made late may have been put off only now.
      } while (unfinished.size > 0 || world.releaseAll())
    },
  }
}

/** The schedule's launcher: sees which places are gone, starts by name. */
function tickLauncher(world: World) {
  return {
    async start(run: { pipeline: string; sequence: number; wakes: number }) {
      const name = `${run.sequence}-${run.wakes}`
      if (world.names.has(name)) return 'exists' as const
      world.names.add(name)
      world.starts.push(run)
      return 'started' as const
    },
    // A schedule that finds the pipeline held by nobody it knows starts a run, which then watches the lease.
    status: async () => 'gone' as const,
  }
}

/** Everything that the logs hold or sinks refused is committed, everything committed is promoted, nothing is open. */
export async function isDone(world: World): Promise<boolean> {
  const head = await world.ledger.read(world.compiled.topology.pipeline)
  if (head === null || head.open !== null || head.promotedThrough < head.committed.epoch) return false
  if (head.refusing?.length) return false
  const bytes = await world.store.read(head.committed.manifest.name)
  if (bytes === null) return false
  const { progress } = JSON.parse(bytes.toString()) as {
    progress: { source: string; partition: number; end: string }[]
  }
  const ends = new Map(progress.map((at) => [`${at.source}/${at.partition}`, at.end]))
  for (const id of Object.keys(world.compiled.sources)) {
    for (const { partition, end } of (await world.logs.get(id)!.bounds()).partitions) {
      if (ends.get(`${id}/${partition}`) !== end.toString()) return false
    }
  }
  return true
}
