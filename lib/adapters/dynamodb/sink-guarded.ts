/**
 * Promotion item by item, each guarded by its epoch, the marker after the last.
 *
 * An item is replaced only by a later epoch; a tombstone stays as an item without attributes of the user, since what is
 * gone guards nothing. So a promotion may end anywhere and begin again, and one that comes late changes nothing. What a
 * failed condition returns is looked at: the same epoch is ours, a later one belongs to a later promotion, another
 * incarnation or another history of the epoch stops the pipeline.
 */
import { assert } from '../../model/assert.ts'
import { limits } from '../../model/limits.ts'
import type { PromoteResult } from '../../ports/sink.ts'
import { sameMarker } from '../shared/markers.ts'
import { manyAtOnce, putRow, standingOf, whileOlder } from './sink-guard.ts'
import { moveMarker, readState } from './sink-marker.ts'
import { conflict, type Promotion, rowRefused } from './sink-promotion.ts'
import { moveAndRecord, recordingOf } from './sink-refused.ts'
import type { StagedRow } from './sink-rows.ts'
import { settleKeys } from './sink-settle.ts'

/** With a time to live on tombstones, how long a look at the marker is good for. */
const lookMs = 60_000

/** Writes the items, then moves the marker. */
export async function promoteGuarded(promotion: Promotion): Promise<PromoteResult> {
  const { open, committable, next, healing, refusedTable } = promotion
  const { prev } = committable
  const { marker: found, adopted } = await readState(open)
  if (!sameMarker(found, prev)) return { result: 'refused', found }
  const { newer, unsettled } = await writeAll(promotion, adopted)
  const late = async (key: string): Promise<PromoteResult> => {
    const { marker: now } = await readState(open)
    if (!sameMarker(now, prev)) return { result: 'refused', found: now }
    throw conflict(promotion, key, 'MARKER_UNKNOWN', 'is of a later epoch than the marker has seen')
  }
  if (newer !== null && !healing) return late(newer)
  if (refusedTable === null || unsettled.size === 0) {
    const moved = await moveMarker(open, prev, { marker: next, adopted })
    return moved === 'moved' ? { result: 'promoted' } : { result: 'refused', found: moved.marker }
  }
  const settled = await settleKeys(promotion, refusedTable, adopted, unsettled)
  if (settled.newer !== null && !healing) return late(settled.newer)
  const { refused } = settled
  const recording = recordingOf(open, refusedTable, refused)
  const state = { marker: next, adopted }
  const moved = await (refused.length === 0
    ? moveMarker(open, prev, state)
    : moveAndRecord(open, prev, state, recording))
  if (moved !== 'moved') return { result: 'refused', found: moved.marker }
  return refused.length === 0 ? { result: 'promoted' } : { result: 'promoted', refused: refused.length }
}

/** What came of the last rows. */
interface Written {
  /** A key that a later epoch wrote. */
  readonly newer: string | null
  /** Keys whose last row is refused, with the reason, or null where only the item says so. */
  readonly unsettled: ReadonlyMap<string, string | null>
}

/** Writes the last row of every key. All writes have ended when it returns. */
async function writeAll(promotion: Promotion, adopted: readonly string[]): Promise<Written> {
  const { open, committable, rows } = promotion
  const unsettled = new Map<string, string | null>()
  let newer: string | null = null
  let lookedAtMs = Date.now()
  await manyAtOnce(rows, async ([key, row]) => {
    if (open.form.tombstoneTtl !== null && Date.now() - lookedAtMs > lookMs) {
      if (!sameMarker((await readState(open)).marker, committable.prev)) {
        newer = key
        return 'stop'
      }
      lookedAtMs = Date.now()
    }
    const standing = await writeLast(promotion, adopted, key, row)
    if (standing === 'newer') newer = key
    if (standing === 'newer' || standing === 'written') return 'go-on'
    // More than a few are the fault of the table: nothing is decided then, and mending it lets them in.
    if (promotion.refusedTable === null || unsettled.size >= limits.refusedPerPromotionMax)
      throw rowRefused(promotion, key, standing.reason ?? decidedBefore, standing.cause)
    unsettled.set(key, standing.reason)
    return 'go-on'
  })
  return { newer, unsettled }
}

async function writeLast(
  promotion: Promotion,
  adopted: readonly string[],
  key: string,
  row: StagedRow,
): Promise<'written' | 'newer' | { readonly reason: string | null; readonly cause: unknown }> {
  const answer = await putRow(promotion, row, null, whileOlder(promotion.next, adopted))
  if (answer.did === 'written') return 'written'
  if (answer.did === 'refused') return answer
  const standing = standingOf(promotion, adopted, key, answer.item)
  assert(standing !== 'older', `item ${key} refused a later epoch`)
  return typeof standing === 'string' ? standing : { reason: null, cause: undefined }
}

const decidedBefore =
  "an earlier try of this promotion, made with onReject: 'dead-letter', refused it: set that again until the epoch is promoted"
