import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type ActionKind, entryBytes, parseEntry } from '../../../lib/adapters/delta/actions.ts'
import { firstHole, parseListing } from '../../../lib/adapters/delta/log-listing.ts'
import { laneAppId, markerOf, markerTxns } from '../../../lib/adapters/delta/marker-txns.ts'
import { plainText, statsJson } from '../../../lib/adapters/delta/stats.ts'
import { cellMaker, parquetColumns } from '../../../lib/adapters/shared/parquet-columns.ts'

const lane = { stage: 'test', pipeline: 'p', sink: 's', lane: 0 }
const hex = (digits: number) =>
  fc.array(fc.constantFrom(...'0123456789abcdef'), { minLength: digits, maxLength: digits }).map((all) => all.join(''))
const digitsOf = (version: number) => String(version).padStart(20, '0')

test('a marker comes back from its transactions, through the text of an entry', () => {
  fc.assert(
    fc.property(hex(32), fc.nat(), hex(64), (incarnation, epoch, hash) => {
      const marker = { incarnation, epoch, hash }
      const bytes = entryBytes(markerTxns(lane, marker).map((txn) => ({ txn })))
      const read = parseEntry(bytes, new Set<ActionKind>(['txn'])).flatMap((action) =>
        'txn' in action ? [[action.txn.appId, action.txn.version] as const] : [],
      )
      expect(markerOf(lane, new Map(read))).toEqual(marker)
    }),
  )
})

test('words of a marker are whole numbers for readers that know doubles only', () => {
  const marker = { incarnation: 'f'.repeat(32), epoch: 7, hash: 'f'.repeat(64) }
  for (const { version } of markerTxns(lane, marker)) expect(Number.isSafeInteger(Number(version))).toBe(true)
})

test('half a marker is refused, and a foreign incarnation that is no hex too', () => {
  expect(markerOf(lane, new Map())).toBeNull()
  expect(() => markerOf(lane, new Map([[laneAppId(lane), 5n]]))).toThrow(/is missing in the log/)
  expect(() => markerTxns(lane, { incarnation: 'x', epoch: 0, hash: '' })).toThrow(/not 32 hex digits/)
})

test('keeps transactions of others exact, beyond what a double holds', () => {
  const version = 9_223_372_036_854_775_807n
  const bytes = entryBytes([{ txn: { appId: 'other', version, lastUpdated: 5 } }, { commitInfo: { a: 1 } }])
  expect(parseEntry(bytes, new Set<ActionKind>(['txn']))).toEqual([
    { txn: { appId: 'other', version, lastUpdated: 5 } },
  ])
})

test('takes the newest checkpoint that is whole, and passes over foreign names', () => {
  const names = [
    ...[3, 4, 5, 6].map((version) => `${digitsOf(version)}.json`),
    `${digitsOf(3)}.checkpoint.parquet`,
    `${digitsOf(4)}.checkpoint.0000000001.0000000002.parquet`,
    `${digitsOf(4)}.checkpoint.0000000002.0000000002.parquet`,
    `${digitsOf(5)}.checkpoint.0000000001.0000000002.parquet`,
    `${digitsOf(6)}.crc`,
    `${digitsOf(3)}.${digitsOf(6)}.compacted.json`,
    '_last_checkpoint',
    '_commit_5b1a.json.tmp',
  ]
  const listing = parseListing(names)
  expect(listing).toMatchObject({ newest: 6, checkpoint: { version: 4, files: [names[5], names[6]] } })
  expect(firstHole(listing, 4)).toBeNull()
  expect(firstHole(listing, 1)).toBe(2)
})

test('statistics hold longs and decimals digit by digit, and no bound that could mislead', () => {
  const columns = parquetColumns(
    { l: 'long', d: 'decimal(38,2)', x: 'double', s: 'string', long: 'string', b: 'boolean', at: 'timestamp' },
    'test',
  )
  const rows = [
    { l: 9223372036854775807n, d: '-0.05', x: Number.NaN, s: '\u{1f600}', long: 'é'.repeat(40), b: true, at: -1n },
    { l: null, d: '12345678901234567890.10', x: 1, s: '\uffee', long: 'a', b: false, at: 1_500n },
  ]
  const cells = columns.map((column) => rows.map((row) => cellMaker(column)(row[column.name as keyof typeof row])))
  const text = statsJson(columns, cells, 2)
  expect(text).toContain('"l":9223372036854775807,"d":12345678901234567890.10')
  expect(JSON.parse(text)).toEqual({
    numRecords: 2,
    minValues: { l: 2 ** 63, d: -0.05, s: '\uffee', long: 'a', at: '1969-12-31T23:59:59.999999Z' },
    maxValues: { l: 2 ** 63, d: 12345678901234567000, s: '\u{1f600}', at: '1970-01-01T00:00:00.001500Z' },
    nullCount: { l: 1, d: 0, x: 0, s: 0, long: 0, b: 0, at: 0 },
  })
})

test('bounds of text enclose all of it in the order of its bytes', () => {
  const [column] = parquetColumns({ s: 'string' }, 'test')
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary', maxLength: 50 }), { minLength: 1 }), (values) => {
      const { minValues, maxValues } = JSON.parse(statsJson([column!], [values], values.length))
      for (const value of values) {
        expect(Buffer.compare(Buffer.from(minValues.s), Buffer.from(value))).toBeLessThanOrEqual(0)
        if (maxValues.s !== undefined)
          expect(Buffer.compare(Buffer.from(maxValues.s), Buffer.from(value))).toBeGreaterThanOrEqual(0)
      }
    }),
  )
})

test('values of partitions are said as days and moments that all readers know', () => {
  expect(plainText(-1, 'date')).toBe('1969-12-31')
  expect(plainText(-1n, 'timestamp')).toBe('1969-12-31T23:59:59.999999Z')
  expect(plainText(2n ** 62n, 'timestamp')).toBeUndefined()
  expect(plainText(-5n, 'decimal(9,2)')).toBe('-0.05')
})
