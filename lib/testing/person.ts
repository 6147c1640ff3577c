/**
 * A person at the command line of a simulated pipeline: pauses, drains, resumes, hurries and aborts.
 *
 * The deeds are those of `epoch/steer.ts`, over the world's own ledger. What was paused is resumed some calls later,
 * as a person would; a deed never waits for another process, and nobody waits for it.
 */

import { abortRun, drain, hurry, pause, resume, type Steered, type Wish } from '../epoch/steer.ts'
import type { Prng } from '../model/prng.ts'
import { launcherOf } from './actor.ts'
import type { World } from './world.ts'

/** What a person may do. */
export const deeds = ['pause', 'drain', 'resume', 'hurry', 'abort'] as const
/** One of them. */
export type Deed = (typeof deeds)[number]

const wish: Wish = { by: 'a person', why: 'maintenance' }

/** Does it now, on whatever the head says. Before the first head there is nothing to steer. */
export async function steer(world: World, deed: Deed): Promise<void> {
  const { ledger, random, clock, compiled } = world
  const head = await ledger.read(compiled.topology.pipeline)
  if (head === null) return
  const job: Steered = { compiled, place: { ledger, random, clock, launcher: launcherOf(world) } }
  world.note(`a person says ${deed}`)
  switch (deed) {
    case 'pause':
      return void (await pause(job, wish))
    case 'drain':
      return void (await drain(job, wish))
    case 'resume':
      return void (await resume(job))
    case 'hurry':
      return void (await hurry(job))
    case 'abort':
      return void (await abortRun(job, head, wish))
  }
}

/** A person who does something now and then, with the chance that the seed draws; often nobody is there. */
export function personOf(world: World, random: Prng): () => void {
  const chance = random.pick([0, 0, 0, 0.01, 0.04])
  // One thing after another; ledger and launcher of the world do not fail, only what processes call does.
  let busy = Promise.resolve()
  const say = (deed: Deed) => {
    busy = busy.then(() => steer(world, deed))
  }
  return () => {
    if (!random.chance(chance)) return
    const deed = random.pick(deeds)
    say(deed)
    if (deed === 'pause' || deed === 'drain') world.after(random.pick([1, 5, 30, 150]), () => say('resume'))
  }
}
