/**
 * The words of a record in format version 2: varints, contents and headers, written into a buffer.
 *
 * Apart from `record-batch.ts`, which puts records together of them. Each returns the position behind what it wrote; room is
 * the caller's concern. Varints are zigzag-encoded, as in Protocol Buffers.
 */
import { PawlError } from './errors.ts'
import type { Header } from './records.ts'

/** A key or value as it is encoded; null for none. */
export type Content = string | Uint8Array | null

/** Longest text that is copied here, character by character, rather than by a call into the runtime. */
const shortText = 24

/** Length of bytes, of text when it is ASCII; -1 for null. */
export function unitsOf(content: Content): number {
  if (content === null) return -1
  if (typeof content === 'string' || content instanceof Uint8Array) return content.length
  throw new PawlError('ENCODE_FAILED', `a ${typeof content} is neither text, bytes nor null`)
}

/** Writes text or bytes; returns the position behind them. */
export function writeContent(buffer: Buffer, at: number, content: string | Uint8Array): number {
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

/** Bytes of the headers with their count. Throws `ENCODE_FAILED`. */
export function sizeOfHeaders(headers: readonly Header[]): number {
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

/** Writes headers with their count. */
export function writeHeaders(buffer: Buffer, at: number, headers: readonly Header[] | undefined): void {
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
export function sizeOfVarint(value: number): number {
  let rest = value >= 0 ? value : -(value + 1)
  if (rest < 64) return 1
  if (rest < 8192) return 2
  let bytes = 3
  for (rest = Math.floor(rest / 2 ** 20); rest > 0; rest = Math.floor(rest / 128)) bytes++
  return bytes
}

/** Writes a zigzag varint of a safe integer; returns the position behind it. */
export function writeVarint(buffer: Buffer, at: number, value: number): number {
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

/** Bytes of a varint that is zigzag-encoded already. */
export function sizeOfWide(zigzag: bigint): number {
  let bytes = 1
  for (let rest = zigzag >> 7n; rest > 0n; rest >>= 7n) bytes++
  return bytes
}

/** Writes a varint that is zigzag-encoded already; returns the position behind it. */
export function writeWide(buffer: Buffer, at: number, zigzag: bigint): number {
  let p = at
  let rest = zigzag
  for (; rest > 127n; rest >>= 7n) buffer[p++] = Number(rest & 127n) | 128
  buffer[p++] = Number(rest)
  return p
}
