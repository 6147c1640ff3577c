/**
 * Writes Kafka record batches, format version 2 (kafka.apache.org/documentation/#recordbatch).
 *
 * Rows go straight into one growing buffer: no object per record, and a string is encoded where it will stand.
 * The length of a record stands before it, so text is first taken for ASCII and the rare other record is written
 * once more with exact lengths. Null and empty keys and values are distinct. A batch is sealed once; producer id,
 * epoch and sequence are patched in when it is sent, the checksum following by what changed.
 */
import { crc32c, crc32cChanged } from './crc32c.ts'
import { PawlError } from './errors.ts'
import { limits } from './limits.ts'
import {
  type Content,
  sizeOfHeaders,
  sizeOfVarint,
  sizeOfWide,
  unitsOf,
  writeContent,
  writeHeaders,
  writeVarint,
  writeWide,
} from './record-words.ts'
import type { Header } from './records.ts'

/** Where the fields of a batch stand; big-endian. The checksum covers everything from `attributes`. */
export const batchLayout = Object.freeze({
  baseOffset: 0,
  length: 8,
  leaderEpoch: 12,
  magic: 16,
  crc: 17,
  attributes: 21,
  lastOffsetDelta: 23,
  baseTimestamp: 27,
  maxTimestamp: 35,
  producerId: 43,
  producerEpoch: 51,
  baseSequence: 53,
  count: 57,
  records: 61,
})

/** Bits of the attributes; the lowest three name the codec. */
export const batchAttributes = Object.freeze({ codec: 0x07, logAppendTime: 0x08, transactional: 0x10, control: 0x20 })

/** A serde that writes values in place; see `Serde.write`. */
export interface WritingSerde {
  write(value: unknown, into: Buffer, at: number): number
}

/** Room for a value that is written in place; a larger one comes in only where there happens to be more. */
const writtenBytes = 4096

/** Varints of a record before its key: length 5, attributes 1, timestamp 10, offset 5. */
const prefixBytesMax = 21

/** A record batch under construction. */
export class RecordBatchEncoder {
  #count = 0
  #buffer: Buffer
  #end: number = batchLayout.records
  #baseTimestamp = 0
  #maxTimestamp = 0
  /** Bytes of the varints before the last record, and before its value, that were written in place. */
  #lengthBytes = 2
  #valueLengthBytes = 2
  readonly #recordBytesMax: number

  /** `recordBytesMax` bounds key + value + headers of one record. */
  constructor(options: { readonly capacity?: number; readonly recordBytesMax?: number } = {}) {
    this.#buffer = Buffer.allocUnsafe(Math.max(options.capacity ?? 64 * 1024, 1024))
    this.#recordBytesMax = options.recordBytesMax ?? limits.recordBytesMax
  }

  /** Records added. */
  get count(): number {
    return this.#count
  }

  /** Size of the batch so far, header included. */
  get bytes(): number {
    return this.#end
  }

