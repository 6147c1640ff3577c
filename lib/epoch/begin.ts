/**
 * Begin: at most once, a promotion is begun in the head before it is tried, and never begun again.
 *
 * Reads:  the head. Writes: the head's begun promotions.
 * Safe to repeat because: each invocation has an id of its own, and the one that finds its id in the head is the only
 * one that may promote. Whoever finds another's id, without an end, declares the end unknown: the output may be
 * shown or not, finalize records it, and nobody tries it again. A begin whose own answer is unclear is looked up.
 */
import { PawlError } from '../model/errors.ts'
import type { BegunPromotion, Head, UnconfirmedOutput, UnconfirmedTally } from '../model/head.ts'
import type { Committable } from '../model/manifest.ts'
import type { LaneInput } from '../model/steps.ts'
import { amend } from './amend.ts'
import { holds, type Job, mustHold } from './job.ts'

const triesMax = 20

/** One invocation that wants to promote a lane once. */
export interface Beginning {
  readonly job: Job
  readonly input: LaneInput
  readonly committable: Committable
  readonly invocation: string
}

/** Whether this invocation may promote, or what became of the one that might. Throws `FENCED`. */
export async function begin(beginning: Beginning): Promise<'mine' | 'done' | 'unknown'> {
  const { input, committable, invocation } = beginning
  const mine: BegunPromotion = { ...laneOf(input), invocation, state: 'begun', rows: committable.rows, code: null }
  const found = await change(beginning, (begun) => {
    if (begun === undefined) return mine
    return begun.state === 'begun' && begun.invocation !== invocation
      ? { ...begun, state: 'unknown', code: 'UNKNOWN_RESULT' }
      : null
  })
  if (found?.invocation === invocation && found.state === 'begun') return 'mine'
  return found?.state === 'done' ? 'done' : 'unknown'
}

/** Says how the promotion of this invocation ended; null withdraws it, because certainly nothing was shown. */
export async function end(beginning: Beginning, state: 'done' | 'unknown' | null, code: string | null): Promise<void> {
  await change(beginning, (begun) => {
    if (begun?.invocation !== beginning.invocation) return null
    return state === null ? undefined : { ...begun, state, code }
  })
}

/** What finalize makes of the promotions of its epoch: those without an end are counted and listed. */
export function unconfirmedOf(head: Head, epoch: number): UnconfirmedOutput[] {
  return (head.begun ?? [])
    .filter(({ state }) => state !== 'done')
    .map(({ sink, lane, rows, code }) => ({ epoch, sink, lane, rows, code: code ?? 'UNKNOWN_RESULT' }))
}

/** The tally with more in it. */
export function tallied(before: UnconfirmedTally | undefined, more: readonly UnconfirmedOutput[]) {
  if (more.length === 0) return before
  const rows = more.reduce((sum, output) => sum + output.rows, before?.rows ?? 0)
  return { rows, recent: [...(before?.recent ?? []), ...more] }
}

function laneOf({ sink, lane }: LaneInput) {
  return { sink, lane }
}

/** The lane's begun promotion after the change; `next` answers null to leave it, undefined to take it away. */
async function change(
  { job, input }: Beginning,
  next: (begun: BegunPromotion | undefined) => BegunPromotion | null | undefined,
): Promise<BegunPromotion | undefined> {
  const { run, generation, epoch } = input
  const isLane = (one: BegunPromotion) => one.sink === input.sink && one.lane === input.lane
  const changed = (head: Head) => {
    if (!holds(head, run, generation) || head.committed.epoch !== epoch || head.promotedThrough >= epoch) return null
    const all = head.begun ?? []
    const wanted = next(all.find(isLane))
    if (wanted === null) return null
    const others = all.filter((one) => !isLane(one))
    return { ...head, begun: wanted === undefined ? others : [...others, wanted] }
  }
  for (let tries = 0; tries < triesMax; tries++) {
    const amended = await amend(job, changed)
    mustHold(amended.head, run, generation)
    // Lanes write side by side: a write whose answer was lost may have lost its race, and then nothing is begun.
    if (amended.result !== 'unclear') return amended.head.begun?.find(isLane)
  }
  throw new PawlError('LEDGER_BUSY', `the head of ${run.pipeline} keeps moving`)
}
