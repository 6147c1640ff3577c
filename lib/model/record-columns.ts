/**
 * The inner loop of the decoder: records of one batch into columns.
 *
 * Apart from `record-decode.ts` because it is the hottest code of the source: no object, closure or bigint per
 * record. A record that does not fit its own length is reported, never delivered.
 */
import { assert } from './assert.ts'
import type { Header, LogBatch } from './records.ts'

const rowsMin = 4096

/** Growing columns of a `LogBatch`; used again after each `begin`. */
export class Columns {
  count = 0
  baseOffset = 0n
  offsetDeltas = new Int32Array(rowsMin)
  timestamps = new Float64Array(rowsMin)
  keyStarts = new Int32Array(rowsMin)
  keyEnds = new Int32Array(rowsMin)
  valueStarts = new Int32Array(rowsMin)
  valueEnds = new Int32Array(rowsMin)
  headerStarts = new Int32Array(rowsMin)
  #bytes: Buffer = Buffer.alloc(0)

  /** Starts over with records that lie in `bytes`. */
  begin(bytes: Buffer): void {
    this.count = 0
    this.#bytes = bytes
  }

  /** True when a batch with these offsets may be added to the rows that are here. */
  accepts(baseOffset: bigint, lastOffset: bigint, rowsMax: number): boolean {
    if (this.count === 0) return true
    return this.count < rowsMax && lastOffset - this.baseOffset < 2n ** 31n && baseOffset >= this.baseOffset
  }

  /** Makes room for `rows` more. */
  reserve(rows: number): void {
    const needed = this.count + rows
    if (needed <= this.offsetDeltas.length) return
    const capacity = Math.max(needed, 2 * this.offsetDeltas.length)
    this.offsetDeltas = grown(new Int32Array(capacity), this.offsetDeltas)
    this.keyStarts = grown(new Int32Array(capacity), this.keyStarts)
    this.keyEnds = grown(new Int32Array(capacity), this.keyEnds)
    this.valueStarts = grown(new Int32Array(capacity), this.valueStarts)
    this.valueEnds = grown(new Int32Array(capacity), this.valueEnds)
    this.headerStarts = grown(new Int32Array(capacity), this.headerStarts)
    const timestamps = new Float64Array(capacity)
    timestamps.set(this.timestamps)
    this.timestamps = timestamps
  }

  /** The rows so far, over the columns themselves. */
  take(partition: number): LogBatch {
    return {
      partition,
      baseOffset: this.baseOffset,
      count: this.count,
      offsetDeltas: this.offsetDeltas,
      timestamps: this.timestamps,
      bytes: this.#bytes,
      keyStarts: this.keyStarts,
      keyEnds: this.keyEnds,
      valueStarts: this.valueStarts,
      valueEnds: this.valueEnds,
      headerStarts: this.headerStarts,
    }
  }
}

function grown(to: Int32Array<ArrayBuffer>, from: Int32Array): Int32Array<ArrayBuffer> {
  to.set(from)
  return to
}

/** One batch as its header describes it; deltas count from `baseOffset`. */
export interface RecordRun {
  readonly baseOffset: bigint
  readonly count: number
  readonly baseTimestamp: bigint
  /** The timestamp of every record when the broker sets it, else null. */
  readonly appendTimestamp: bigint | null
  /** First and last delta to deliver, inclusive. */
  readonly deltaMin: number
  readonly deltaMax: number
  readonly lastDelta: number
}

/** Smallest record: seven varints of one byte. */
const recordBytesMin = 7

/**
 * Appends the records in `bytes[from, to)`. Returns what is wrong, or null; after a fault nothing was appended.
 */
export function decodeRecords(
  columns: Columns,
  bytes: Buffer,
  from: number,
  to: number,
  run: RecordRun,
): string | null {
  if (run.count * recordBytesMin > to - from) return 'it is too short for its records'
  columns.reserve(run.count)
  const first = columns.count === 0
  const shift = first ? 0 : Number(run.baseOffset - columns.baseOffset)
  const { offsetDeltas, timestamps, keyStarts, keyEnds, valueStarts, valueEnds, headerStarts } = columns
  const { deltaMin, deltaMax, lastDelta } = run
  const baseTimestamp = Number(run.baseTimestamp)
  const appended = run.appendTimestamp !== null
  const exact = Number.isSafeInteger(baseTimestamp)
  let row = columns.count
  let before = -1
  cursor = from
  for (let i = 0; i < run.count; i++) {
    const length = varint(bytes)
    const end = cursor + length
    if (length < recordBytesMin - 1 || end > to) return 'a record exceeds it'
    cursor++ // attributes, unused
    const timestampDelta = varlong(bytes)
    const delta = varint(bytes)
    if (delta <= before || delta > lastDelta) return 'its offsets are not in order'
    before = delta
    const keyBytes = varint(bytes)
    const keyStart = cursor
    if (keyBytes < -1 || keyBytes > end - keyStart) return 'a key exceeds its record'
    if (keyBytes > 0) cursor += keyBytes
    const valueBytes = varint(bytes)
    const valueStart = cursor
    if (valueBytes < -1 || valueBytes > end - valueStart) return 'a value exceeds its record'
    if (valueBytes > 0) cursor += valueBytes
    const headerStart = cursor
    if (bytes[cursor] === 0) cursor++
    else skipHeaders(bytes, end)
    if (cursor !== end) return 'a record does not fill its length'
    if (delta < deltaMin || delta > deltaMax) continue
    offsetDeltas[row] = shift + delta
    const timestamp = baseTimestamp + timestampDelta
    if (appended) timestamps[row] = Number(run.appendTimestamp)
    else if (exact && Number.isSafeInteger(timestamp)) timestamps[row] = timestamp
    else timestamps[row] = Number(BigInt.asIntN(64, run.baseTimestamp + wide(timestampDelta)))
    keyStarts[row] = keyBytes < 0 ? -1 : keyStart
    keyEnds[row] = keyBytes < 0 ? -1 : keyStart + keyBytes
    valueStarts[row] = valueBytes < 0 ? -1 : valueStart
    valueEnds[row] = valueBytes < 0 ? -1 : valueStart + valueBytes
    headerStarts[row] = headerStart === end - 1 ? -1 : headerStart
    row++
  }
  if (cursor !== to) return 'bytes follow its last record'
  if (first) columns.baseOffset = run.baseOffset
  columns.count = row
  return null
}

