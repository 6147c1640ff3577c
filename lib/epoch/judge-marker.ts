/**
 * Judge a marker that somebody looks at from outside, as `pawl verify` does: does it belong to the chain?
 *
 * Reads:  what it is given. Writes: nothing. Pure. `promote` judges on its own, since it may heal what it finds;
 * here a lane that fell behind is a fault to report.
 */
import type { ErrorCode } from '../model/errors.ts'
import type { Head, HistoryItem, RegisteredLane } from '../model/head.ts'
import type { Marker } from '../model/manifest.ts'
import { laneName } from '../model/names.ts'

/** What is known when a marker is judged. */
export interface MarkerEvidence {
  readonly lane: RegisteredLane
  readonly marker: Marker | null
  /** A head that was read after the marker. */
  readonly head: Head
  /** The epoch that the marker must have reached. */
  readonly expected: number
  /** The committed epoch of the marker's number, if there is one. */
  readonly item: HistoryItem | null
}

/** Null when the marker is sound. */
export function judgeMarker(evidence: MarkerEvidence): { readonly code: ErrorCode; readonly fault: string } | null {
  const { lane, marker, head, expected, item } = evidence
  const where = `lane ${laneName(lane.sink, lane.lane)} in ${lane.target}`
  if (marker === null) return { code: 'MARKER_MISSING', fault: where }
  const shows = `${where} shows epoch ${marker.epoch}`
  if (marker.incarnation !== head.incarnation) {
    return { code: 'MARKER_FOREIGN', fault: `${where} shows incarnation ${marker.incarnation}` }
  }
  if (marker.epoch > head.committed.epoch) {
    return { code: 'LEDGER_REWOUND', fault: `${shows}, the head ${head.committed.epoch}` }
  }
  if (item?.manifest.sha256 !== marker.hash) return { code: 'MARKER_UNKNOWN', fault: `${shows} with another hash` }
  if (marker.epoch >= expected) return null
  return { code: 'SINK_ROLLED_BACK', fault: `${shows}, it was promoted through ${expected}` }
}
