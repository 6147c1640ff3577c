import fc from 'fast-check'
import { expect, test } from 'vitest'
import { crc32c, crc32cChanged } from '../../lib/model/crc32c.ts'

test('agrees with the values of RFC 3720', () => {
  expect(crc32c(Buffer.alloc(32))).toBe(0x8a9136aa)
  expect(crc32c(Buffer.alloc(32, 0xff))).toBe(0x62a8ab43)
  expect(crc32c(Buffer.from(Array.from({ length: 32 }, (_, i) => i)))).toBe(0x46dd794e)
  expect(crc32c(Buffer.from('123456789'))).toBe(0xe3069283)
})

test('covers the given bytes only', () => {
  expect(crc32c(Buffer.from('xx123456789yyy'), 2, 11)).toBe(0xe3069283)
})

test('follows a change of some bytes from those bytes alone', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 40 }),
      fc.uint8Array({ minLength: 1, maxLength: 20 }),
      fc.uint8Array({ maxLength: 300 }),
      fc.uint8Array({ minLength: 20, maxLength: 20 }),
      (before, run, after, changes) => {
        const difference = changes.subarray(0, run.length)
        const old = Buffer.concat([before, run, after])
        const changed = Buffer.concat([before, run.map((byte, i) => byte ^ difference[i]), after])
        expect(crc32cChanged(crc32c(old), difference, after.length)).toBe(crc32c(changed))
      },
    ),
  )
})

/** Bit by bit, as the polynomial says. */
function bitwise(bytes: Uint8Array): number {
  let crc = -1
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1
  }
  return ~crc >>> 0
}

test('gives the same whatever the length and wherever the bytes lie', () => {
  const bytes = Buffer.from(Array.from({ length: 40_000 }, (_, i) => Math.imul(i, 2654435761) >>> 24))
  const length = fc.oneof(fc.nat(300), fc.integer({ min: 8000, max: 8400 }), fc.integer({ min: 16_000, max: 30_000 }))
  fc.assert(
    fc.property(fc.nat(64), length, (start, bytesLong) => {
      expect(crc32c(bytes, start, start + bytesLong)).toBe(bitwise(bytes.subarray(start, start + bytesLong)))
    }),
  )
})
