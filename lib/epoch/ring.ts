/**
 * Ring: wakes a pipeline; with `resume`, for a person who lifts a park. Losing, repeating or forging a ring changes no result.
 *
 * Reads:  the head. Writes: the wake counter, under its own key; then starts a run if none holds the pipeline.
 * Safe to repeat because: the counter only grows, a run that is about to leave sees that it has grown and looks
 * again, and of several runs started with one sequence only one can claim. The counter comes first: a ring between
 * a run's last look and its close must refuse the close.
 */
import type { Place } from '../ports/place.ts'

export async function ring(
  place: Pick<Place, 'ledger' | 'launcher'>,
  pipeline: string,
  resume = false,
): Promise<'absorbed' | 'started'> {
  const wakes = await place.ledger.ring(pipeline)
  const head = await place.ledger.read(pipeline)
  if (head?.run.open && (await place.launcher.status(head.run.place)) === 'running') return 'absorbed'
  await place.launcher.start({
    pipeline,
    sequence: (head?.run.sequence ?? 0) + 1,
    wakes,
    ...(resume ? { resume } : {}),
  })
  return 'started'
}
