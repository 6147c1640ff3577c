import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  attributeOf,
  attributesOf,
  attributesText,
  bytesOf,
  decimal,
  parseAttributes,
} from '../../../lib/adapters/dynamodb/attributes.ts'

const refused = expect.objectContaining({ code: 'ENCODE_FAILED' })

describe('values become attributes', () => {
  test.each([
    ['text', 'ключ', { S: 'ключ' }],
    ['empty text', '', { S: '' }],
    ['int64', 9223372036854775807n, { N: '9223372036854775807' }],
    ['int64 beyond doubles', -9007199254740993n, { N: '-9007199254740993' }],
    ['a double', 0.1, { N: '1E-1' }],
    ['a large double', 1e21, { N: '1E21' }],
    ['zero', -0, { N: '0' }],
    [
      'a decimal of 38 digits',
      decimal('12345678901234567890.123456789012345678'),
      {
        N: '12345678901234567890123456789012345678E-18',
      },
    ],
    ['a decimal as text', '12.50', { S: '12.50' }],
    ['truth', true, { BOOL: true }],
    ['null', null, { NULL: true }],
    ['a moment', new Date(1), { S: '1970-01-01T00:00:00.001Z' }],
    ['bytes', Buffer.from([0, 255]), { B: new Uint8Array([0, 255]) }],
    [
      'nested JSON',
      { a: [1, { b: null }], c: undefined },
      {
        M: { a: { L: [{ N: '1' }, { M: { b: { NULL: true } } }] } },
      },
    ],
  ])('%s', (_, value, attribute) => {
    expect(attributeOf(value, 'x')).toEqual(attribute)
  })

  test('what is missing is left out, what is null stays', () => {
    expect(Object.keys(attributesOf({ a: undefined, b: null }, ''))).toEqual(['b'])
  })

  test.each([
    ['a Set', new Set([1])],
    ['a Map', new Map()],
    ['a class of the user', new (class Price {})()],
    ['NaN', Number.NaN],
    ['infinity', Number.POSITIVE_INFINITY],
    ['39 digits', 10n ** 38n + 1n],
    ['a number beyond the range', 10n ** 126n],
    ['an invalid date', new Date(Number.NaN)],
    ['half a surrogate pair', '\ud800'],
    ['a function', () => 1],
    ['a hole in a list', [1, undefined]],
    ['a tiny double', 1e-300],
  ])('%s is refused, naming the attribute', (_, value) => {
    expect(() => attributesOf({ a: { b: value } }, '')).toThrow(refused)
    expect(() => attributesOf({ a: { b: value } }, '')).toThrow(/a\.b/)
  })

  test('what lies too deep is refused', () => {
    let deep: unknown = 1
    for (let i = 0; i < 33; i++) deep = { deep }
    expect(() => attributeOf(deep, 'x')).toThrow(refused)
  })
})

test('numbers have one form, which is equal in value', () => {
  fc.assert(
    fc.property(
      fc.bigInt({ min: -(10n ** 18n), max: 10n ** 18n }),
      fc.integer({ min: -20, max: 20 }),
      (digits, power) => {
        const plain = decimal(`${digits}e${power}`).text
        expect(decimal(`${digits}000e${power - 3}`).text).toBe(plain)
        expect(decimal(`${digits}.000e${power}`).text).toBe(plain)
        expect(Number(plain)).toBe(Number(`${digits}e${power}`) + 0)
      },
    ),
  )
})

test('attributes survive their way through JSON, bytes and attributes named B too', () => {
  const value = { B: 'text', b: new Uint8Array([1, 2, 3]), M: { B: new Uint8Array([0]), N: '1' }, list: ['S', 1n] }
  expect(parseAttributes(attributesText(attributesOf(value, '')))).toEqual({
    B: { S: 'text' },
    b: { B: new Uint8Array([1, 2, 3]) },
    M: { M: { B: { B: new Uint8Array([0]) }, N: { S: '1' } } },
    list: { L: [{ S: 'S' }, { N: '1' }] },
  })
})

test('sizes are those of the developer guide', () => {
  expect(bytesOf({ name: { S: 'ä' }, on: { BOOL: true } })).toBe(4 + 2 + 2 + 1)
  expect(bytesOf({ l: { L: [{ S: 'ab' }] }, m: { M: { k: { NULL: true } } } })).toBe(1 + 3 + 1 + 2 + 1 + 3 + 1 + 1 + 1)
})
