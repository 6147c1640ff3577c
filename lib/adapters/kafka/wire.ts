/**
 * Words of the Kafka protocol: the primitive types that requests and answers consist of.
 *
 * Only what the non-flexible versions of the protocol need (no tagged fields, no compact strings); those versions
 * are understood by every broker from 2.8 on. Big-endian; int64 is a `bigint`.
 * Format: https://kafka.apache.org/protocol#protocol_types
 */

/** One request with the decoder of its answer. `body` is concatenated on the wire. */
export interface WireRequest<T> {
  readonly apiKey: number
  readonly apiVersion: number
  readonly apiName: string
  readonly body: readonly Buffer[]
  decode(answer: Buffer): T
  /** The answer is held back for long: it is waited for on a socket of its own. */
  readonly slow?: true
}

/** Builds a request body; grows as needed. */
export class WireWriter {
  #buffer = Buffer.allocUnsafe(512)
  #at = 0

  #room(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.length) return
    const grown = Buffer.allocUnsafe((this.#at + bytes) * 2)
    this.#buffer.copy(grown, 0, 0, this.#at)
    this.#buffer = grown
  }

  int8(value: number): this {
    this.#room(1)
    this.#at = this.#buffer.writeInt8(value, this.#at)
    return this
  }

  int16(value: number): this {
    this.#room(2)
    this.#at = this.#buffer.writeInt16BE(value, this.#at)
    return this
  }

  int32(value: number): this {
    this.#room(4)
    this.#at = this.#buffer.writeInt32BE(value, this.#at)
    return this
  }

  int64(value: bigint): this {
    this.#room(8)
    this.#at = this.#buffer.writeBigInt64BE(value, this.#at)
    return this
  }

  boolean(value: boolean): this {
    return this.int8(value ? 1 : 0)
  }

  string(value: string | null): this {
    if (value === null) return this.int16(-1)
    const bytes = Buffer.byteLength(value)
    this.int16(bytes).#room(bytes)
    this.#at += this.#buffer.write(value, this.#at)
    return this
  }

  array<T>(items: readonly T[], write: (item: T) => void): this {
    this.int32(items.length)
    for (const item of items) write(item)
    return this
  }

  /** What was written since the last call. */
  take(): Buffer {
    const taken = this.#buffer.subarray(0, this.#at)
    this.#buffer = Buffer.allocUnsafe(512)
    this.#at = 0
    return taken
  }
}

/** Reads an answer from its start. */
export class WireReader {
  readonly #buffer: Buffer
  #at = 0

  constructor(buffer: Buffer) {
    this.#buffer = buffer
  }

  int8(): number {
    this.#at += 1
    return this.#buffer.readInt8(this.#at - 1)
  }

  int16(): number {
    this.#at += 2
    return this.#buffer.readInt16BE(this.#at - 2)
  }

  int32(): number {
    this.#at += 4
    return this.#buffer.readInt32BE(this.#at - 4)
  }

  int64(): bigint {
    this.#at += 8
    return this.#buffer.readBigInt64BE(this.#at - 8)
  }

  boolean(): boolean {
    return this.int8() !== 0
  }

  string(): string | null {
    const bytes = this.int16()
    if (bytes < 0) return null
    this.#at += bytes
    return this.#buffer.toString('utf8', this.#at - bytes, this.#at)
  }

  /** Shares memory with the answer; null reads as empty. */
  bytes(): Buffer {
    const bytes = Math.max(this.int32(), 0)
    this.#at += bytes
    return this.#buffer.subarray(this.#at - bytes, this.#at)
  }

  /** A null array reads as empty. */
  array<T>(read: () => T): T[] {
    const items: T[] = []
    for (let left = this.int32(); left > 0; left--) items.push(read())
    return items
  }
}
