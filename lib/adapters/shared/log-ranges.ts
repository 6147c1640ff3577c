/**
 * The refusals that every log owes to a read: a range must lie within the log as it stands.
 *
 * A range that was planned and no longer fits means that records are gone; ending early would skip them silently.
 */
import { assert } from '../../model/assert.ts'
import { PawlError } from '../../model/errors.ts'
import { offsetText } from '../../model/offsets.ts'

/** Offsets `[start, end)` of a partition. */
export interface OffsetRange {
  readonly partition: number
  readonly start: bigint
  readonly end: bigint
}

/** Throws `LOG_OFFSET_LOST` or `LOG_SHRUNK` unless `range` lies within `[start, end)` of the log. */
export function assertWithinLog(topic: string, range: OffsetRange, log: { start: bigint; end: bigint }): void {
  assert(range.start <= range.end, `range [${range.start}, ${range.end}) ends before it starts`)
  if (range.start === range.end) return
  const details = { topic, partition: range.partition, start: offsetText(range.start), end: offsetText(range.end) }
  const of = `of partition ${range.partition} of ${topic}`
  if (range.start < log.start) {
    throw new PawlError('LOG_OFFSET_LOST', `offset ${range.start} ${of}, which starts at ${log.start}`, {
      ...details,
      logStart: offsetText(log.start),
    })
  }
  if (range.end > log.end) {
    throw new PawlError('LOG_SHRUNK', `offset ${range.end} ${of}, which ends at ${log.end}`, {
      ...details,
      logEnd: offsetText(log.end),
    })
  }
}

/** The refusal of a partition that the topic does not have. */
export function partitionMissing(topic: string, partition: number): PawlError {
  return new PawlError('TOPIC_MISSING', `partition ${partition} of ${topic}`, { topic, partition })
}
