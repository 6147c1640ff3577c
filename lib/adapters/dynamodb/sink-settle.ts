/**
 * What becomes of the keys whose last row is refused, where refused rows go to the dead letters.
 *
 * A row that is refused now might be taken a moment later: by another promoter, by a request that was on its way, after
 * the table was mended. It would then be in the table and a dead letter as well. So that it is refused is first written
 * into its item, under the condition that nobody wrote the row: from then on nobody can, and every promoter of the epoch
 * comes to the same rows. Then the row before it has its turn; without one the item stays as it was before the epoch.
 */

import { assert } from '../../model/assert.ts'
import { PawlError } from '../../model/errors.ts'
import { limits } from '../../model/limits.ts'
import type { RefusedRowRecord } from '../shared/refused-rows.ts'
import { isBare, keepItem, manyAtOnce, putRow, sameGuard, standingOf, whileKept, whileOlder } from './sink-guard.ts'
import { invalid, type Promotion, readItem, reasonCharsMax, refusalOf, rowRefused } from './sink-promotion.ts'
import { mustTakeRefused, recordedBytesMax, recordingOf } from './sink-refused.ts'
import { readRowsOf, type StagedRow } from './sink-rows.ts'

/** What was decided of the keys. */
export interface Settled {
  readonly refused: readonly RefusedRowRecord[]
  /** A key that a later epoch wrote. */
  readonly newer: string | null
}

/** Decides over each key. `unsettled` has the reason why its last row was refused, or null where the item says so. */
export async function settleKeys(
  promotion: Promotion,
  refusedTable: string,
  adopted: readonly string[],
  unsettled: ReadonlyMap<string, string | null>,
): Promise<Settled> {
  const { open, committable, store } = promotion
  await mustTakeRefused(open, refusedTable)
  const rows = await readRowsOf(unsettled, store, committable, open.form)
  mustFit(promotion, refusedTable, [...rows.values()].flat())
  const refused: RefusedRowRecord[] = []
  let newer: string | null = null
  await manyAtOnce(rows, async ([key, mine]) => {
    const decided = await settleKey({ promotion, adopted, key, rows: mine }, unsettled.get(key) ?? null)
    if (decided === 'newer') newer = key
    else refused.push(...decided)
    return 'go-on'
  })
  return { refused, newer }
}

/** What is once decided stays so. Therefore it is certain beforehand that all of it can be recorded. */
function mustFit(promotion: Promotion, refusedTable: string, rows: readonly StagedRow[]): void {
  const worst = () => rows.map((row) => refusalOf(promotion, row, invalid, 'x'.repeat(reasonCharsMax)))
  const many = rows.length > limits.refusedPerPromotionMax
  if (!many && recordingOf(promotion.open, refusedTable, worst()).bytes <= recordedBytesMax) return
  const max = `${limits.refusedPerPromotionMax} rows and ${recordedBytesMax} bytes`
  const fault = `it and others are refused; their keys have ${rows.length} rows in this epoch, beyond ${max} that can be recorded`
  throw rowRefused(promotion, 'of several', fault)
}

interface Key {
  readonly promotion: Promotion
  readonly adopted: readonly string[]
  readonly key: string
  /** Its rows in this epoch, in order. */
  readonly rows: readonly StagedRow[]
}

const decidedBefore = 'it was refused by an earlier try of this promotion, or by another promoter'

/** Decides over one key: its refused rows, or that a later epoch has written it. */
async function settleKey(one: Key, reason: string | null): Promise<readonly RefusedRowRecord[] | 'newer'> {
  const { promotion, adopted, key, rows } = one
  const reasons = new Map<StagedRow, string>()
  if (reason !== null) reasons.set(rows.at(-1)!, reason)
  const refusedFrom = (index: number) =>
    rows.slice(index).map((row) => refusalOf(promotion, row, invalid, reasons.get(row) ?? decidedBefore))
  let item = await readItem(promotion, rows[0]!)
  // Each turn decides over a row, or finds what somebody else decided.
  for (let turns = 0; turns < 3 * rows.length + 10; turns++) {
    const standing = standingOf(promotion, adopted, key, item)
    if (standing === 'newer') return 'newer'
    if (standing === 'written') return []
    const decided = standing === 'older' ? rows.length : rows.findIndex(({ row }) => row === standing.from)
    assert(decided >= 0, `item ${key} names a row that its epoch does not have`)
    const candidate = rows[decided - 1]
    if (candidate === undefined || (standing !== 'older' && !standing.kept)) return refusedFrom(decided)
    const condition =
      standing === 'older' ? whileOlder(promotion.next, adopted) : whileKept(promotion.next, standing.from)
    if (!reasons.has(candidate)) {
      const later = rows[decided]
      const answer = await putRow(promotion, candidate, later ? { from: later.row, kept: false } : null, condition)
      if (answer.did === 'written') return refusedFrom(decided)
      if (answer.did === 'blocked') {
        item = answer.item
        continue
      }
      reasons.set(candidate, answer.reason)
    }
    const kept = await keepItem(promotion, candidate, isBare(item), condition)
    const now = kept.did === 'blocked' ? kept.item : await readItem(promotion, candidate)
    // What another promoter wrote meanwhile may be what the table does not take any more.
    if (kept.did === 'refused' && sameGuard(now, item)) {
      const fault = `${reasons.get(candidate)}; and its item cannot be marked: ${kept.reason}`
      throw rowRefused(promotion, key, fault, kept.cause)
    }
    item = now
  }
  throw new PawlError(
    'SINK_UNAVAILABLE',
    `item ${key} of table ${promotion.open.form.table} is being changed by others`,
  )
}
