/**
 * Offsets and ranges.
 *
 * An offset is an int64: a `bigint` in memory and a decimal string in every file, so that nothing past 2^53 is
 * rounded. Ranges are half open, `[start, end)`.
 */
import { PawlError } from './errors.ts'

/** A position in a partition, as int64. */
export type Offset = bigint

/** Largest offset that Kafka can hold. */
export const offsetMax: Offset = 2n ** 63n - 1n

/** An offset as it stands in JSON. */
export type OffsetText = string

/** Offsets `[start, end)` of one partition of one source, as text. */
export interface RangeText {
  readonly source: string
  readonly partition: number
  readonly start: OffsetText
  readonly end: OffsetText
}

/** The decimal text of an offset, as it stands in files. */
export function offsetText(offset: Offset): OffsetText {
  return offset.toString()
}

/** Parses a decimal offset. Throws `START_POSITION_INVALID` when it is no int64 at or above zero. */
export function parseOffset(text: OffsetText): Offset {
  if (!/^\d{1,19}$/.test(text)) throw new PawlError('START_POSITION_INVALID', `offset ${JSON.stringify(text)}`)
  const offset = BigInt(text)
  if (offset > offsetMax) throw new PawlError('START_POSITION_INVALID', `offset ${text} is larger than int64`)
  return offset
}

/** How many offsets a range spans (records may be fewer: holes are legal). */
export function rangeSpan(range: RangeText): bigint {
  return BigInt(range.end) - BigInt(range.start)
}
