import fc from 'fast-check'
import { expect, test } from 'vitest'
import { crc32c } from '../../lib/model/crc32c.ts'
import { jsonFields } from '../../lib/model/json-fields.ts'
import {
  batchLayout,
  patchProducer,
  RecordBatchEncoder,
  setBaseOffset,
  type WritingSerde,
} from '../../lib/model/record-batch.ts'
import { decodeBatches } from '../../lib/model/record-decode.ts'
import type { Header, LogRecord } from '../../lib/model/records.ts'
import { encoded, rowsOf, wire } from './record-batches.ts'

const int64 = fc
  .oneof(fc.integer(), fc.maxSafeInteger(), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1025n }))
  .map((n) => Number(n) + 0)
const content = fc.oneof(
  fc.constant(null),
  fc.string({ unit: 'binary', maxLength: 80 }),
  fc.string({ maxLength: 200 }),
  fc.uint8Array({ maxLength: 200 }),
)
const headers = fc.array(
  fc.tuple(fc.string({ unit: 'binary' }), fc.option(fc.uint8Array())).map((h): Header => h),
  { maxLength: 4 },
)
const records = fc.array(fc.record<LogRecord>({ timestampMs: int64, key: content, value: content, headers }), {
  minLength: 1,
  maxLength: 40,
})

test('brings back any records: keys, values, timestamps, headers', () => {
  fc.assert(
    fc.property(records, fc.bigInt({ min: 0n, max: 2n ** 62n }), (all, baseOffset) => {
      const bytes = encoded(all, { baseOffset })
      const rows = rowsOf(decodeBatches(bytes, { partition: 3, start: 0n, end: 2n ** 63n - 1n }))
      expect(rows).toEqual(all.map((record, i) => wire(record, baseOffset + BigInt(i))))
    }),
    { numRuns: 300 },
  )
})

test('writes values in place to the same bytes, and leaves the batch as it was when it cannot', () => {
  const serde = jsonFields({ n: 'number', t: 'string' })
  const row = fc.record({
    timestampMs: fc.oneof(fc.integer({ min: 0 }), fc.constantFrom(0, 2 ** 62, -5)),
    key: fc.oneof(fc.constant(null), fc.string({ unit: 'binary', maxLength: 40 }), fc.uint8Array({ maxLength: 40 })),
    n: fc.double({ noNaN: true }),
    t: fc.oneof(
      fc.string({ maxLength: 20 }),
      fc.integer({ min: 0, max: 9000 }).map((length) => 'x'.repeat(length)),
    ),
  })
  fc.assert(
    fc.property(fc.array(row, { minLength: 1, maxLength: 30 }), (rows) => {
      const written = new RecordBatchEncoder()
      const wanted = new RecordBatchEncoder()
      for (const { timestampMs, key, n, t } of rows) {
        const before = written.bytes
        if (!written.addWritten(timestampMs, key, { n, t }, serde as WritingSerde, 2 ** 30)) {
          expect(written.bytes).toBe(before)
          written.add(timestampMs, key, serde.encode({ n, t }))
        }
        wanted.add(timestampMs, key, JSON.stringify({ n, t }))
      }
      expect(written.seal()).toEqual(wanted.seal())
    }),
    { numRuns: 500 },
  )
})

test('writes no value in place that would make the batch, or the record, too large', () => {
  const serde = jsonFields({ t: 'string' }) as unknown as WritingSerde
  const encoder = new RecordBatchEncoder({ recordBytesMax: 30 })
  expect(encoder.addWritten(1, 'k', { t: 'x'.repeat(20) }, serde, 1000)).toBe(true)
  expect(encoder.addWritten(1, 'k', { t: 'x'.repeat(21) }, serde, 1000)).toBe(false)
  const { bytes } = encoder
  for (let bytesMax = bytes; bytesMax < bytes + 40; bytesMax++) {
    const one = new RecordBatchEncoder()
    one.addWritten(1, 'k', { t: 'x'.repeat(20) }, serde, 1000)
    const added = one.addWritten(1, 'k', { t: 'x'.repeat(20) }, serde, bytesMax)
    expect(one.bytes).toBeLessThanOrEqual(added ? bytesMax : bytes)
  }
  expect(encoder.addWritten(1, 'k', { t: 'x' }, serde, bytes + 30)).toBe(true)
})

