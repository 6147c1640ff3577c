import fc from 'fast-check'
import { expect, test } from 'vitest'
import { jsonFields } from '../../lib/model/json-fields.ts'
import { bytes, json, nullable, text } from '../../lib/model/serde.ts'

const batch = Buffer.from('ab{"n":1}cd')

test.each([[2], [3000]])('bytes of length %i are copied, as plain Uint8Arrays', (length) => {
  const source = Buffer.alloc(length + 2, 7)
  const copy = bytes().decode(source, 1, length + 1)
  const other = bytes().decode(source, 0, length)
  source.fill(0)
  other.fill(1)
  expect(copy).toStrictEqual(new Uint8Array(length).fill(7))
})

test('bytes stay apart when a slab is full', () => {
  const source = Buffer.from(Array.from({ length: 256 }, (_, i) => i))
  const copies = Array.from({ length: 300 }, (_, i) => bytes().decode(source, i % 100, 200))
  for (const [i, copy] of copies.entries()) expect(copy).toEqual(new Uint8Array(source.subarray(i % 100, 200)))
})

test.each([text(), bytes(), json(), nullable(json()), jsonFields({ n: 'number', t: 'string' })])(
  'what $name decodes does not change with its batch',
  (serde) => {
    const source = Buffer.from('{"n":12345678901,"t":"a text that is long enough"}')
    for (let i = 0; i < 3; i++) {
      const lent = Buffer.from(source)
      const decoded = serde.decode(lent, 0, lent.length)
      const before = structuredClone(decoded)
      lent.fill(120)
      expect(decoded).toEqual(before)
    }
    expect(serde.copies).toBe(true)
  },
)

test('a serde of which nothing is known is not said to copy, nullable or not', () => {
  const views = { name: 'views', encode: (value: Buffer) => value, decode: (source: Buffer) => source }
  expect(nullable(views).copies).toBeUndefined()
})

test('text and JSON are read in place', () => {
  expect(text().decode(batch, 0, 2)).toBe('ab')
  expect(json<{ n: number }>().decode(batch, 2, 9)).toEqual({ n: 1 })
})

test.each([[undefined], [() => 1], [Symbol('s')]])('%s has no form in JSON and is refused', (value) => {
  expect(() => json().encode(value)).toThrow('has no form in JSON')
})

test('null passes through a nullable serde both ways, and empty stays empty', () => {
  const serde = nullable(text())
  expect([serde.decode(batch, -1, -1), serde.decode(batch, 0, 0)]).toEqual([null, ''])
  expect([serde.encode(null), serde.encode('')]).toEqual([null, ''])
})

test('a schema gives its output, or says where the value is wrong', () => {
  const serde = json({
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: (value: unknown) => {
        const { n } = value as { n: number }
        return n === 1 ? { value: n + 1 } : { issues: [{ message: 'must be 1', path: ['n'] }] }
      },
    },
  })
  expect(serde.decode(batch, 2, 9)).toBe(2)
  expect(() => serde.decode(Buffer.from('{"n":3}'), 0, 7)).toThrow('n: must be 1')
})

test('text comes back as it was, short or long, ASCII or not', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 12 }), fc.string({ maxLength: 5 }), (value, before) => {
      const source = Buffer.from(`${before}${value}tail`)
      const start = Buffer.byteLength(before)
      const decoded = text().decode(source, start, start + Buffer.byteLength(value))
      expect(decoded).toBe(Buffer.from(value).toString())
    }),
  )
})
