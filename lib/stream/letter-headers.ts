/**
 * Headers of dead letters: where a refused row stands, so that a consumer can tell a repetition without decoding.
 *
 * Only rows that a sink refused have them. Equal places mean the same row, refused again by a restored sink.
 */
import type { RejectedRecord } from '../model/manifest.ts'
import type { Header } from '../model/records.ts'

const none: readonly Header[] = Object.freeze([])

/** `pawl-sink`, `-lane`, `-incarnation`, `-epoch`, `-row`, `-code` and `-column` (null when it is not known). */
export function letterHeaders(letter: unknown): readonly Header[] {
  const place = (letter as RejectedRecord).refused
  if (place === undefined) return none
  const { sink, lane, incarnation, epoch, row, code, column } = place
  const named = { sink, lane, incarnation, epoch, row, code, column }
  return Object.entries(named).map(([name, value]) => [`pawl-${name}`, value === null ? null : Buffer.from(`${value}`)])
}
