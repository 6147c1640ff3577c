/**
 * Judge: what a marker that is not `prev` means to a promotion, and what follows.
 *
 * Reads:  head, history, manifests of missing epochs. Writes: the missing epochs, into the sink.
 * Safe to repeat because: corruption is told only after the head was read again and this run still holds it; what a
 * sink lost is promoted again in order, each epoch from the marker of the one before.
 */
import { PawlError } from '../model/errors.ts'
import type { Head, ObjectRef } from '../model/head.ts'
import type { CommitPermit, Committable, Marker } from '../model/manifest.ts'
import { laneName } from '../model/names.ts'
import type { LaneInput } from '../model/steps.ts'
import type { Sink } from '../ports/sink.ts'
import { readHead } from './amend.ts'
import { type Job, mustHold, readManifest } from './job.ts'
import { committableOf, committedItem, permitOf } from './permit.ts'

/** A lane of a committed epoch, with all that its promotion needs. */
export interface Lane {
  readonly job: Job
  readonly input: LaneInput
  readonly permit: CommitPermit
  readonly committable: Committable
  readonly sink: Sink
}

/** What a marker that is not `prev` means. */
export async function judge(lane: Lane, found: Marker | null): Promise<'done' | 'again'> {
  const { job, committable, permit, sink } = lane
  const head = await mustBelong(lane, found)
  const shown = found as Marker
  if (shown.epoch >= permit.epoch) return 'done'
  if (shown.epoch >= committable.prev.epoch) {
    if (shown.epoch === committable.prev.epoch && shown.hash === committable.prev.hash) return 'again'
    const fault = `lane ${nameOf(lane)} shows epoch ${shown.epoch}, in which it had no output`
    throw new PawlError('MARKER_UNKNOWN', fault, detailsOf(lane, shown))
  }
  await heal(job, head, sink, committable, shown)
  return 'again'
}

/**
 * The head, when the marker is one of the committed chain. Throws `MARKER_MISSING`, `MARKER_FOREIGN`,
 * `LEDGER_REWOUND`, `MARKER_UNKNOWN`, and `FENCED` when another run holds the pipeline.
 */
export async function mustBelong(lane: Lane, found: Marker | null): Promise<Head> {
  const { job, input, permit, sink } = lane
  const head = await readHead(job)
  mustHold(head, input.run, input.generation)
  const name = nameOf(lane)
  if (found === null)
    throw new PawlError('MARKER_MISSING', `lane ${name} in ${sink.target}`, { lane: name, epoch: input.epoch })
  const details = detailsOf(lane, found)
  if (found.incarnation !== permit.incarnation) {
    throw new PawlError('MARKER_FOREIGN', `lane ${name} belongs to incarnation ${found.incarnation}`, details)
  }
  if (found.epoch > head.committed.epoch) {
    throw new PawlError(
      'LEDGER_REWOUND',
      `lane ${name} shows epoch ${found.epoch}, the head ${head.committed.epoch}`,
      details,
    )
  }
  const item = await committedItem(job, head, found.epoch)
  if (item.manifest.sha256 !== found.hash)
    throw new PawlError('MARKER_UNKNOWN', `lane ${name} shows another epoch ${found.epoch}`, details)
  return head
}

function nameOf({ input }: Lane): string {
  return laneName(input.sink, input.lane)
}

function detailsOf(lane: Lane, found: Marker) {
  return { lane: nameOf(lane), markerEpoch: found.epoch, markerHash: found.hash, epoch: lane.input.epoch }
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
