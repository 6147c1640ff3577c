/**
 * Words of the flexible versions of the Kafka protocol (KIP-482), for the few requests that exist in no other.
 *
 * Compact strings, arrays and bytes have their length + 1 as unsigned varint, 0 for null; structures end with
 * tagged fields, which are skipped.
 */

/** Unsigned varint. */
export function flexibleLength(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest > 127; rest >>>= 7) bytes.push((rest & 127) | 128)
  return Buffer.of(...bytes, rest)
}

/** Compact string. */
export function flexibleString(text: string): Buffer {
  const bytes = Buffer.from(text)
  return Buffer.concat([flexibleLength(bytes.length + 1), bytes])
}

/** Reads the words of an answer one after the other; throws `RangeError` past its end. */
export interface FlexibleReader {
  int8(): number
  int16(): number
  int32(): number
  int64(): bigint
  string(): string | null
  /** The next bytes, over the same memory. */
  bytes(length: number): Buffer
  /** Compact bytes, over the same memory; null is empty. */
  compactBytes(): Buffer
  /** Compact array; null is empty. */
  array<T>(read: () => T): T[]
  /** Skips tagged fields. */
  tags(): void
}

/** Reads an answer from its start. */
export function flexibleReader(buffer: Buffer): FlexibleReader {
  let at = 0
  const uvarint = () => {
    let value = 0
    for (let shift = 0; ; shift += 7) {
      const byte = buffer.readUInt8(at++)
      value |= (byte & 127) << shift
      if (byte < 128) return value >>> 0
    }
  }
  const bytes = (length: number) => {
    if (length > buffer.length - at) throw new RangeError(`the answer ends ${length + at - buffer.length} bytes early`)
    at += length
    return buffer.subarray(at - length, at)
  }
  return {
    int8: () => bytes(1).readInt8(),
    int16: () => bytes(2).readInt16BE(),
    int32: () => bytes(4).readInt32BE(),
    int64: () => bytes(8).readBigInt64BE(),
    string: () => {
      const length = uvarint()
      return length === 0 ? null : bytes(length - 1).toString('utf8')
    },
    bytes,
    compactBytes: () => bytes(Math.max(uvarint() - 1, 0)),
    array: (read) => {
      const items = []
      for (let left = uvarint() - 1; left > 0; left--) items.push(read())
      return items
    },
    tags: () => {
      for (let left = uvarint(); left > 0; left--) {
        uvarint()
        bytes(uvarint())
      }
    },
  }
}
