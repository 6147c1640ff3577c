import { describe, expect, test } from 'vitest'
import { type FileFormat, openFormat } from '../../../lib/adapters/s3/file-encoders.ts'
import { checkedPrefix, fileName, folderOf, isFileOf } from '../../../lib/adapters/s3/file-form.ts'
import { type ColumnSpecs, parquetColumns } from '../../../lib/adapters/shared/parquet-columns.ts'
import { parseCsv } from '../../support/s3-contract.ts'

const refused = expect.objectContaining({ code: 'ENCODE_FAILED' })
const columns: ColumnSpecs = {
  id: 'long',
  price: 'decimal(20,3)',
  at: 'timestamp',
  day: 'date',
  ok: 'boolean',
  score: 'double',
  raw: 'binary',
  doc: 'json',
  name: 'string',
}
const row = {
  id: 9007199254740993n,
  price: '-0.5',
  at: '1969-12-31T23:59:59.999999Z',
  day: '2026-11-30',
  ok: true,
  score: 0.1,
  raw: new Uint8Array([255]),
  doc: { a: [1, null] },
  name: 'a "quoted",\r\nline',
}

async function text(format: FileFormat, specs: ColumnSpecs | null, rows: readonly unknown[]): Promise<string> {
  const opened = await openFormat(format, specs === null ? null : parquetColumns(specs, 'test'))
  const encoder = opened.open()
  for (const one of rows) encoder.add(opened.encode(one))
  return Buffer.concat([encoder.take(), encoder.finish()]).toString()
}

describe('JSON lines', () => {
  test('of columns have one text a value, exact', async () => {
    expect(await text('json-lines', columns, [row, {}])).toBe(
      '{"id":9007199254740993,"price":"-0.500","at":"1969-12-31T23:59:59.999999Z","day":"2026-11-30","ok":true,' +
        '"score":0.1,"raw":"/w==","doc":{"a":[1,null]},"name":"a \\"quoted\\",\\r\\nline"}\n' +
        '{"id":null,"price":null,"at":null,"day":null,"ok":null,"score":null,"raw":null,"doc":null,"name":null}\n',
    )
  })

  test('without columns take any value: int64 exact, bytes as base64, missing left out, null kept', async () => {
    const value = { big: -9223372036854775808n, raw: Buffer.from([1]), none: null, missing: undefined, at: new Date(0) }
    expect(await text('json-lines', null, [value, 7, 'text'])).toBe(
      '{"big":-9223372036854775808,"raw":"AQ==","none":null,"at":"1970-01-01T00:00:00.000Z"}\n7\n"text"\n',
    )
  })

  test.each([[{ a: Number.NaN }], [{ a: new Map() }], [{ a: new Set() }], [undefined], [() => 1]])(
    'refuse what would arrive changed: %o',
    async (value) => {
      await expect(text('json-lines', null, [value])).rejects.toEqual(refused)
    },
  )
})

describe('CSV', () => {
  test('tells null from empty text, and keeps quotes, commas and line ends', async () => {
    const cells = ['', null, ' x ', 'a,b', 'say "hi"', 'two\r\nlines', 'plain']
    const csv = await text(
      'csv',
      { v: 'string', n: 'long' },
      cells.map((v, n) => ({ v, n })),
    )
    expect(csv.split('\r\n')[0]).toBe('v,n')
    expect(csv).toContain('"",0\r\n,1\r\n" x ",2\r\n"a,b",3\r\n"say ""hi""",4\r\n')
    expect(parseCsv(csv).slice(1)).toEqual(cells.map((v, n) => [v, `${n}`]))
  })

  test('has the same texts as JSON lines', async () => {
    const [, line] = parseCsv(await text('csv', columns, [row]))
    expect(line).toEqual([
      '9007199254740993',
      '-0.500',
      '1969-12-31T23:59:59.999999Z',
      '2026-11-30',
      'true',
      '0.1',
      '/w==',
      '{"a":[1,null]}',
      row.name,
    ])
  })

  test('refuses a row that is no object of columns', async () => {
    for (const one of [null, 7, [1]]) await expect(text('csv', columns, [one])).rejects.toEqual(refused)
  })
})

test('folders are those of Hive: by event time before 1970 too, or by values, escaped', () => {
  expect(folderOf(undefined)(1, 'k', 0)).toBe('')
  expect(folderOf('event-day')(1, 'k', -1)).toBe('day=1969-12-31/')
  expect(folderOf('event-hour')(1, 'k', 3_600_000)).toBe('day=1970-01-01/hour=01/')
  const byKey = folderOf<string, unknown>((_, key) => ({ 'cust/omer': key, n: null, big: 2n ** 60n }))
  expect(byKey(1, 'ü=/(', 0)).toBe('cust%2Fomer=%C3%BC%3D%2F%28/n=__HIVE_DEFAULT_PARTITION__/big=1152921504606846976/')
  expect(() => byKey(1, '', 0)).toThrow(refused)
  expect(() => byKey(1, 'x'.repeat(600), 0)).toThrow(refused)
  expect(() => folderOf('event-day')(1, 'k', Number.NaN)).toThrow(refused)
})

test('a file is known by its name: whose, and of which incarnation', () => {
  const parts = { sink: 'out', incarnation: 'abc', epoch: 7, lane: 2, id: '0123456789abcdef', number: 3 }
  const name = fileName(parts, 'jsonl')
  expect(name).toBe('out-000000000007-2-0123456789abcdef-3-abc.jsonl')
  expect(isFileOf(`a/day=1/${name}`, 'out', 'abc')).toBe(true)
  expect(isFileOf(name, 'out', 'abd')).toBe(false)
  expect(isFileOf(fileName({ ...parts, sink: 'out-000000000007' }, 'jsonl'), 'out', 'abc')).toBe(false)
  expect(isFileOf('somebody.jsonl', 'out', 'abc')).toBe(false)
})

test('a prefix is a folder of plain characters', () => {
  expect(['', 'a', 'a/b/'].map(checkedPrefix)).toEqual(['', 'a/', 'a/b/'])
  for (const prefix of ['/a', 'a//b', 'a/../b', 'ä', '_a']) {
    expect(() => checkedPrefix(prefix)).toThrow(expect.objectContaining({ code: 'PIPELINE_INVALID' }))
  }
})
