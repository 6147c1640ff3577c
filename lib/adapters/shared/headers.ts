/**
 * Record headers as they stand in Kafka's record format: a varint count, then name and value by length.
 *
 * Kept apart from the record batches because logs that hold no batches fill `LogBatch.headerStarts` too, and tools
 * and tests read headers back. Varints are zigzag; a null value has length -1.
 */
import type { Header, LogBatch } from '../../model/records.ts'

/** Headers as bytes; null when there are none. */
export function encodeHeaders(headers: readonly Header[] | undefined): Buffer | null {
  if (headers === undefined || headers.length === 0) return null
  const chunks: Uint8Array[] = [varint(headers.length)]
  for (const [name, value] of headers) {
    const nameBytes = Buffer.from(name)
    chunks.push(varint(nameBytes.length), nameBytes, varint(value === null ? -1 : value.length))
    if (value !== null) chunks.push(value)
  }
  return Buffer.concat(chunks)
}

/** Headers of record `index` of a batch, copied. */
export function headersOf(batch: LogBatch, index: number): Header[] {
  const start = batch.headerStarts[index]!
  if (start < 0) return []
  const reader = { bytes: batch.bytes, at: start }
  const count = readVarint(reader)
  return Array.from({ length: count }, () => {
    const name = take(reader, readVarint(reader)).toString()
    const valueBytes = readVarint(reader)
    return [name, valueBytes < 0 ? null : Buffer.from(take(reader, valueBytes))] as const
  })
}

interface Reader {
  readonly bytes: Buffer
  at: number
}

function take(reader: Reader, length: number): Buffer {
  reader.at += length
  return reader.bytes.subarray(reader.at - length, reader.at)
}

function varint(value: number): Buffer {
  const out: number[] = []
  let rest = ((value << 1) ^ (value >> 31)) >>> 0
  for (; rest > 127; rest >>>= 7) out.push((rest & 127) | 128)
  out.push(rest)
  return Buffer.from(out)
}

function readVarint(reader: Reader): number {
  let raw = 0
  for (let shift = 0; ; shift += 7) {
    const byte = reader.bytes[reader.at++]!
    raw |= (byte & 127) << shift
    if (byte < 128) return (raw >>> 1) ^ -(raw & 1)
  }
}
