/**
 * Permits, and the committables that they are for: what of an epoch may be promoted.
 *
 * Reads:  the head, history, manifests. Writes: nothing. Apart because everything after the commit begins here: an
 * epoch is committed when the head or the history that its chain covers says so, never because somebody remembers.
 */
import { PawlError } from '../model/errors.ts'
import type { Head, HistoryItem, ObjectRef } from '../model/head.ts'
import type { CommitPermit, Committable } from '../model/manifest.ts'
import { laneName } from '../model/names.ts'
import { type Job, readManifest } from './job.ts'

/** Proof that the epoch is committed, read from the head or from the history that the head's chain covers. */
export async function permitOf(job: Job, head: Head, epoch: number): Promise<CommitPermit> {
  const found = epoch === head.committed.epoch ? head.committed : await committedItem(job, head, epoch)
  return { incarnation: head.incarnation, epoch, manifest: found.manifest } as CommitPermit
}

/** The committed epoch in the history. Throws `HISTORY_MISSING`. */
export async function committedItem(job: Job, head: Head, epoch: number): Promise<HistoryItem> {
  const item = epoch <= head.committed.epoch ? await job.place.ledger.history(head.pipeline, epoch) : null
  if (item === null) throw new PawlError('HISTORY_MISSING', `epoch ${epoch} of ${head.pipeline}`, { epoch })
  return item
}

/** The lane's output in an epoch, from its manifest. Throws `STEP_INPUT_INVALID` when it has none. */
export async function committableOf(
  job: Job,
  manifest: ObjectRef,
  lane: { sink: string; lane: number },
): Promise<Committable> {
  const found = (await readManifest(job, manifest)).committables.find(
    (c) => c.sink === lane.sink && c.lane === lane.lane,
  )
  if (!found)
    throw new PawlError('STEP_INPUT_INVALID', `the manifest has no output of lane ${laneName(lane.sink, lane.lane)}`)
  return found
}
