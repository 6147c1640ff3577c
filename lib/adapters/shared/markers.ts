/**
 * What sinks need to know of markers: when two are the same, and which one an epoch leaves behind.
 *
 * A marker equals another only in incarnation, epoch and hash together; an epoch number alone says nothing after
 * a rewound ledger or a restored sink.
 */
import { assert } from '../../model/assert.ts'
import type { CommitPermit, Committable, Marker } from '../../model/manifest.ts'

/** True when both are the same marker. */
export function sameMarker(a: Marker | null, b: Marker | null): boolean {
  if (a === null || b === null) return a === b
  return a.incarnation === b.incarnation && a.epoch === b.epoch && a.hash === b.hash
}

/** The marker that promoting `committable` leaves. Asserts that the permit is for its epoch. */
export function markerAfter(committable: Committable, permit: CommitPermit): Marker {
  const { sink, lane, epoch } = committable
  assert(permit.epoch === epoch, `permit of epoch ${permit.epoch} for epoch ${epoch} of ${sink}/${lane}`)
  return { incarnation: permit.incarnation, epoch, hash: permit.manifest.sha256 }
}
