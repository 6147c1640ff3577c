/**
 * Shuffle segments: what one task hands to one shard of a later stage, as bytes.
 *
 * Written and read by the same build, but stored in between, so damage must be seen. Layout, version 1, integers
 * big-endian: `PWSG`, u8 version, u32 records, u32 body length, u32 CRC-32 of the body, body. A record is a flags
 * byte, then what the flags say is not as before or not the same: the `keyBy` node (varint), origin (source varint, partition
 * varint, offset i64) or offset delta (varint), timestamp (f64); then the key and the value, tagged. Text is a
 * varint of twice its length plus 1 when UTF-16 follows instead of ASCII, so that lone surrogates survive. Objects
 * are JSON where that loses nothing, else the tagged JSON of `state/values.ts`.
 */
import { crc32 } from 'node:zlib'
import { PawlError } from '../model/errors.ts'
import { isPlain, tagged, untagged } from '../state/values.ts'
import { ByteReader, ByteWriter } from './byte-buffer.ts'
import type { Origin, TaskContext } from './context.ts'

const magic = 0x50575347
const version = 1
const headerBytes = 17

const flag = { origin: 1, nowhere: 2, delta: 4, timestamp: 8, node: 16, textKey: 32, valueIsKey: 64 } as const

const tag = { null: 0, undefined: 1, true: 2, false: 3, number: 4, text: 5, bytes: 6, json: 7, tagged: 8 } as const

/** Collects the records of one shard. */
export class SegmentWriter {
  readonly #out = new ByteWriter()
  #records = 0
  #node = -1
  #timestampMs = Number.NaN
  #origin: Origin | null = null
  #partition = -1
  #batches = -1
  #offsetDelta = 0
  #baseOffset = -1n

  get bytes(): number {
    return this.#out.length
  }

  /** Adds the value at hand, whose key is in the context. Throws `Unstorable`, and then keeps nothing of it. */
  add(context: TaskContext, node: number, value: unknown): void {
    const out = this.#out
    const start = out.length
    try {
      this.#writeRecord(context, node, value)
    } catch (error) {
      out.length = start
      this.#forget()
      throw error
    }
    this.#records++
  }

  /** The segment so far, and begins a new one; null when it is empty. */
  take(): Buffer[] | null {
    if (this.#records === 0) return null
    const body = this.#out.take()
    const header = Buffer.allocUnsafe(headerBytes)
    header.writeUInt32BE(magic, 0)
    header.writeUInt8(version, 4)
    header.writeUInt32BE(this.#records, 5)
    header.writeUInt32BE(body.length, 9)
    header.writeUInt32BE(crc32(body), 13)
    this.#records = 0
    this.#forget()
    return [header, body]
  }

  #writeRecord(context: TaskContext, node: number, value: unknown): void {
    const out = this.#out
    const at = out.length
    out.byte(0)
    let flags = this.#writeOrigin(context)
    if (node !== this.#node) {
      flags |= flag.node
      out.varint(node)
      this.#node = node
    }
    if (context.timestampMs !== this.#timestampMs) {
      flags |= flag.timestamp
      out.double(context.timestampMs)
      this.#timestampMs = context.timestampMs
    }
    const key = context.keyValue
    if (typeof key === 'string') {
      flags |= flag.textKey
      out.text(key)
    } else out.double(key as number)
    if (value === key && typeof value === 'string') flags |= flag.valueIsKey
    else writeValue(out, value)
    out.patch(at, flags)
  }

  #writeOrigin(context: TaskContext): number {
    const { origin, partition, batch } = context
    if (origin === null) return flag.nowhere
    const offsetDelta = batch === null ? context.offsetDelta : batch.offsetDeltas[context.index]
    const near =
      origin === this.#origin &&
      partition === this.#partition &&
      offsetDelta >= this.#offsetDelta &&
      (batch === null ? context.baseOffset === this.#baseOffset : context.batches === this.#batches)
    if (near) {
      const delta = offsetDelta - this.#offsetDelta
      this.#offsetDelta = offsetDelta
      if (delta === 0) return 0
      this.#out.varint(delta)
      return flag.delta
    }
    this.#origin = origin
    this.#partition = partition
    this.#batches = context.batches
    this.#baseOffset = context.baseOffset
    this.#offsetDelta = offsetDelta
    this.#out.varint(origin.index)
    this.#out.varint(partition)
    this.#out.int64(context.offset)
    return flag.origin
  }

  #forget(): void {
    this.#node = -1
    this.#timestampMs = Number.NaN
    this.#origin = null
  }
}