/** Type of the control record at `at`: 0 abort, 1 commit, others are newer; null when it has none. */
export function readControlType(bytes: Buffer, at: number): number | null {
  cursor = at
  varint(bytes)
  cursor++
  varlong(bytes)
  varint(bytes)
  const keyBytes = varint(bytes)
  if (keyBytes < 4 || cursor + keyBytes > bytes.length) return null
  return bytes.readInt16BE(cursor) < 0 ? null : bytes.readInt16BE(cursor + 2)
}

/** The headers of a row, in order; values are copies and outlive the batch. */
export function decodeHeaders(batch: LogBatch, row: number): Header[] {
  const { bytes } = batch
  const headers: Header[] = []
  if (batch.headerStarts[row] < 0) return headers
  cursor = batch.headerStarts[row]
  const count = varint(bytes)
  for (let i = 0; i < count; i++) {
    const nameBytes = varint(bytes)
    const name = bytes.toString('utf8', cursor, cursor + nameBytes)
    cursor += nameBytes
    const valueBytes = varint(bytes)
    headers.push([name, valueBytes < 0 ? null : Uint8Array.prototype.slice.call(bytes, cursor, cursor + valueBytes)])
    if (valueBytes > 0) cursor += valueBytes
  }
  assert(cursor <= bytes.length, 'headers end within their batch')
  return headers
}

/** Moves the cursor behind the headers; to -1 when they do not end by `end`. */
function skipHeaders(bytes: Buffer, end: number): void {
  const count = varint(bytes)
  if (count < 0) cursor = -1
  for (let i = 0; i < count && cursor >= 0; i++) {
    const nameBytes = varint(bytes)
    cursor = nameBytes < 0 || nameBytes > end - cursor ? -1 : cursor + nameBytes
    if (cursor < 0) return
    const valueBytes = varint(bytes)
    cursor = valueBytes < -1 || valueBytes > end - cursor ? -1 : cursor + Math.max(valueBytes, 0)
  }
}

/** Where the next varint is read; one for the module, so that reading allocates nothing. */
let cursor = 0
/** The delta that was last read, when it is too wide for a double. */
let wideDelta: bigint | null = null

/** A zigzag int32. Past the end of the buffer it reads zeros, which the bounds of the record then refuse. */
function varint(bytes: Buffer): number {
  let byte = bytes[cursor++]
  if (byte < 128) return (byte >>> 1) ^ -(byte & 1)
  let value = byte & 127
  for (let shift = 7; shift < 35; shift += 7) {
    byte = bytes[cursor++]
    value |= (byte & 127) << shift
    if (!(byte & 128)) break
  }
  return (value >>> 1) ^ -(value & 1)
}

/** A zigzag int64: exact as a double up to seven bytes, else `wideDelta` and NaN. */
function varlong(bytes: Buffer): number {
  let byte = bytes[cursor++]
  if (byte < 128) return (byte >>> 1) ^ -(byte & 1)
  let value = byte & 127
  let factor = 128
  for (let i = 1; i < 7; i++) {
    byte = bytes[cursor++]
    value += (byte & 127) * factor
    factor *= 128
    if (!(byte & 128)) return value % 2 === 0 ? value / 2 : -(value + 1) / 2
  }
  let zigzag = BigInt(value)
  for (let shift = 49n; shift < 70n; shift += 7n) {
    byte = bytes[cursor++]
    zigzag |= BigInt((byte ?? 0) & 127) << shift
    if (!(byte & 128)) break
  }
  wideDelta = (zigzag >> 1n) ^ -(zigzag & 1n)
  return Number.NaN
}

function wide(delta: number): bigint {
  if (!Number.isNaN(delta)) return BigInt(delta)
  assert(wideDelta !== null, 'a wide delta was read')
  return wideDelta
}
