/**
 * Amend: the only way to write the head.
 *
 * Reads:  the head. Writes: the head, by compare-and-set on its revision and on the write that made it.
 * Safe to repeat because: each write carries a random id of its own; after a lost answer the head is read back, and
 * once any try was ambiguous the outcome is `applied` only when that id is found. If the head has moved on past the
 * write, the outcome is `unclear`: the caller must find out from the chain, or act as if it had lost.
 */
import { isPawlError, PawlError } from '../model/errors.ts'
import type { Head } from '../model/head.ts'
import type { SwapOptions } from '../ports/ledger.ts'
import type { Place } from '../ports/place.ts'

/** What became of a write of the head, with the head as it was last seen. */
export type Amended =
  | { readonly result: 'applied'; readonly head: Head }
  /** `next` declined the head that it saw. */
  | { readonly result: 'declined'; readonly head: Head }
  | { readonly result: 'unclear'; readonly head: Head }
  /** With `wakes`: the head is as expected, but the counter is not. */
  | { readonly result: 'woken'; readonly head: Head }

/** What a write changes; `null` declines. */
export type Change = (head: Head) => Omit<Head, 'revision' | 'write'> | null

/** What a write needs of a job: which pipeline, and where its head is. Commands have no more. */
export interface Amender {
  readonly compiled: { readonly topology: { readonly pipeline: string } }
  readonly place: Pick<Place, 'ledger' | 'random'>
}

const triesMax = 20

/** Reads the head and replaces it by what `change` makes of it. Throws `PIPELINE_NOT_FOUND`, `LEDGER_BUSY`. */
export async function amend(job: Amender, change: Change, options: SwapOptions = {}): Promise<Amended> {
  for (let tries = 0; tries < triesMax; tries++) {
    const head = await readHead(job)
    const changed = change(head)
    if (changed === null) return { result: 'declined', head }
    const wanted: Head = { ...changed, revision: head.revision + 1, write: job.place.random.id() }
    const settled = await settle(job, wanted, { ...options, seen: head.write })
    if (settled !== 'moved') return settled
  }
  throw new PawlError('LEDGER_BUSY', `the head of ${job.compiled.topology.pipeline} keeps moving`)
}

/** The head. Throws `PIPELINE_NOT_FOUND` when there is none. */
export async function readHead(job: Amender): Promise<Head> {
  const pipeline = job.compiled.topology.pipeline
  const head = await job.place.ledger.read(pipeline)
  if (head === null) throw new PawlError('PIPELINE_NOT_FOUND', pipeline, { pipeline })
  return head
}

/** Swaps until it is known what became of the write. */
async function settle(
  job: Amender,
  wanted: Head,
  options: SwapOptions & { readonly seen: string },
): Promise<Amended | 'moved'> {
  const { ledger } = job.place
  let ambiguous = false
  for (let tries = 0; tries < triesMax; tries++) {
    try {
      if ((await ledger.swap(wanted.revision - 1, wanted, options)) === 'swapped')
        return { result: 'applied', head: wanted }
    } catch (error) {
      if (!isPawlError(error) || error.code !== 'UNKNOWN_RESULT') throw error
      ambiguous = true
    }
    const head = await readHead(job)
    if (head.write === wanted.write) return { result: 'applied', head }
    if (head.revision > wanted.revision && ambiguous) return { result: 'unclear', head }
    if (head.revision >= wanted.revision) return 'moved'
    // The ledger was put back to a backup: nothing of ours is in it, and a late write finds another head.
    if (head.write !== options.seen) return ambiguous ? { result: 'unclear', head } : 'moved'
    // The head is as it was: the counter refused the write (and will for ever), or the write is still under way.
    if (options.wakes !== undefined && (await ledger.wakes(head.pipeline)) !== options.wakes)
      return { result: 'woken', head }
  }
  throw new PawlError('UNKNOWN_RESULT', `no answer to a write of the head of ${wanted.pipeline}`)
}
