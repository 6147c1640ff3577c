/**
 * Refused rows, as sinks record them and as they are handed to the plan: bounded, whatever they hold.
 */
import { randomBytes } from 'node:crypto'
import { limits } from '../../model/limits.ts'
import type { RefusedRow } from '../../model/manifest.ts'

/** A refused row before it has an id. */
export type RefusedRowRecord = Omit<RefusedRow, 'id'>

/** A refused row before it is bounded; `key` and `value` as the sink had them. */
export type Refusal = Omit<RefusedRowRecord, 'key' | 'value' | 'cutBytes'> & {
  readonly key: Uint8Array | string | null
  readonly value: Uint8Array | string | null
}

/** A recording of a refused row, under an id of its own. */
export function refusedRow(refusal: Refusal): RefusedRow {
  return { id: randomBytes(16).toString('hex'), ...refusedRecord(refusal) }
}

/** What is recorded of a refused row: of its value at most `bytesMax`, and never more than a rejected record keeps. */
export function refusedRecord(
  { key, value, reason, ...place }: Refusal,
  bytesMax: number = limits.rejectedBytesMax,
): RefusedRowRecord {
  const content = value === null ? null : Buffer.from(value)
  const kept = content?.subarray(0, Math.min(limits.rejectedBytesMax, bytesMax)) ?? null
  return {
    ...place,
    reason: reason.slice(0, limits.errorCharsMax),
    key: key === null ? null : Buffer.from(key).toString('base64'),
    value: kept?.toString('base64') ?? null,
    cutBytes: (content?.length ?? 0) - (kept?.length ?? 0),
  }
}

/** The first rows, ending with the one that reaches `bytes`; at least one where there is any. */
export function withinBytes<Row extends RefusedRow>(rows: readonly Row[], bytes: number): readonly Row[] {
  let sum = 0
  const end = rows.findIndex(({ key, value }) => {
    sum += (key?.length ?? 0) + (value?.length ?? 0)
    return sum >= bytes
  })
  return end < 0 ? rows : rows.slice(0, end + 1)
}
