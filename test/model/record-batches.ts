/**
 * Builds and reads record batches for the tests of the codec.
 *
 * `rowsOf` copies what a `LogBatch` holds, because its columns are used again.
 */
import { crc32c } from '../../lib/model/crc32c.ts'
import { batchLayout, RecordBatchEncoder } from '../../lib/model/record-batch.ts'
import { decodeHeaders } from '../../lib/model/record-columns.ts'
import type { Header, LogBatch, LogRecord } from '../../lib/model/records.ts'

/** A record as it came off the wire; text in latin1, so that any bytes compare. */
export interface Row {
  readonly offset: bigint
  readonly timestampMs: number
  readonly key: string | null
  readonly value: string | null
  readonly headers: readonly (readonly [string, string | null])[]
}

export function encoded(
  records: readonly LogRecord[],
  options: { readonly baseOffset?: bigint; readonly transactional?: boolean } = {},
): Buffer {
  const encoder = new RecordBatchEncoder()
  for (const { timestampMs, key, value, headers } of records) encoder.add(timestampMs, key, value, headers)
  return encoder.seal(options)
}

/** Rewrites fields of a batch and signs it again. */
export function changed(batch: Buffer, change: (batch: Buffer) => void): Buffer {
  const copy = Buffer.from(batch)
  change(copy)
  copy.writeUInt32BE(crc32c(copy, batchLayout.attributes), batchLayout.crc)
  return copy
}

/** The same batch with its records compressed. */
export function compressed(batch: Buffer, codec: number, compress: (bytes: Buffer) => Buffer): Buffer {
  const joined = Buffer.concat([batch.subarray(0, batchLayout.records), compress(batch.subarray(batchLayout.records))])
  joined.writeInt32BE(joined.length - batchLayout.leaderEpoch, batchLayout.length)
  return changed(joined, (b) => b.writeInt16BE(b.readInt16BE(batchLayout.attributes) | codec, batchLayout.attributes))
}

export function rowsOf(decoded: { readonly batches: Iterable<LogBatch> }): Row[] {
  const rows: Row[] = []
  for (const batch of decoded.batches) rows.push(...rowsOfBatch(batch))
  return rows
}

export function rowsOfBatch(batch: LogBatch): Row[] {
  const slice = (start: number, end: number) => (start < 0 ? null : batch.bytes.toString('latin1', start, end))
  return Array.from({ length: batch.count }, (_, i) => ({
    offset: batch.baseOffset + BigInt(batch.offsetDeltas[i]),
    timestampMs: batch.timestamps[i],
    key: slice(batch.keyStarts[i], batch.keyEnds[i]),
    value: slice(batch.valueStarts[i], batch.valueEnds[i]),
    headers: decodeHeaders(batch, i).map(latin1),
  }))
}

/** What a record looks like after a round trip. */
export function wire(record: LogRecord, offset: bigint): Row {
  const bytes = (content: LogRecord['key']) => (content === null ? null : Buffer.from(content).toString('latin1'))
  return {
    offset,
    timestampMs: record.timestampMs,
    key: bytes(record.key),
    value: bytes(record.value),
    headers: (record.headers ?? []).map(([name, value]) => [Buffer.from(name).toString(), bytes(value)]),
  }
}

function latin1([name, value]: Header): readonly [string, string | null] {
  return [name, value === null ? null : Buffer.from(value).toString('latin1')]
}
