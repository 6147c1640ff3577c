/**
 * Ring: wakes a pipeline; with `resume`, for a person who lifts a park. Losing, repeating or forging a ring changes no result.
 *
 * Reads:  the head. Writes: the wake counter, under its own key; then starts a run if none holds the pipeline.
 * Safe to repeat because: the counter only grows, a run that is about to leave sees that it has grown and looks
 * again, and of several runs started with one sequence only one can claim. The counter comes first: a ring between
 * a run's last look and its close must refuse the close.
 */
import type { Head } from '../model/head.ts'
import type { Place } from '../ports/place.ts'

type Belfry = Pick<Place, 'ledger' | 'launcher' | 'clock'>

/** With `often`, one of many rings, by which a run that may be dead is not yet watched: the schedule rings too. */
export async function ring(
  place: Belfry,
  pipeline: string,
  resume = false,
  often = false,
): Promise<'absorbed' | 'started'> {
  const wakes = await place.ledger.ring(pipeline)
  const head = await place.ledger.read(pipeline)
  if (head?.run.open && (await isHeld(place, head, often))) return 'absorbed'
  await place.launcher.start({
    pipeline,
    sequence: (head?.run.sequence ?? 0) + 1,
    wakes,
    ...(resume ? { resume } : {}),
  })
  return 'started'
}

/** Where nothing can be told of a run, one that lives has renewed its lease: a quarter of it, and the longest step. */
async function isHeld({ launcher, clock }: Belfry, { run }: Head, often: boolean): Promise<boolean> {
  if (launcher.blind) return often || clock.nowMs() - run.renewedAtMs < (run.leaseMs * 3) / 4
  return (await launcher.status(run.place)) === 'running'
}
