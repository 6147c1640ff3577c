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

type Content = string | Uint8Array | null

/** Longest text that is copied here, character by character, rather than by a call into the runtime. */
const shortText = 24
/** Varints of a record before its key: length 5, attributes 1, timestamp 10, offset 5. */
const prefixBytesMax = 21

/** A record batch under construction. */
export class RecordBatchEncoder {
  #count = 0
  #buffer: Buffer
  #end: number = batchLayout.records
  #baseTimestamp = 0
  #maxTimestamp = 0
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
    if (this.#count === 0) {
      this.#baseTimestamp = timestampMs
      this.#maxTimestamp = timestampMs
    } else if (timestampMs > this.#maxTimestamp) this.#maxTimestamp = timestampMs
    this.#count++
    this.#end = end + headersBytes
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

/** Length of bytes, of text when it is ASCII; -1 for null. */
function unitsOf(content: Content): number {
  if (content === null) return -1
  if (typeof content === 'string' || content instanceof Uint8Array) return content.length
  throw new PawlError('ENCODE_FAILED', `a ${typeof content} is neither text, bytes nor null`)
}

function writeContent(buffer: Buffer, at: number, content: string | Uint8Array): number {
  if (typeof content === 'string') return writeText(buffer, at, content)
  if (content.length > shortText) buffer.set(content, at)
  else for (let i = 0; i < content.length; i++) buffer[at + i] = content[i]
  return at + content.length
}

function writeText(buffer: Buffer, at: number, text: string): number {
  if (text.length > shortText) return at + buffer.write(text, at)
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit > 0x7f) return at + buffer.write(text, at)
    buffer[at + i] = unit
  }
  return at + text.length
}

function sizeOfHeaders(headers: readonly Header[]): number {
  let bytes = sizeOfVarint(headers.length)
  for (const [name, value] of headers) {
    const nameBytes = Buffer.byteLength(name)
    if (typeof value === 'string')
      throw new PawlError('ENCODE_FAILED', `the value of header ${name} is text, not bytes`)
    const valueBytes = unitsOf(value)
    bytes += sizeOfVarint(nameBytes) + nameBytes + sizeOfVarint(valueBytes) + Math.max(valueBytes, 0)
  }
  return bytes
}

function writeHeaders(buffer: Buffer, at: number, headers: readonly Header[] | undefined): void {
  if (headers === undefined || headers.length === 0) {
    buffer[at] = 0
    return
  }
  let p = writeVarint(buffer, at, headers.length)
  for (const [name, value] of headers) {
    p = writeVarint(buffer, p, Buffer.byteLength(name))
    p += buffer.write(name, p)
    p = writeVarint(buffer, p, value === null ? -1 : value.length)
    if (value !== null) p = writeContent(buffer, p, value)
  }
}

/** Bytes of a zigzag varint; `value` is a safe integer. */
function sizeOfVarint(value: number): number {
  let rest = value >= 0 ? value : -(value + 1)
  if (rest < 64) return 1
  if (rest < 8192) return 2
  let bytes = 3
  for (rest = Math.floor(rest / 2 ** 20); rest > 0; rest = Math.floor(rest / 128)) bytes++
  return bytes
}

/** Writes a zigzag varint of a safe integer; returns the position behind it. */
function writeVarint(buffer: Buffer, at: number, value: number): number {
  let p = at
  if (value >= -(2 ** 30) && value < 2 ** 30) {
    let rest = (value << 1) ^ (value >> 31)
    for (; rest > 127; rest >>>= 7) buffer[p++] = (rest & 127) | 128
    buffer[p++] = rest
    return p
  }
  // The lowest six bits and the sign first: doubling a safe integer could leave the safe range.
  const negative = value < 0
  let rest = negative ? -(value + 1) : value
  buffer[p++] = ((rest % 64) << 1) | (negative ? 1 : 0) | 128
  for (rest = Math.floor(rest / 64); rest > 127; rest = Math.floor(rest / 128)) buffer[p++] = (rest % 128) | 128
  buffer[p++] = rest
  return p
}

function sizeOfWide(zigzag: bigint): number {
  let bytes = 1
  for (let rest = zigzag >> 7n; rest > 0n; rest >>= 7n) bytes++
  return bytes
}

function writeWide(buffer: Buffer, at: number, zigzag: bigint): number {
  let p = at
  let rest = zigzag
  for (; rest > 127n; rest >>= 7n) buffer[p++] = Number(rest & 127n) | 128
  buffer[p++] = Number(rest)
  return p
}
