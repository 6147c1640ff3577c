import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isPlain, tagged, Unstorable, untagged, valueDepthMax } from '../../lib/state/values.ts'

const roundTrip = (value: unknown): unknown => untagged(JSON.parse(JSON.stringify(tagged(value))))

const anything = fc.anything({
  withBigInt: true,
  withDate: true,
  withMap: true,
  withSet: true,
  withNullPrototype: true,
  withObjectString: false,
  key: fc.oneof(fc.string(), fc.constantFrom('$', 'v', '__proto__', 'toJSON')),
  values: [
    fc.boolean(),
    fc.integer(),
    fc.double(),
    fc.string({ unit: 'binary' }),
    fc.constantFrom(null, undefined, Number.NaN, -0),
    fc.uint8Array(),
  ],
})

class Money {
  readonly cents = 5
}
const circle: unknown[] = []
circle.push(circle)
const deep = (levels: number): unknown => (levels === 0 ? 0 : [deep(levels - 1)])

describe('values of state', () => {
  it('come back as they were', () => {
    fc.assert(
      fc.property(anything, (value) => {
        expect(roundTrip(value)).toStrictEqual(value)
      }),
      { numRuns: 1000 },
    )
  })

  it('are plain only if JSON gives them back unchanged', () => {
    fc.assert(
      fc.property(anything, (value) => {
        if (isPlain(value)) expect(JSON.parse(JSON.stringify(value))).toStrictEqual(value)
      }),
      { numRuns: 1000 },
    )
  })

  it('are plain whenever they come out of JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(isPlain(JSON.parse(JSON.stringify(value)))).toBe(true)
      }),
    )
  })

  it.each([
    ['bytes', Uint8Array.of(0, 255)],
    ['a buffer', Buffer.from('ab')],
    ['an invalid date', new Date(Number.NaN)],
    ['lone surrogates', 'a\ud800b'],
    ['an object that looks tagged', { $: 'date', v: 5 }],
    ['an object that inherits nothing', Object.assign(Object.create(null), { $: 1, __proto__: 2 })],
    ['a prototype as a key', JSON.parse('{"__proto__": {"a": [null]}}')],
    ['the deepest nesting', deep(valueDepthMax)],
  ])('keep %s', (_, value) => {
    expect(roundTrip(value)).toStrictEqual(value)
    expect(Object.getPrototypeOf(roundTrip(value))).toBe(Object.getPrototypeOf(value))
  })

  it.each([
    ['a function', { go: () => 1 }, '.go'],
    ['a symbol', [Symbol.iterator], '[0]'],
    ['an instance of a class', { price: [new Money()] }, '.price[0]'],
    ['an instance of a subclass', new (class Stamp extends Date {})(), ''],
    ['a boxed number', Object(5), ''],
    ['a regular expression', { r: /x/ }, '.r'],
    ['a typed array of another kind', Float64Array.of(1), ''],
    [
      'a getter',
      {
        sum: 4,
        get mean() {
          return 2
        },
      },
      '.mean',
    ],
    ['a property that is not enumerable', Object.defineProperty({}, 'hidden', { value: 1 }), '.hidden'],
    ['a property named by a symbol', { [Symbol('s')]: 1 }, '.Symbol(s)'],
    // biome-ignore lint/suspicious/noSparseArray: the hole is what is tested
    ['a hole in an array', { list: [1, , 2] }, '.list'],
    ['an array with a name', Object.assign([1], { index: 0 }), ''],
    ['a hole beside a name', Object.assign(new Array(1), { index: 0 }), '[0]'],
    ['a map with a property', Object.assign(new Map(), { extra: 1 }), ''],
    ['a circle', circle, '[0]'.repeat(valueDepthMax)],
    ['nesting that is too deep', deep(valueDepthMax + 1), '[0]'.repeat(valueDepthMax)],
  ])('refuse %s, saying where', (_, value, path) => {
    expect(isPlain(value)).toBe(false)
    try {
      tagged(value)
    } catch (error) {
      expect(error).toBeInstanceOf(Unstorable)
      expect((error as Unstorable).path).toBe(path)
      return
    }
    expect.unreachable('it was taken')
  })

  it('refuse a tag that is not known', () => {
    expect(() => untagged({ $: 'future', v: 1 })).toThrow('unknown tag future')
  })
})
