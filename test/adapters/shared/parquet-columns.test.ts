import fc from 'fast-check'
import { parquetReadObjects } from 'hyparquet'
import { expect, test } from 'vitest'
import { type ColumnSpec, cellMaker, parquetColumns } from '../../../lib/adapters/shared/parquet-columns.ts'
import { loadParquetWriter, parquetFile } from '../../../lib/adapters/shared/parquet-file.ts'

const cell = (spec: ColumnSpec, value: unknown) => cellMaker(parquetColumns({ c: spec }, 'test')[0]!)(value)

/** What a file of one column gives back. */
async function writtenAndRead(spec: ColumnSpec, values: readonly unknown[]): Promise<unknown[]> {
  const columns = parquetColumns({ c: spec }, 'test')
  const cells = values.map(cellMaker(columns[0]!))
  const bytes = parquetFile(await loadParquetWriter(), columns, [cells])
  const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer
  return (await parquetReadObjects({ file })).map(({ c }) => c)
}

test('keeps every 64-bit integer', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.option(fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n)), { minLength: 1 }), async (values) => {
      expect(await writtenAndRead('long', values)).toEqual(values)
    }),
    { numRuns: 30 },
  )
})

test('keeps every double, not a number and negative zero too', async () => {
  const values = [0.1, -0, Number.NaN, Number.POSITIVE_INFINITY, Number.MIN_VALUE, null, Number.MAX_VALUE]
  expect(await writtenAndRead('double', values)).toEqual(values)
})

test('keeps text, and tells an empty one from none', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.option(fc.string({ unit: 'binary' })), { minLength: 1 }), async (values) => {
      expect(await writtenAndRead('string', values)).toEqual(values)
    }),
    { numRuns: 30 },
  )
  expect(await writtenAndRead('string', ['', null, undefined])).toEqual(['', null, null])
})

test('scales decimals by their digits and never by way of a double', () => {
  expect(cell('decimal(38,10)', '-1234567890123456789012345678.0123456789')).toBe(
    -12345678901234567890123456780123456789n,
  )
  expect(cell('decimal(9,2)', '12.5000')).toBe(1250n)
  expect(cell('decimal(9,2)', 7)).toBe(700n)
  expect(cell('decimal(3,3)', '0.125')).toBe(125n)
})

test('counts timestamps in microseconds of UTC', () => {
  expect(cell('timestamp', '1970-01-01T01:00:00.000001+01:00')).toBe(1n)
  expect(cell('timestamp', '1969-12-31T23:59:59.9Z')).toBe(-100_000n)
  expect(cell('timestamp', new Date(-1))).toBe(-1000n)
  expect(cell('timestamp', 5)).toBe(5000n)
  expect(cell('timestamp', 5n)).toBe(5n)
})

test('counts days from 1970, before it too', () => {
  expect(cell('date', '1969-12-31')).toBe(-1)
  expect(cell('date', new Date('2026-11-30T00:00:00Z'))).toBe(20_787)
})

test.each<readonly [ColumnSpec, unknown, RegExp]>([
  ['long', 2n ** 63n, /does not fit 64 bits/],
  ['long', 2 ** 53, /no integer/],
  ['long', '1.0', /no integer/],
  ['integer', 2 ** 31, /does not fit 32 bits/],
  ['decimal(9,2)', '1.005', /more than 2 digits after the point/],
  ['decimal(9,2)', 10_000_000, /more than 9 digits/],
  ['decimal(9,2)', 0.5, /no decimal/],
  ['date', '2026-02-30', /no date/],
  ['date', new Date(1), /not at midnight/],
  ['timestamp', '2026-11-30 12:00:00', /no timestamp/],
  ['timestamp', '2026-11-30T12:00:00', /no timestamp/],
  ['timestamp', new Date(Number.NaN), /no timestamp/],
  ['string', 'half \ud800', /surrogate/],
  ['string', 5, /no string/],
  ['boolean', 'true', /no boolean/],
  ['binary', 'text', /no binary/],
  [{ type: 'long', nullable: false }, null, /not nullable/],
])('refuses for %j the value %s', (spec, value, fault) => {
  expect(() => cell(spec, value)).toThrow(fault)
  expect(() => cell(spec, value)).toThrow(/column c/)
})

test('refuses columns that no table can have', () => {
  expect(() => parquetColumns({ a: 'strung' as never }, 'sink s')).toThrow(/sink s: column a has the unknown type/)
  expect(() => parquetColumns({ a: 'decimal(39,1)' }, 's')).toThrow(/unknown type/)
  expect(() => parquetColumns({ a: 'long', A: 'long' }, 's')).toThrow(/case only/)
  expect(() => parquetColumns({}, 's')).toThrow(/no column/)
})
