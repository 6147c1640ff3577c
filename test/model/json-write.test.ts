import fc from 'fast-check'
import { expect, test } from 'vitest'
import { jsonWriter } from '../../lib/model/json-write.ts'

const fields = { n: 'number', 'a "name"': 'string', m: 'number', t: 'string' } as const
const write = jsonWriter(fields)

/** What is written into a buffer with so much room behind it; null when it was left to JSON.stringify. */
function written(value: unknown, room = 2000, by = write): string | null {
  const into = Buffer.alloc(room + 3, 1)
  const guard = Buffer.concat([into.subarray(0, 3), Buffer.alloc(room)])
  const end = by(value, into, 3)
  expect(into.subarray(0, 3)).toEqual(guard.subarray(0, 3))
  expect(end).toBeLessThanOrEqual(into.length)
  return end < 0 ? null : into.toString('utf8', 3, end)
}

const number = fc.oneof(
  fc.integer(),
  fc.maxSafeInteger(),
  fc.double(),
  fc.float(),
  fc.tuple(fc.maxSafeInteger(), fc.integer({ min: 0, max: 20 })).map(([n, e]) => n / 10 ** e),
  fc.tuple(fc.integer(), fc.integer({ min: 0, max: 9 })).map(([n, e]) => n / 10 ** e),
  fc.tuple(fc.integer({ min: -2000, max: 2000 }), fc.integer({ min: -30, max: 30 })).map(([n, e]) => n * 2 ** e),
  fc.integer({ min: 100, max: 999_999 }).map((cents) => (cents * 908) / 1000),
  fc.constantFrom(0, -0, 1e9, 1e9 + 0.5, 999_999_999.999_999, 2 ** 31, -(2 ** 31), 2 ** 53, 1e21, 1e-6, 1e-7, 5e-324),
)
const text = fc.oneof(
  fc.string({ unit: 'grapheme-ascii', maxLength: 90 }),
  fc.string({ unit: 'binary', maxLength: 9 }),
  fc.constantFrom('', '"', '\\', '\n', '\u007f', 'ä', '\ud800', '\u2028'),
)
const plainText = /^[ !#-[\]-~]*$/

test('writes what JSON.stringify does, byte for byte, whatever numbers and plain text it is given', () => {
  fc.assert(
    fc.property(number, text, number, text, (n, a, m, t) => {
      const value = { n, 'a "name"': a, m, t }
      const found = written(value)
      if (plainText.test(a) && plainText.test(t)) expect(found).toBe(JSON.stringify(value))
      else expect(found).toBeNull()
    }),
    { numRuns: 20_000 },
  )
})

test('leaves to JSON.stringify whatever is not these fields, in this order, in a plain object', () => {
  const whole = { n: 1, 'a "name"': 'a', m: 2, t: 't' }
  expect(written(whole)).toBe(JSON.stringify(whole))
  class Row {
    n = 1
    'a "name"' = 'a'
    m = 2
    t = 't'
  }
  const hidden = Object.defineProperty({ ...whole }, 'toJSON', { value: () => 7 })
  const others = [
    null,
    undefined,
    7,
    'text',
    [1, 'a', 2, 't'],
    new Row(),
    Object.create(whole),
    Object.assign(Object.create({ m: 2 }), { n: 1, 'a "name"': 'a', t: 't' }),
    hidden,
    { ...whole, more: 1 },
    { 'a "name"': 'a', n: 1, m: 2, t: 't' },
    { n: 1, 'a "name"': 'a', m: 2 },
    { ...whole, n: '1' },
    { ...whole, n: null },
    { ...whole, n: undefined },
    { ...whole, n: 1n },
    { ...whole, t: 1 },
    { ...whole, t: { toString: () => 't' } },
  ]
  for (const other of others) expect(written(other)).toBeNull()
})

test('never writes past the end, and writes all where there is room', () => {
  const value = { n: -1.7976931348623157e308, 'a "name"': 'x'.repeat(50), m: -0.000_001_234_567_890_123_456_7, t: 'yy' }
  const text = JSON.stringify(value)
  expect(written(value, text.length + 200)).toBe(text)
  for (let room = 0; room < text.length; room++) expect(written(value, room)).toBeNull()
})

test('writes an object without fields', () => {
  expect(written({}, 10, jsonWriter({}))).toBe('{}')
  expect(written({ a: 1 }, 10, jsonWriter({}))).toBeNull()
})
