/**
 * Steer: what a person at the command line changes: pause, drain, resume, hurry, abort.
 *
 * Reads:  the head. Writes: the head; then rings, or stops an execution.
 * Safe to repeat because: each is one compare-and-set that depends on the head alone, and a second one finds its work
 * done. A wish in the head outlives runs, crashes and deployments. Nothing here touches what is committed, and
 * nothing deletes: what an aborted attempt left is garbage for `collect`.
 */
import type { FailureReason, Head, Paused } from '../model/head.ts'
import type { Place } from '../ports/place.ts'
import { type Amender, amend, type Change } from './amend.ts'
import { isPaused } from './decide.ts'
import { unparked } from './restart.ts'
import { ring } from './ring.ts'

/** A pipeline as commands hold it: no file, no sources, no sinks. */
export interface Steered extends Amender {
  readonly place: Pick<Place, 'ledger' | 'random' | 'clock' | 'launcher'>
}

/** Who wants it, and why; both as free text. */
export interface Wish {
  readonly by: string | null
  readonly why: string | null
}

/** A wish as it stands in the head. `changed` is false when it stood there before. */
export interface Steering {
  readonly head: Head
  readonly changed: boolean
}

/** No epoch opens any more; what is committed is promoted. A drain under way is cut short. */
export async function pause(job: Steered, wish: Wish): Promise<Steering> {
  const steered = await paused(job, wish, null, isPaused)
  await finishWork(job, steered.head)
  return steered
}

/** Everything that the logs hold by now becomes visible; then the pipeline is paused. Rings. */
export async function drain(job: Steered, wish: Wish): Promise<Steering> {
  const steered = await paused(job, wish, { ends: null }, () => false)
  await ring(job.place, steered.head.pipeline)
  return steered
}

async function paused(job: Steered, wish: Wish, how: Paused['drain'], isDone: (head: Head) => boolean) {
  const id = job.place.random.id()
  const sinceMs = job.place.clock.nowMs()
  const head = await insist(job, (now) =>
    now.paused?.id === id || isDone(now) ? null : { ...now, paused: { id, sinceMs, ...wish, drain: how } },
  )
  return { head, changed: head.paused?.id === id }
}

/** Until it is known what became of the write; `change` declines a head on which it was done. */
async function insist(job: Steered, change: Change): Promise<Head> {
  for (;;) {
    const { result, head } = await amend(job, change)
    if (result !== 'unclear') return head
  }
}

/** A pipeline whose holder died between commit and promotion is woken to finish, nothing else. */
async function finishWork(job: Steered, head: Head): Promise<void> {
  if (head.promotedThrough < head.committed.epoch) await ring(job.place, head.pipeline)
}

/** Lifts a pause and a park, lets a parked promotion try at once, and rings. */
export async function resume(job: Steered): Promise<Steering> {
  const nowMs = job.place.clock.nowMs()
  let changed = false
  const head = await insist(job, (now) => {
    if (!now.paused && (now.parked === null || now.parked.retryAtMs === nowMs)) return null
    changed = true
    return { ...(now.parked?.kind === 'failure' ? unparked(now) : triedAt(now, nowMs)), paused: null }
  })
  await ring(job.place, head.pipeline)
  return { head, changed }
}

function triedAt(head: Head, retryAtMs: number): Head {
  return head.parked === null ? head : { ...head, parked: { ...head.parked, retryAtMs } }
}

/** The next epoch opens without waiting for the checkpoint interval. Rings. */
export async function hurry(job: Steered): Promise<Steering> {
  const id = job.place.random.id()
  const atMs = job.place.clock.nowMs()
  const { head, result } = await amend(job, (now) =>
    now.hurry && now.hurry.epoch === null ? null : { ...now, hurry: { id, atMs, epoch: null } },
  )
  await ring(job.place, head.pipeline)
  return { head, changed: result !== 'declined' }
}

/** What an abort did. `refused`: the pipeline has moved on since the person saw it, or holds nothing to abort. */
export type Aborted =
  | { readonly result: 'aborted'; readonly head: Head; readonly stopped: boolean }
  | { readonly result: 'refused'; readonly head: Head }

/**
 * Takes the pipeline from the run that holds it and closes its attempt: first the head, so that the attempt can never
 * commit, then the execution, then a ring for a fresh run, also if the execution could not be ended: it holds nothing any
 * more. What is committed stays, and is promoted by the fresh run.
 */
export async function abortRun(job: Steered, seen: Head, wish: Wish): Promise<Aborted> {
  const nowMs = job.place.clock.nowMs()
  const amended = await amend(job, (now) => (isAsSeen(now, seen) ? taken(now, wish, nowMs) : null))
  if (amended.result !== 'applied') return { result: 'refused', head: amended.head }
  const { head } = amended
  try {
    const stopped = (await job.place.launcher.stop?.(seen.run.place, wish.why ?? 'aborted by a person')) ?? false
    return { result: 'aborted', head, stopped }
  } finally {
    if (!isPaused(head) || head.promotedThrough < head.committed.epoch) await ring(job.place, head.pipeline)
  }
}

function isAsSeen(now: Head, seen: Head): boolean {
  return now.run.open && now.run.id === seen.run.id && now.open?.attempt === seen.open?.attempt
}

function taken(head: Head, { by, why }: Wish, nowMs: number): Head {
  const closed: Head = { ...head, open: null, generation: head.generation + 1, run: { ...head.run, open: false } }
  if (head.open === null) return closed
  const { attempt, epoch } = head.open
  const message = `attempt ${attempt} of epoch ${epoch} was aborted by ${by ?? 'a person'}${why === null ? '' : `: ${why}`}`
  const last: FailureReason = { code: 'EPOCH_ABORTED', message, attempt, atMs: nowMs, record: null, operator: null }
  return { ...closed, failures: { ...head.failures, count: head.failures.count + 1, last } }
}
