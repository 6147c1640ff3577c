/**
 * Records as short texts by offset, to tell whether two segments say the same of a range.
 *
 * Whatever laid a record down, the text is the same: time, key, value and headers. An event may have left it open
 * whether the value of a header is null or empty, so these count as one.
 */
import { createHash } from 'node:crypto'
import type { PlacedRecord } from '../../model/mapping-event.ts'
import { decodeBatches } from '../../model/record-decode.ts'
import type { Header, LogBatch } from '../../model/records.ts'
import { headersOf } from '../shared/headers.ts'

/** A text for each record, by offset. */
export type Digests = ReadonlyMap<bigint, string>

/** Of the records of record batches within a range. */
export function digestsOf(
  bytes: Buffer,
  range: { readonly topic: string; readonly partition: number; readonly start: bigint; readonly end: bigint },
): Digests {
  const digests = new Map<bigint, string>()
  for (const batch of decodeBatches(bytes, range).batches) {
    for (const record of placedOf(batch)) digests.set(record.offset, digestOf(record))
  }
  return digests
}

/** Of records that are at hand. */
export function placedDigests(records: readonly PlacedRecord[]): Digests {
  return new Map(records.map((record) => [record.offset, digestOf(record)]))
}

/** The first offset of which two digests say something else; null when they agree. */
export function differing(a: Digests, b: Digests): bigint | null {
  const differ = [...new Set([...a.keys(), ...b.keys()])].filter((offset) => a.get(offset) !== b.get(offset))
  return differ.reduce<bigint | null>((first, offset) => (first === null || offset < first ? offset : first), null)
}

/** The records of a batch, copied. */
export function placedOf(batch: LogBatch): PlacedRecord[] {
  const { baseOffset, offsetDeltas, timestamps, bytes, keyStarts, keyEnds, valueStarts, valueEnds } = batch
  const content = (start: number, end: number) => (start < 0 ? null : Buffer.from(bytes.subarray(start, end)))
  return Array.from({ length: batch.count }, (_, i) => ({
    offset: baseOffset + BigInt(offsetDeltas[i]!),
    timestampMs: timestamps[i]!,
    key: content(keyStarts[i]!, keyEnds[i]!),
    value: content(valueStarts[i]!, valueEnds[i]!),
    headers: headersOf(batch, i),
  }))
}

function digestOf({ timestampMs, key, value, headers }: PlacedRecord): string {
  const hash = createHash('sha256').update(`${timestampMs} ${key?.length ?? -1} ${value?.length ?? -1} `)
  if (key !== null) hash.update(key)
  if (value !== null) hash.update(value)
  hash.update(
    JSON.stringify(headers.map(([name, bytes]: Header) => [name, Buffer.from(bytes ?? []).toString('base64')])),
  )
  return hash.digest('base64')
}
