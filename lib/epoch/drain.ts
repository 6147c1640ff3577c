/**
 * Drain: reads up to the ends that the logs had when a person asked, then lets the pause take hold.
 *
 * Reads:  bounds of every source. Writes: the head: the ends, later the end of the drain.
 * Safe to repeat because: ends are pinned once for each wish, by whoever comes first; the drain ends only on the head
 * whose manifest was surveyed, with everything promoted. Both apply to the wish that was seen and to no later one.
 */
import type { DrainEnd, Head } from '../model/head.ts'
import type { RunKey } from '../model/steps.ts'
import { amend } from './amend.ts'
import { holds, type Job, openSource } from './job.ts'

/** Pins how far to read. Later than the wish, so that all input from before it is covered. Throws what sources throw. */
export async function pinEnds(job: Job, run: RunKey, seen: Head): Promise<null> {
  const ends: DrainEnd[] = []
  for (const source of Object.keys(job.compiled.sources).sort()) {
    const { partitions } = await (await openSource(job, source, seen.incarnation)).bounds()
    for (const { partition, end } of partitions) ends.push({ source, partition, end: end.toString() })
  }
  await amend(job, (now) => {
    const { paused } = now
    if (!holds(now, run, seen.generation) || !paused?.drain || paused.id !== seen.paused?.id) return null
    return paused.drain.ends === null ? { ...now, paused: { ...paused, drain: { ends } } } : null
  })
  return null
}

/** Nothing is left below the pinned ends: from now on the pipeline is paused. */
export async function finishDrain(job: Job, run: RunKey, surveyed: Head): Promise<null> {
  await amend(job, (now) => {
    const { paused, committed } = now
    if (!holds(now, run, surveyed.generation) || !paused || paused.id !== surveyed.paused?.id) return null
    const isSame = committed.manifest.sha256 === surveyed.committed.manifest.sha256 && now.open === null
    return isSame && now.promotedThrough === committed.epoch ? { ...now, paused: { ...paused, drain: null } } : null
  })
  return null
}
