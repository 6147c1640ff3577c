/**
 * Register: a lane gets its base marker, then its place in the head.
 *
 * Reads:  the marker of each new lane. Writes: base markers in sinks, then the head's lanes.
 * Safe to repeat because: a base marker is written only where there is none, and an equal one is taken as ours.
 * From registration on a missing marker is corruption, not a beginning; so is a lane that the head does not know
 * although its sink has seen epochs of this incarnation.
 */
import { PawlError } from '../model/errors.ts'
import type { Head, RegisteredLane } from '../model/head.ts'
import type { Marker } from '../model/manifest.ts'
import { laneName } from '../model/names.ts'
import type { RunKey } from '../model/steps.ts'
import { amend } from './amend.ts'
import { holds, type Job, openSink } from './job.ts'
import { renew } from './renew.ts'

export async function register(
  job: Job,
  run: RunKey,
  head: Head,
  missing: readonly { sink: string; lane: number }[],
): Promise<void> {
  const base = await baseMarker(job, head)
  const added: RegisteredLane[] = []
  for (const { sink, lane } of missing) {
    const opened = await openSink(job, sink, head.incarnation)
    const found = await opened.base(lane, base)
    if (found.incarnation !== base.incarnation || found.epoch !== 0 || found.hash !== base.hash) {
      const now = await renew(job, run, head.generation)
      // A step that comes late: the lane was registered in the meantime, and has moved on.
      if (now.lanes.some((known) => known.sink === sink && known.lane === lane)) continue
      throw foreign(now, sink, lane, found)
    }
    added.push({ sink, lane, target: opened.target })
  }
  await amend(job, (now) => (holds(now, run, head.generation) ? { ...now, lanes: union(now.lanes, added) } : null))
}

/** The marker of a lane before its first epoch: that of the genesis manifest. */
export async function baseMarker(job: Job, head: Head): Promise<Marker> {
  const genesis = await job.place.ledger.history(head.pipeline, 0)
  if (genesis === null) throw new PawlError('HISTORY_MISSING', `epoch 0 of ${head.pipeline}`, { epoch: 0 })
  return { incarnation: head.incarnation, epoch: 0, hash: genesis.manifest.sha256 }
}

function foreign(head: Head, sink: string, lane: number, found: Marker): PawlError {
  const name = laneName(sink, lane)
  const details = {
    sink,
    lane,
    markerIncarnation: found.incarnation,
    markerEpoch: found.epoch,
    incarnation: head.incarnation,
  }
  if (found.incarnation !== head.incarnation) {
    return new PawlError(
      'MARKER_FOREIGN',
      `lane ${name} belongs to incarnation ${found.incarnation}, this is ${head.incarnation}`,
      details,
    )
  }
  return new PawlError(
    'LEDGER_REWOUND',
    `lane ${name} shows epoch ${found.epoch}, the head does not know the lane`,
    details,
  )
}

function union(known: readonly RegisteredLane[], added: readonly RegisteredLane[]): RegisteredLane[] {
  const all = new Map(known.map((lane) => [laneName(lane.sink, lane.lane), lane]))
  for (const lane of added) if (!all.has(laneName(lane.sink, lane.lane))) all.set(laneName(lane.sink, lane.lane), lane)
  return [...all.values()].sort((a, b) => (a.sink === b.sink ? a.lane - b.lane : a.sink < b.sink ? -1 : 1))
}
