import fc from 'fast-check'
import { expect, test } from 'vitest'
import { json, jsonFields, PawlError } from '../../lib/index.ts'

const wanted = { a: 'number', text: 'string' } as const

/** What JSON.parse and picking make of a document, or that they throw. */
function oracle(document: Buffer): unknown {
  try {
    const parsed = JSON.parse(document.toString()) as Record<string, unknown> | null
    if (typeof parsed !== 'object' || parsed === null) return 'throws'
    for (const [name, type] of Object.entries(wanted))
      if (!Object.hasOwn(parsed, name) || typeof parsed[name] !== type) return 'throws'
    return { a: parsed.a, text: parsed.text }
  } catch {
    return 'throws'
  }
}

function decoded(serde: ReturnType<typeof jsonFields<typeof wanted>>, document: Buffer): unknown {
  // Bytes of the records around it must not matter.
  const bytes = Buffer.concat([Buffer.from('{"a":'), document, Buffer.from('1","text":"x"}')])
  try {
    return serde.decode(bytes, 5, 5 + document.length)
  } catch {
    return 'throws'
  }
}

const number = fc.oneof(
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.tuple(fc.integer({ min: -(10 ** 9), max: 10 ** 9 }), fc.integer({ min: 0, max: 9 })).map(([n, e]) => n / 10 ** e),
  fc.constantFrom(0, -0, 2 ** 53, 1e21, 1e-7, 999_999_999_999_999),
)
const numberText = fc.oneof(
  number.map((value) => (Object.is(value, -0) ? '-0' : String(value))),
  fc.constantFrom(
    '01',
    '-',
    '1.',
    '.5',
    '1e3',
    '1E-2',
    '-0.0',
    '0.10',
    '123456789012345678',
    '1.0000000000000001',
    '+1',
  ),
)
const text = fc.oneof(
  fc.string({ unit: 'grapheme-ascii' }),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('', '\\', '"', '\u007f', 'ä'),
)
const other = fc.oneof(
  numberText,
  text.map((value) => JSON.stringify(value)),
  fc.constantFrom('null', 'true', '[1]', '{"a":1}', 'nul'),
)
const layout = fc.shuffledSubarray(['a', 'text', 'b', 'ö', 'a"c'], { minLength: 0 })
const document = fc
  .record({
    layout,
    a: numberText,
    text,
    other,
    blank: fc.constantFrom('', '', '', ' '),
    end: fc.constantFrom('', '', '', ',', '}', 'x'),
  })
  .map(({ layout, a, text, other, blank, end }) => {
    const value: Record<string, string> = { a, text: JSON.stringify(text) }
    return Buffer.from(
      `{${layout.map((name) => `${JSON.stringify(name)}:${blank}${value[name] ?? other}`).join(',')}}${end}`,
    )
  })
/** Like `document`, always of one layout, so that the walk is what reads it. */
const steady = fc
  .record({ b: text, a: numberText, text })
  .map(({ a, b, text }) => Buffer.from(`{"b":${JSON.stringify(b)},"a":${a},"text":${JSON.stringify(text)}}`))

test('agrees with JSON.parse about every document, whatever came before it', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(document, steady), { minLength: 1, maxLength: 20 }), (documents) => {
      const serde = jsonFields(wanted)
      for (const one of documents) expect(decoded(serde, one)).toStrictEqual(oracle(one))
    }),
    { numRuns: 300 },
  )
})

test('agrees with JSON.parse about documents with bytes changed, cut off or put in', () => {
  const change = fc.record({
    at: fc.nat(60),
    byte: fc.integer({ min: 0, max: 255 }),
    how: fc.constantFrom('set', 'cut', 'insert'),
  })
  fc.assert(
    fc.property(steady, change, (one, { at, byte, how }) => {
      const serde = jsonFields(wanted)
      decoded(serde, Buffer.from('{"b":"x","a":1,"text":"y"}'))
      const index = Math.min(at, one.length - 1)
      const changed =
        how === 'set'
          ? Buffer.concat([one.subarray(0, index), Buffer.of(byte), one.subarray(index + 1)])
          : how === 'cut'
            ? one.subarray(0, index)
            : Buffer.concat([one.subarray(0, index), Buffer.of(byte), one.subarray(index)])
      expect(decoded(serde, changed)).toStrictEqual(oracle(changed))
    }),
    { numRuns: 1000 },
  )
})

test('reads the record after the first without JSON.parse', () => {
  const serde = jsonFields(wanted)
  const bytes = Buffer.from('{"b":2,"a":-1.5,"text":"x y"}')
  serde.decode(bytes, 0, bytes.length)
  const { parse } = JSON
  JSON.parse = () => {
    throw new Error('JSON.parse was called')
  }
  try {
    expect(serde.decode(bytes, 0, bytes.length)).toStrictEqual({ a: -1.5, text: 'x y' })
  } finally {
    JSON.parse = parse
  }
})

test('names the field that is missing or of another type', () => {
  const decode = (source: string) => jsonFields(wanted).decode(Buffer.from(source), 0, source.length)
  expect(() => decode('{"a":1}')).toThrow('text is undefined, not string')
  expect(() => decode('{"a":"1","text":""}')).toThrow('a is string, not number')
  expect(() => decode('null')).toThrow('no JSON object')
})

test('says in its name which fields it wants, so that another choice is another build', () => {
  expect(jsonFields(wanted).name).toBe('json(a:number,text:string)')
})

test('encodes as json() does', () => {
  const value = { a: 1.5, text: 'ä' }
  expect(jsonFields(wanted).encode(value)).toBe(json().encode(value))
})

test('refuses a field that would be the prototype', () => {
  expect(() => jsonFields(JSON.parse('{"__proto__":"number"}'))).toThrow(PawlError)
})
