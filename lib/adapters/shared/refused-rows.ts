/**
 * Refused rows as they are handed to the plan: bounded, whatever a sink holds.
 */
import type { RefusedRow } from '../../model/manifest.ts'

/** The first rows, ending with the one that reaches `bytes`; at least one where there is any. */
export function withinBytes<Row extends RefusedRow>(rows: readonly Row[], bytes: number): readonly Row[] {
  let sum = 0
  const end = rows.findIndex(({ key, value }) => {
    sum += (key?.length ?? 0) + (value?.length ?? 0)
    return sum >= bytes
  })
  return end < 0 ? rows : rows.slice(0, end + 1)
}
