/**
 * Start positions that every log resolves alike.
 *
 * Explicit offsets name every partition: one that was forgotten would otherwise replay or skip without a word.
 * Offsets must lie within the log, its end included.
 */
import { PawlError } from '../../model/errors.ts'
import { offsetText, parseOffset } from '../../model/offsets.ts'
import type { LogBounds, StartPosition } from '../../ports/log.ts'

/** Offsets by partition of `{ at: 'offsets' }`. Throws `START_POSITION_INVALID`, naming topic and partition. */
export function explicitOffsets(
  topic: string,
  offsets: Extract<StartPosition, { at: 'offsets' }>['offsets'],
  bounds: LogBounds,
): ReadonlyMap<number, bigint> {
  const resolved = new Map<number, bigint>()
  for (const { partition, start, end } of bounds.partitions) {
    const text = offsets[partition]
    if (text === undefined) throw invalid(`no offset for partition ${partition} of ${topic}`, topic, partition)
    const offset = parseOffset(text)
    if (offset < start || offset > end) {
      const fault = `offset ${text} of partition ${partition} of ${topic} lies outside [${start}, ${end}]`
      throw invalid(fault, topic, partition, offset)
    }
    resolved.set(partition, offset)
  }
  for (const partition of Object.keys(offsets).map(Number)) {
    if (!resolved.has(partition)) throw invalid(`${topic} has no partition ${partition}`, topic, partition)
  }
  return resolved
}

/** The refusal of group offsets by a log that keeps none. */
export function groupUnsupported(topic: string, group: string): PawlError {
  return new PawlError('START_POSITION_INVALID', `${topic} keeps no group offsets, asked for group ${group}`, { topic })
}

function invalid(fault: string, topic: string, partition: number, offset?: bigint): PawlError {
  const at = offset === undefined ? null : offsetText(offset)
  return new PawlError('START_POSITION_INVALID', fault, { topic, partition, offset: at })
}
