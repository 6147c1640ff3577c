/**
 * Promote: makes one lane of a committed epoch visible in its sink, repeatably.
 *
 * Reads:  head, history, the manifest of the epoch (never the running configuration). Writes: the sink and its
 * marker, in one atomic step of the sink.
 * Safe to repeat because: the sink writes only while its marker is the one before this epoch. What else it may show
 * is judged here, along the committed chain: this epoch or a later one of ours is done; an earlier one of ours means
 * that the sink lost data, and the missing epochs are promoted again in order; anything else is corruption, which
 * is reported only after the head was read again and this run still holds it.
 */
import { isPawlError, PawlError } from '../model/errors.ts'
import type { Head, HistoryItem, ObjectRef } from '../model/head.ts'
import type { CommitPermit, Committable, Marker } from '../model/manifest.ts'
import { laneName } from '../model/names.ts'
import type { LaneInput, RunKey, StepOutput } from '../model/steps.ts'
import type { Sink } from '../ports/sink.ts'
import { readHead } from './amend.ts'
import { type Job, mustHold, openSink, readManifest } from './job.ts'
import { renew } from './renew.ts'

const judgementsMax = 10

/** The lanes that have output in the epoch, from its manifest alone. */
export async function lanesToPromote(job: Job, run: RunKey, head: Head, epoch: number): Promise<StepOutput> {
  const permit = await permitOf(job, head, epoch)
  const manifest = await readManifest(job, permit.manifest)
  const lanes = manifest.committables.map(({ sink, lane }) => ({ run, generation: head.generation, epoch, sink, lane }))
  return { next: 'promote', run, epoch, hash: permit.manifest.sha256, generation: head.generation, lanes }
}

export async function promote(job: Job, input: LaneInput): Promise<{ readonly promoted: string }> {
  const head = await renew(job, input.run, input.generation)
  const permit = await permitOf(job, head, input.epoch)
  const committable = await committableOf(job, permit.manifest, input)
  const sink = await openSink(job, input.sink, head.incarnation)
  for (let judgements = 0; judgements < judgementsMax; judgements++) {
    const answer = await asHolder(job, input, () => sink.promote(committable, permit))
    if (answer.result === 'promoted' || (await judge(job, input, sink, committable, permit, answer.found)) === 'done') {
      const { sink: id, lane } = input
      job.place.telemetry.emit({
        event: 'promoted',
        pipeline: head.pipeline,
        epoch: input.epoch,
        sink: id,
        lane,
        rows: committable.rows,
      })
      return { promoted: laneName(id, lane) }
    }
  }
  throw new PawlError('SINK_UNAVAILABLE', `the marker of lane ${laneName(input.sink, input.lane)} keeps moving`)
}

/**
 * A sink that says `Fenced` may only have been disturbed: whether another run holds the pipeline, the head knows. If
 * none does, the promotion is tried again, from its marker.
 */
async function asHolder<T>(job: Job, input: LaneInput, deed: () => Promise<T>): Promise<T> {
  try {
    return await deed()
  } catch (error) {
    if (!isPawlError(error) || error.kind !== 'Fenced') throw error
    mustHold(await readHead(job), input.run, input.generation)
    throw new PawlError('SINK_UNAVAILABLE', `lane ${laneName(input.sink, input.lane)}: ${error.message}`, {}, error)
  }
}

/** Proof that the epoch is committed, read from the head or from the history that the head's chain covers. */
export async function permitOf(job: Job, head: Head, epoch: number): Promise<CommitPermit> {
  const found = epoch === head.committed.epoch ? head.committed : await committedItem(job, head, epoch)
  return { incarnation: head.incarnation, epoch, manifest: found.manifest } as CommitPermit
}

async function committedItem(job: Job, head: Head, epoch: number): Promise<HistoryItem> {
  const item = epoch <= head.committed.epoch ? await job.place.ledger.history(head.pipeline, epoch) : null
  if (item === null) throw new PawlError('HISTORY_MISSING', `epoch ${epoch} of ${head.pipeline}`, { epoch })
  return item
}

async function committableOf(
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

/** What a marker that is not `prev` means. */
async function judge(
  job: Job,
  input: LaneInput,
  sink: Sink,
  committable: Committable,
  permit: CommitPermit,
  found: Marker | null,
): Promise<'done' | 'again'> {
  const head = await readHead(job)
  mustHold(head, input.run, input.generation)
  const lane = laneName(input.sink, input.lane)
  if (found === null)
    throw new PawlError('MARKER_MISSING', `lane ${lane} in ${sink.target}`, { lane, epoch: input.epoch })
  const details = { lane, markerEpoch: found.epoch, markerHash: found.hash, epoch: input.epoch }
  if (found.incarnation !== permit.incarnation) {
    throw new PawlError('MARKER_FOREIGN', `lane ${lane} belongs to incarnation ${found.incarnation}`, details)
  }
  if (found.epoch > head.committed.epoch) {
    throw new PawlError(
      'LEDGER_REWOUND',
      `lane ${lane} shows epoch ${found.epoch}, the head ${head.committed.epoch}`,
      details,
    )
  }
  const item = await committedItem(job, head, found.epoch)
  if (item.manifest.sha256 !== found.hash)
    throw new PawlError('MARKER_UNKNOWN', `lane ${lane} shows another epoch ${found.epoch}`, details)
  if (found.epoch >= permit.epoch) return 'done'
  if (found.epoch >= committable.prev.epoch) {
    if (found.epoch === committable.prev.epoch && found.hash === committable.prev.hash) return 'again'
    throw new PawlError('MARKER_UNKNOWN', `lane ${lane} shows epoch ${found.epoch}, in which it had no output`, details)
  }
  await heal(job, head, sink, committable, found)
  return 'again'
}

/** Promotes again, in order, what the sink lost. Throws `SINK_ROLLED_BACK` when it is not retained. */
async function heal(job: Job, head: Head, sink: Sink, committable: Committable, found: Marker): Promise<void> {
  const missing: { committable: Committable; permit: CommitPermit }[] = []
  let { prev } = committable
  while (prev.epoch > found.epoch) {
    const permit = await permitOf(job, head, prev.epoch)
    const lost = await committableOf(job, await retained(job, head, permit, committable), committable)
    missing.unshift({ committable: lost, permit })
    prev = lost.prev
  }
  for (const lost of missing) await sink.promote(lost.committable, lost.permit, { healing: true })
  const { pipeline } = head
  job.place.telemetry.emit({
    event: 'healed',
    pipeline,
    sink: committable.sink,
    lane: committable.lane,
    fromEpoch: found.epoch,
    toEpoch: committable.prev.epoch,
  })
}

async function retained(
  job: Job,
  head: Head,
  permit: CommitPermit,
  lane: { sink: string; lane: number },
): Promise<ObjectRef> {
  const name = laneName(lane.sink, lane.lane)
  const gone = () =>
    new PawlError('SINK_ROLLED_BACK', `lane ${name} lost epoch ${permit.epoch}, retained from ${head.retainedFrom}`, {
      lane: name,
      epoch: permit.epoch,
    })
  if (permit.epoch < head.retainedFrom) throw gone()
  await readManifest(job, permit.manifest).catch((error: unknown) => {
    throw error instanceof PawlError && error.code === 'OBJECT_MISSING' ? gone() : error
  })
  return permit.manifest
}