test('case 39: a null value stays distinct from an empty one, as do keys', () => {
  const all: LogRecord[] = [
    { timestampMs: 0, key: null, value: '' },
    { timestampMs: 0, key: '', value: null },
  ]
  const rows = rowsOf(decodeBatches(encoded(all), { partition: 0, start: 0n, end: 9n }))
  expect(rows.map(({ key, value }) => [key, value])).toEqual([
    [null, ''],
    ['', null],
  ])
})

test('writes text beyond ASCII, and halves of surrogate pairs as U+FFFD', () => {
  const texts = ['ä'.repeat(63), 'ä'.repeat(64), '€'.repeat(4000), '😀', '\ud800', `${'a'.repeat(30)}\udc00`]
  const all = texts.map((value) => ({ timestampMs: 1, key: value, value }))
  const rows = rowsOf(decodeBatches(encoded(all), { partition: 0, start: 0n, end: 99n }))
  for (const [i, value] of texts.entries())
    expect(rows[i]).toEqual(wire({ timestampMs: 1, key: value, value }, BigInt(i)))
})

test('leaves the batch as it was when a record is refused', () => {
  const encoder = new RecordBatchEncoder({ recordBytesMax: 100 })
  encoder.add(5, 'k', 'v')
  const before = encoder.seal()
  const large = { code: 'RECORD_TOO_LARGE' }
  expect(() => encoder.add(9, null, 'x'.repeat(100))).toThrow(expect.objectContaining(large))
  expect(() => encoder.add(9, 'k', 'v', [['h', new Uint8Array(101)]])).toThrow(expect.objectContaining(large))
  const failed = { code: 'ENCODE_FAILED' }
  expect(() => encoder.add(1.5, null, null)).toThrow(expect.objectContaining(failed))
  expect(() => encoder.add(Number.NaN, null, null)).toThrow(expect.objectContaining(failed))
  expect(() => encoder.add(2 ** 63, null, null)).toThrow(expect.objectContaining(failed))
  expect(() => encoder.add(9, null, 7 as unknown as string)).toThrow(expect.objectContaining(failed))
  expect(() => encoder.add(9, null, null, [['h', 'text' as unknown as Uint8Array]])).toThrow(
    expect.objectContaining(failed),
  )
  expect(encoder.count).toBe(1)
  expect(encoder.bytes).toBe(before.length)
  expect(encoder.seal()).toEqual(before)
})

test('starts over after a reset', () => {
  const encoder = new RecordBatchEncoder()
  encoder.add(-5, 'old', 'old')
  encoder.reset()
  encoder.add(7, 'new', null)
  expect(encoder.seal()).toEqual(encoded([{ timestampMs: 7, key: 'new', value: null }]))
})

test('names the producer in a sealed batch and keeps its checksum right', () => {
  fc.assert(
    fc.property(
      records,
      fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
      fc.integer({ min: 0, max: 32767 }),
      fc.nat(),
      (all, id, epoch, sequence) => {
        const batch = encoded(all, { transactional: true })
        patchProducer(batch, 1n, 2, 3)
        patchProducer(batch, id, epoch, sequence)
        setBaseOffset(batch, 77n)
        expect(batch.readUInt32BE(batchLayout.crc)).toBe(crc32c(batch, batchLayout.attributes))
        expect(batch.readBigInt64BE(batchLayout.producerId)).toBe(id)
        expect(batch.readInt16BE(batchLayout.producerEpoch)).toBe(epoch)
        expect(batch.readInt32BE(batchLayout.baseSequence)).toBe(sequence)
        expect(batch.readBigInt64BE(batchLayout.baseOffset)).toBe(77n)
        expect(batch.readInt16BE(batchLayout.attributes)).toBe(0x10)
      },
    ),
  )
})

test('does not sign damage that a batch took before its producer was named', () => {
  const batch = encoded([{ timestampMs: 0, key: 'k', value: 'value' }])
  batch[batch.length - 3] ^= 1
  patchProducer(batch, 4n, 0, 0)
  expect(batch.readUInt32BE(batchLayout.crc)).not.toBe(crc32c(batch, batchLayout.attributes))
})
