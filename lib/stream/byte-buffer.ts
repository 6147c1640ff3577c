/**
 * A growing byte buffer and its reader, for shuffle segments.
 *
 * Apart because these are the hot loops of an unfused epoch: no buffer and no closure per field.
 */
const firstBytes = 64 * 1024

/** Above this length text is checked and copied natively. */
const shortText = 24

/** Appends fields; grows by doubling. */
export class ByteWriter {
  length = 0
  #buffer = Buffer.allocUnsafeSlow(0)

  byte(value: number): void {
    this.#room(1)
    this.#buffer[this.length++] = value
  }

  /** Overwrites a byte written before. */
  patch(at: number, value: number): void {
    this.#buffer[at] = value
  }

  /** An unsigned integer up to 2^53 − 1, seven bits a byte, low ones first. */
  varint(value: number): void {
    this.#room(8)
    let rest = value
    while (rest > 127) {
      this.#buffer[this.length++] = (rest % 128) | 128
      rest = Math.floor(rest / 128)
    }
    this.#buffer[this.length++] = rest
  }

  double(value: number): void {
    this.#room(8)
    this.length = this.#buffer.writeDoubleBE(value, this.length)
  }

  int64(value: bigint): void {
    this.#room(8)
    this.length = this.#buffer.writeBigInt64BE(value, this.length)
  }

  bytes(value: Uint8Array): void {
    this.varint(value.length)
    this.#room(value.length)
    this.#buffer.set(value, this.length)
    this.length += value.length
  }

  text(value: string): void {
    const { length } = value
    this.#room(8 + length * 2)
    const start = this.length
    this.varint(length * 2)
    if (length <= shortText ? this.#shortAscii(value) : this.#longAscii(value)) return
    this.length = start
    this.varint(length * 2 + 1)
    this.length += this.#buffer.write(value, this.length, 'utf16le')
  }

  /** What was written, and begins anew. */
  take(): Buffer {
    const taken = this.#buffer.subarray(0, this.length)
    this.#buffer = Buffer.allocUnsafeSlow(0)
    this.length = 0
    return taken
  }

  #shortAscii(value: string): boolean {
    const buffer = this.#buffer
    let at = this.length
    for (let i = 0; i < value.length; i++) {
      const code = value.charCodeAt(i)
      if (code > 127) return false
      buffer[at++] = code
    }
    this.length = at
    return true
  }

  #longAscii(value: string): boolean {
    if (Buffer.byteLength(value) !== value.length) return false
    this.length += this.#buffer.write(value, this.length, 'latin1')
    return true
  }

  #room(bytes: number): void {
    if (this.length + bytes <= this.#buffer.length) return
    const grown = Buffer.allocUnsafeSlow(Math.max(firstBytes, this.#buffer.length * 2, this.length + bytes))
    this.#buffer.copy(grown, 0, 0, this.length)
    this.#buffer = grown
  }
}

/** Reads what `ByteWriter` wrote; the bytes must have been checked before. */
export class ByteReader {
  readonly #buffer: Buffer
  #at: number

  constructor(buffer: Buffer, at: number) {
    this.#buffer = buffer
    this.#at = at
  }

  byte(): number {
    return this.#buffer[this.#at++]
  }

  varint(): number {
    let value = 0
    for (let scale = 1; ; scale *= 128) {
      const byte = this.#buffer[this.#at++]
      value += (byte & 127) * scale
      if (byte < 128) return value
    }
  }

  double(): number {
    this.#at += 8
    return this.#buffer.readDoubleBE(this.#at - 8)
  }

  int64(): bigint {
    this.#at += 8
    return this.#buffer.readBigInt64BE(this.#at - 8)
  }

  /** A copy, so that the segment can be let go. */
  bytes(): Uint8Array {
    const length = this.varint()
    const copy = new Uint8Array(length)
    this.#buffer.copy(copy, 0, this.#at, this.#at + length)
    this.#at += length
    return copy
  }

  text(): string {
    const form = this.varint()
    const bytes = form % 2 === 1 ? form - 1 : form / 2
    this.#at += bytes
    return this.#buffer.toString(form % 2 === 1 ? 'utf16le' : 'latin1', this.#at - bytes, this.#at)
  }
}