  /**
   * Appends a record. `timestampMs` is an integer within int64. When it throws, the batch is as it was:
   * `RECORD_TOO_LARGE`, or `ENCODE_FAILED` for what is neither text, bytes nor null.
   */
  add(timestampMs: number, key: Content, value: Content, headers?: readonly Header[]): void {
    if (!Number.isInteger(timestampMs) || timestampMs >= 2 ** 63 || timestampMs < -(2 ** 63))
      throw new PawlError('ENCODE_FAILED', `timestamp ${timestampMs} is not an int64`)
    let keyBytes = unitsOf(key)
    let valueBytes = unitsOf(value)
    const headersBytes = headers === undefined || headers.length === 0 ? 1 : sizeOfHeaders(headers)
    // A UTF-16 unit takes at most 3 bytes.
    this.#reserve(3 * (Math.max(keyBytes, 0) + Math.max(valueBytes, 0)) + headersBytes + prefixBytesMax + 10)
    let end = this.#write(timestampMs, key, keyBytes, value, valueBytes, headersBytes)
    if (end < 0) {
      if (typeof key === 'string') keyBytes = Buffer.byteLength(key)
      if (typeof value === 'string') valueBytes = Buffer.byteLength(value)
      end = this.#write(timestampMs, key, keyBytes, value, valueBytes, headersBytes)
    }
    const size = Math.max(keyBytes, 0) + Math.max(valueBytes, 0) + headersBytes
    if (size > this.#recordBytesMax)
      throw new PawlError('RECORD_TOO_LARGE', `${size} bytes, the limit is ${this.#recordBytesMax}`, {
        bytes: size,
        bytesMax: this.#recordBytesMax,
      })
    writeHeaders(this.#buffer, end, headers)
    this.#counted(timestampMs)
    this.#end = end + headersBytes
  }

  #counted(timestampMs: number): void {
    if (this.#count === 0) {
      this.#baseTimestamp = timestampMs
      this.#maxTimestamp = timestampMs
    } else if (timestampMs > this.#maxTimestamp) this.#maxTimestamp = timestampMs
    this.#count++
  }

  /**
   * Appends a record without headers whose value `serde.write` writes in place. False, and the batch is as it was, when
   * that leaves the value to `encode`, or the batch would exceed `bytesMax`, or the key is not ASCII. Throws as `add`.
   */
  addWritten(timestampMs: number, key: Content, value: unknown, serde: WritingSerde, bytesMax: number): boolean {
    const keyBytes = unitsOf(key)
    const delta = this.#count === 0 ? 0 : timestampMs - this.#baseTimestamp
    if (!Number.isSafeInteger(timestampMs) || !Number.isSafeInteger(delta)) return false
    this.#reserve(3 * Math.max(keyBytes, 0) + writtenBytes + prefixBytesMax + 10)
    const buffer = this.#buffer
    // Lengths stand before what they measure: as many bytes are left for them as the last record needed.
    const start = this.#end + this.#lengthBytes
    buffer[start] = 0
    let p = writeVarint(buffer, start + 1, delta)
    p = writeVarint(buffer, p, this.#count)
    p = writeVarint(buffer, p, keyBytes)
    const keyEnd = key === null ? p : writeContent(buffer, p, key)
    if (key !== null && keyEnd !== p + keyBytes) return false
    const valueStart = keyEnd + this.#valueLengthBytes
    const valueEnd = serde.write(value, buffer, valueStart)
    if (valueEnd < 0) return false
    const valueBytes = valueEnd - valueStart
    const size = Math.max(keyBytes, 0) + valueBytes + 1
    if (size > this.#recordBytesMax || valueEnd + 11 > bytesMax) return false
    this.#valueLengthBytes = sizeOfVarint(valueBytes)
    const moved = keyEnd + this.#valueLengthBytes
    if (moved !== valueStart) buffer.copyWithin(moved, valueStart, valueEnd)
    writeVarint(buffer, keyEnd, valueBytes)
    buffer[moved + valueBytes] = 0
    const body = moved + valueBytes + 1 - start
    const lengthBytes = sizeOfVarint(body)
    if (lengthBytes !== this.#lengthBytes) buffer.copyWithin(this.#end + lengthBytes, start, start + body)
    this.#lengthBytes = lengthBytes
    this.#end = writeVarint(buffer, this.#end, body) + body
    this.#counted(timestampMs)
    return true
  }

  /**
   * A copy of the finished batch, not yet tied to a producer, in `into` (as long as `bytes`) when that is given. The encoder
   * keeps its records until `reset`.
   */
  seal(
    options: { readonly transactional?: boolean; readonly baseOffset?: bigint; readonly into?: Buffer } = {},
  ): Buffer {
    const at = batchLayout
    const batch = options.into ?? Buffer.allocUnsafe(this.#end)
    this.#buffer.copy(batch, 0, 0, this.#end)
    batch.writeBigInt64BE(options.baseOffset ?? 0n, at.baseOffset)
    batch.writeInt32BE(this.#end - at.leaderEpoch, at.length)
    batch.writeInt32BE(-1, at.leaderEpoch)
    batch[at.magic] = 2
    batch.writeInt16BE(options.transactional ? batchAttributes.transactional : 0, at.attributes)
    batch.writeInt32BE(this.#count - 1, at.lastOffsetDelta)
    batch.writeBigInt64BE(BigInt(this.#baseTimestamp), at.baseTimestamp)
    batch.writeBigInt64BE(BigInt(this.#maxTimestamp), at.maxTimestamp)
    batch.writeBigInt64BE(-1n, at.producerId)
    batch.writeInt16BE(-1, at.producerEpoch)
    batch.writeInt32BE(-1, at.baseSequence)
    batch.writeInt32BE(this.#count, at.count)
    batch.writeUInt32BE(crc32c(batch, at.attributes), at.crc)
    return batch
  }

  /** Forgets all records, keeps the memory. */
  reset(): void {
    this.#count = 0
    this.#end = batchLayout.records
    this.#baseTimestamp = 0
    this.#maxTimestamp = 0
  }

  /** Writes the record up to its headers and returns the position there; -1 when a length was not the given one. */
  #write(ts: number, key: Content, keyBytes: number, value: Content, valueBytes: number, headersBytes: number): number {
    const buffer = this.#buffer
    const delta = this.#count === 0 ? 0 : ts - this.#baseTimestamp
    const wide = Number.isSafeInteger(delta) && Number.isSafeInteger(ts) ? null : this.#wideDelta(ts)
    const body =
      1 +
      (wide === null ? sizeOfVarint(delta) : sizeOfWide(wide)) +
      sizeOfVarint(this.#count) +
      sizeOfVarint(keyBytes) +
      Math.max(keyBytes, 0) +
      sizeOfVarint(valueBytes) +
      Math.max(valueBytes, 0) +
      headersBytes
    let p = writeVarint(buffer, this.#end, body)
    buffer[p++] = 0
    p = wide === null ? writeVarint(buffer, p, delta) : writeWide(buffer, p, wide)
    p = writeVarint(buffer, p, this.#count)
    p = writeVarint(buffer, p, keyBytes)
    const keyEnd = key === null ? p : writeContent(buffer, p, key)
    if (key !== null && keyEnd !== p + keyBytes) return -1
    p = writeVarint(buffer, keyEnd, valueBytes)
    const valueEnd = value === null ? p : writeContent(buffer, p, value)
    return value !== null && valueEnd !== p + valueBytes ? -1 : valueEnd
  }

  /** The exact difference, which wraps around like Java's long. Zigzag-encoded. */
  #wideDelta(ts: number): bigint {
    const delta = this.#count === 0 ? 0n : BigInt.asIntN(64, BigInt(ts) - BigInt(this.#baseTimestamp))
    return BigInt.asUintN(64, (delta << 1n) ^ (delta >> 63n))
  }

  #reserve(bytes: number): void {
    const needed = this.#end + bytes
    if (needed <= this.#buffer.length) return
    if (needed > 2 ** 31 - 1) throw new PawlError('RECORD_TOO_LARGE', `a batch of more than ${needed} bytes`)
    const larger = Buffer.allocUnsafe(Math.min(Math.max(2 * this.#buffer.length, needed), 2 ** 31 - 1))
    this.#buffer.copy(larger, 0, 0, this.#end)
    this.#buffer = larger
  }
}

/** Names the producer in a sealed batch. The checksum follows from the bytes that change, so earlier damage shows. */
export function patchProducer(batch: Buffer, producerId: bigint, producerEpoch: number, baseSequence: number): void {
  const at = batchLayout
  const difference = Buffer.from(batch.subarray(at.producerId, at.count))
  batch.writeBigInt64BE(producerId, at.producerId)
  batch.writeInt16BE(producerEpoch, at.producerEpoch)
  batch.writeInt32BE(baseSequence, at.baseSequence)
  for (let i = 0; i < difference.length; i++) difference[i] ^= batch[at.producerId + i]
  batch.writeUInt32BE(crc32cChanged(batch.readUInt32BE(at.crc), difference, batch.length - at.count), at.crc)
}

/** Sets the offset of the first record, which the checksum does not cover. */
export function setBaseOffset(batch: Buffer, baseOffset: bigint): void {
  batch.writeBigInt64BE(baseOffset, batchLayout.baseOffset)
}