/** Reads a segment: sets the context for each record and hands it to `push` with its `keyBy` node. */
export function readSegment(
  segment: Buffer,
  context: TaskContext,
  origins: readonly Origin[],
  push: (node: number, value: unknown) => void,
): void {
  const records = checkedRecords(segment)
  const input = new ByteReader(segment, headerBytes)
  let node = -1
  let timestampMs = 0
  let last = { origin: null as Origin | null, partition: -1, baseOffset: -1n, offsetDelta: 0 }
  context.batch = null
  for (let i = 0; i < records; i++) {
    const flags = input.byte()
    if (flags & flag.origin)
      last = { origin: origins[input.varint()], partition: input.varint(), baseOffset: input.int64(), offsetDelta: 0 }
    else if (flags & flag.delta) last.offsetDelta += input.varint()
    if (flags & flag.node) node = input.varint()
    if (flags & flag.timestamp) timestampMs = input.double()
    context.key = flags & flag.textKey ? input.text() : input.double()
    const value = flags & flag.valueIsKey ? context.keyValue : readValue(input)
    const nowhere = (flags & flag.nowhere) !== 0
    context.origin = nowhere ? null : last.origin
    context.partition = nowhere ? -1 : last.partition
    context.baseOffset = nowhere ? -1n : last.baseOffset
    context.offsetDelta = nowhere ? 0 : last.offsetDelta
    context.timestampMs = timestampMs
    push(node, value)
  }
}

function checkedRecords(segment: Buffer): number {
  if (segment.length < headerBytes) throw damaged(`${segment.length} bytes are no header`)
  if (segment.readUInt32BE(0) !== magic) throw damaged('it does not begin with PWSG')
  if (segment.readUInt8(4) !== version) throw damaged(`version ${segment.readUInt8(4)}, not ${version}`)
  const length = segment.readUInt32BE(9)
  if (segment.length !== headerBytes + length) throw damaged(`${segment.length - headerBytes} bytes of ${length}`)
  if (crc32(segment.subarray(headerBytes)) !== segment.readUInt32BE(13)) throw damaged('the checksum differs')
  return segment.readUInt32BE(5)
}

function damaged(fault: string): PawlError {
  return new PawlError('SHUFFLE_DAMAGED', fault)
}

function writeValue(out: ByteWriter, value: unknown): void {
  if (typeof value === 'string') {
    out.byte(tag.text)
    out.text(value)
  } else if (typeof value === 'number') {
    out.byte(tag.number)
    out.double(value)
  } else if (typeof value === 'boolean') out.byte(value ? tag.true : tag.false)
  else if (value === undefined) out.byte(tag.undefined)
  else if (value === null) out.byte(tag.null)
  else if (isBytes(value)) {
    out.byte(tag.bytes)
    out.bytes(value)
  } else {
    const plain = isPlain(value)
    const json = JSON.stringify(plain ? value : tagged(value))
    out.byte(plain ? tag.json : tag.tagged)
    out.text(json)
  }
}

/** A Uint8Array and nothing else: a Buffer must come back as one. */
function isBytes(value: unknown): value is Uint8Array {
  return value instanceof Uint8Array && Object.getPrototypeOf(value) === Uint8Array.prototype
}

function readValue(input: ByteReader): unknown {
  switch (input.byte()) {
    case tag.null:
      return null
    case tag.undefined:
      return undefined
    case tag.true:
      return true
    case tag.false:
      return false
    case tag.number:
      return input.double()
    case tag.text:
      return input.text()
    case tag.bytes:
      return input.bytes()
    case tag.json:
      return JSON.parse(input.text())
    case tag.tagged:
      return untagged(JSON.parse(input.text()))
    default:
      throw damaged('an unknown tag of a value')
  }
}
