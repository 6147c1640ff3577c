/**
 * CRC-32C, the checksum of Kafka record batches.
 *
 * Castagnoli polynomial 0x1EDC6F41, reflected 0x82F63B78 (RFC 3720, section 12.1 and appendix B.4), computed
 * eight bytes at a time ("slicing by 8", Kounavis and Berry 2005), read as two words where they are aligned; long
 * buffers by two registers at once, since each step of one waits for the step before it. A CRC is linear over GF(2): so
 * two registers can be joined, and the checksum of a changed buffer follows from the old one and the changed bytes
 * alone (`crc32cChanged`), so that damage elsewhere in the buffer stays visible instead of being signed again.
 */

const polynomial = 0x82f63b78

const [t0, t1, t2, t3, t4, t5, t6, t7] = slicingTables()

function slicingTables(): readonly Int32Array[] {
  const tables = Array.from({ length: 8 }, () => new Int32Array(256))
  for (let i = 0; i < 256; i++) {
    let crc = i
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ polynomial : crc >>> 1
    tables[0][i] = crc
  }
  for (let i = 0; i < 256; i++) {
    for (let slice = 1; slice < 8; slice++) {
      const before = tables[slice - 1][i]
      tables[slice][i] = tables[0][before & 255] ^ (before >>> 8)
    }
  }
  return tables
}

/** Words of each of two blocks that are run through side by side. */
const blockWords = 1024
/** Below, a view of the words costs more than it saves. */
const viewBytesMin = 96
const littleEndian = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1

/** Runs the register over `[start, end)`, without the customary inversions. */
function register(crc: number, bytes: Uint8Array, start: number, end: number): number {
  if (!littleEndian || end - start < viewBytesMin) return byBytes(crc, bytes, start, end)
  const aligned = start + (-(bytes.byteOffset + start) & 3)
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + aligned, ((end - aligned) >>> 3) << 1)
  let c = byBytes(crc, bytes, start, aligned)
  let at = 0
  for (; at + 2 * blockWords <= words.length; at += 2 * blockWords) c = byTwoBlocks(c, words, at)
  c = byWords(c, words, at)
  return byBytes(c, bytes, aligned + 4 * words.length, end)
}

function byBytes(crc: number, bytes: Uint8Array, start: number, end: number): number {
  let c = crc
  for (let i = start; i < end; i++) c = t0[(c ^ bytes[i]) & 255] ^ (c >>> 8)
  return c
}

function byWords(crc: number, words: Int32Array, from: number): number {
  let c = crc
  for (let i = from; i < words.length; i += 2) c = step(c ^ words[i], words[i + 1])
  return c
}

function byTwoBlocks(crc: number, words: Int32Array, from: number): number {
  let a = crc
  let b = 0
  for (let i = from; i < from + blockWords; i += 2) {
    a = step(a ^ words[i], words[i + 1])
    b = step(b ^ words[i + blockWords], words[i + blockWords + 1])
  }
  return pastBlock(a) ^ b
}

/** Eight bytes; the first four with the register in them. */
function step(c: number, d: number): number {
  return (
    t7[c & 255] ^
    t6[(c >>> 8) & 255] ^
    t5[(c >>> 16) & 255] ^
    t4[c >>> 24] ^
    t3[d & 255] ^
    t2[(d >>> 8) & 255] ^
    t1[(d >>> 16) & 255] ^
    t0[d >>> 24]
  )
}

/** CRC-32C of bytes `[start, end)`, as an unsigned 32-bit number. */
export function crc32c(bytes: Uint8Array, start = 0, end = bytes.length): number {
  return ~register(-1, bytes, start, end) >>> 0
}

/**
 * The CRC-32C (unsigned) of a buffer after some of its bytes changed: `crc` was its checksum, `difference` is
 * old XOR new of a run of bytes, and `bytesAfter` bytes follow that run. Takes O(log bytesAfter).
 */
export function crc32cChanged(crc: number, difference: Uint8Array, bytesAfter: number): number {
  const changed = register(0, difference, 0, difference.length)
  return (crc ^ multiply(changed, powerOfX(bytesAfter))) >>> 0
}

const [p0, p1, p2, p3] = Array.from({ length: 4 }, (_, byte) => {
  const power = powerOfX(4 * blockWords)
  return Int32Array.from({ length: 256 }, (_, value) => multiply(value << (8 * byte), power))
})

/** The register after a block of zeros. */
function pastBlock(c: number): number {
  return p0[c & 255] ^ p1[(c >>> 8) & 255] ^ p2[(c >>> 16) & 255] ^ p3[c >>> 24]
}

/** Product of two reflected polynomials modulo the CRC polynomial (as `multmodp` of zlib's crc32_combine). */
function multiply(a: number, b: number): number {
  let product = 0
  let factor = b
  for (let bit = 1 << 31; bit !== 0; bit >>>= 1) {
    if (a & bit) product ^= factor
    factor = factor & 1 ? (factor >>> 1) ^ polynomial : factor >>> 1
  }
  return product
}

/** x^(8 · bytes) modulo the CRC polynomial, by repeated squaring. */
function powerOfX(bytes: number): number {
  let power = 1 << 31 // the polynomial 1
  let square = 1 << 23 // x^8
  for (let n = bytes; n > 0; n >>>= 1) {
    if (n & 1) power = multiply(power, square)
    square = multiply(square, square)
  }
  return power
}
