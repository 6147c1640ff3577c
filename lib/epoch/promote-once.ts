/**
 * Promote once: makes a lane visible at most once, and gives it up when nobody can know whether it is.
 *
 * Reads:  the sink's marker, if it keeps one. Writes: the head, before the sink is touched; the sink; the head.
 * Safe to repeat because: only the invocation whose begin is in the head calls the sink, and it calls once. Where an
 * earlier epoch was let go, the sink's marker lags behind `prev`: this epoch goes on from what is there.
 */
import { isPawlError } from '../model/errors.ts'
import type { Committable } from '../model/manifest.ts'
import { type Beginning, begin, end } from './begin.ts'
import { causeOf } from './cause.ts'
import { type Lane, mustBelong } from './judge.ts'

/** Whether output is certainly shown, or that is unknown and stays so; `refused` is null when another try showed it. */
export type ShownOnce = { readonly shown: true; readonly refused: number | null } | { readonly shown: false }

const before: ShownOnce = Object.freeze({ shown: true, refused: null })
const unknown: ShownOnce = Object.freeze({ shown: false })

/**
 * Whatever the sink throws may have come after it showed something, unless the error says `untouched`: then it is
 * thrown, and tried again later.
 */
export async function promoteOnce(lane: Lane): Promise<ShownOnce> {
  const { job, input, permit } = lane
  const committable = await fromWhatIsThere(lane)
  if (committable === null) return before
  const beginning: Beginning = { job, input, committable, invocation: job.place.random.id() }
  const begun = await begin(beginning)
  if (begun !== 'mine') return begun === 'done' ? before : unknown
  try {
    const answer = await lane.sink.promote(committable, permit)
    if (answer.result === 'promoted') {
      await end(beginning, 'done', null)
      return { shown: true, refused: answer.refused ?? 0 }
    }
  } catch (error) {
    if (isPawlError(error) && error.details.untouched === true) {
      await end(beginning, null, null)
      throw error
    }
    await end(beginning, 'unknown', causeOf(error).code)
    return unknown
  }
  await end(beginning, 'unknown', 'MARKER_UNKNOWN')
  return unknown
}

/** The committable with the marker that the sink has in place of `prev`; null when it shows the epoch already. */
async function fromWhatIsThere(lane: Lane): Promise<Committable | null> {
  const { committable, sink, permit } = lane
  const found = await sink.marker(committable.lane)
  // A sink that keeps no marker has nothing to go on from.
  if (found === null) return committable
  await mustBelong(lane, found)
  if (found.epoch >= permit.epoch) return null
  return { ...committable, prev: found }
}
