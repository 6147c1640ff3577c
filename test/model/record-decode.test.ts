import { gunzipSync, gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { batchLayout, patchProducer, RecordBatchEncoder } from '../../lib/model/record-batch.ts'
import { type AbortedTransaction, decodeBatches, nextOffset } from '../../lib/model/record-decode.ts'
import type { LogRecord } from '../../lib/model/records.ts'
import { changed, compressed, encoded, type Row, rowsOf } from './record-batches.ts'

const all = { partition: 0, start: 0n, end: 2n ** 63n - 1n }
const plain = (value: string | null): LogRecord => ({ timestampMs: 0, key: null, value })
const batch = (baseOffset: bigint, ...values: string[]) => encoded(values.map(plain), { baseOffset })
const values = (rows: readonly Row[]) => rows.map(({ value }) => value)
const code = (name: string) => expect.objectContaining({ code: name })

function transactional(baseOffset: bigint, producerId: bigint, ...rows: LogRecord[]): Buffer {
  const bytes = encoded(rows, { baseOffset, transactional: true })
  patchProducer(bytes, producerId, 0, 0)
  return bytes
}

function marker(baseOffset: bigint, producerId: bigint, type: 'abort' | 'commit'): Buffer {
  const key = Uint8Array.of(0, 0, 0, type === 'abort' ? 0 : 1)
  const bytes = transactional(baseOffset, producerId, { timestampMs: 0, key, value: new Uint8Array(6) })
  return changed(bytes, (b) => b.writeInt16BE(0x30, batchLayout.attributes))
}

test('delivers the records of the range and no others, exact beyond 2^53', () => {
  const base = 9007199254740993n
  const bytes = Buffer.concat([batch(base, 'a', 'b', 'c'), batch(base + 3n, 'd', 'e')])
  const { batches, next } = decodeBatches(bytes, { partition: 0, start: base + 1n, end: base + 4n })
  expect(rowsOf({ batches }).map(({ offset, value }) => [offset, value])).toEqual([
    [9007199254740994n, 'b'],
    [9007199254740995n, 'c'],
    [9007199254740996n, 'd'],
  ])
  expect(next).toBe(9007199254740998n)
})

test('case 38: offset 9007199254740993 is not rounded', () => {
  const [row] = rowsOf(decodeBatches(batch(9007199254740993n, 'x'), all))
  expect(row.offset).toBe(9007199254740993n)
  expect(nextOffset(batch(9007199254740993n, 'x'))).toBe(9007199254740994n)
})

test('any range of any split into batches holds exactly its records', () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 8 })
  fc.assert(
    fc.property(sizes, fc.nat(9), fc.nat(50), fc.nat(50), (counts, gap, from, span) => {
      let offset = 0n
      const expected: bigint[] = []
      const parts = counts.map((count) => {
        const bytes = encoded(
          Array.from({ length: count }, () => plain('v')),
          { baseOffset: offset },
        )
        for (let i = 0; i < count; i++) expected.push(offset + BigInt(i))
        offset += BigInt(count + gap)
        return gap % 2 === 1 ? compressed(bytes, 1, gzipSync) : bytes
      })
      const range = { partition: 0, start: BigInt(from), end: BigInt(from + span) }
      const rows = rowsOf(decodeBatches(Buffer.concat(parts), { ...range, decompress: (_, b) => gunzipSync(b) }))
      expect(rows.map((row) => row.offset)).toEqual(expected.filter((o) => o >= range.start && o < range.end))
    }),
  )
})

test('leaves a partial batch at the end for the next fetch', () => {
  const whole = batch(5n, 'a')
  const bytes = Buffer.concat([whole, batch(6n, 'b', 'c')])
  for (let length = 0; length < bytes.length; length++) {
    const decoded = decodeBatches(bytes.subarray(0, length), { ...all, start: 2n })
    expect(values(rowsOf(decoded))).toEqual(length < whole.length ? [] : ['a'])
    expect(decoded.next).toBe(length < whole.length ? 2n : 6n)
  }
})

test('refuses every changed bit of what the checksum covers, and a wrong length', () => {
  const bytes = encoded([
    { timestampMs: 3, key: 'key', value: 'value', headers: [['h', Uint8Array.of(1)]] },
    { timestampMs: 9, key: null, value: '' },
  ])
  // As plain numbers: the compiler would take the positions for constants.
  const layout: Readonly<Record<string, number>> = batchLayout
  for (let position: number = batchLayout.length; position < bytes.length; position++) {
    if (position >= layout.leaderEpoch && position < layout.magic) continue
    for (let bit = 0; bit < 8; bit++) {
      const damaged = Buffer.from(bytes)
      damaged[position] ^= 1 << bit
      const read = () => rowsOf(decodeBatches(damaged, { ...all, partition: 4, topic: 'lines' }))
      if (position === layout.magic) expect(read).toThrow(code('BATCH_FORMAT_UNKNOWN'))
      else if (position >= layout.crc) expect(read).toThrow(/BATCH_DAMAGED.*lines\/4 at offset 0/)
      else expect(rowsUnlessDamaged(read)).toEqual([])
    }
  }
})

/** A longer length looks like a partial batch, a shorter one breaks the checksum. */
function rowsUnlessDamaged(read: () => Row[]): Row[] {
  try {
    return read()
  } catch (error) {
    expect(error).toEqual(code('BATCH_DAMAGED'))
    return []
  }
}

test('without checksums, damaged bytes end in rows or a refusal, never in anything else', () => {
  const bytes = encoded(
    Array.from({ length: 5 }, (_, i) => ({ ...plain('value'), key: `k${i}`, headers: [['h', null]] })),
  )
  fc.assert(
    fc.property(fc.integer({ min: batchLayout.attributes, max: bytes.length - 1 }), fc.nat(255), (position, byte) => {
      const damaged = Buffer.from(bytes)
      damaged[position] = byte
      damaged[batchLayout.attributes + 1] &= 0x20
      for (const row of rowsUnlessDamaged(() => rowsOf(decodeBatches(damaged, { ...all, verify: false }))))
        expect(row.offset < 5n || position === batchLayout.baseOffset).toBe(true)
    }),
    { numRuns: 500 },
  )
})

test('refuses batches whose offsets go back', () => {
  const bytes = Buffer.concat([batch(5n, 'a', 'b'), batch(6n, 'c')])
  expect(() => rowsOf(decodeBatches(bytes, all))).toThrow(code('BATCH_DAMAGED'))
})

test('case 29: control batches and aborted records deliver nothing, and the range still ends', () => {
  const bytes = Buffer.concat([transactional(0n, 7n, plain('x'), plain('y')), marker(2n, 7n, 'abort')])
  const decoded = decodeBatches(bytes, { ...all, aborted: [{ producerId: 7n, firstOffset: 0n }] })
  expect(rowsOf(decoded)).toEqual([])
  expect(decoded.next).toBe(3n)
})

test('hides exactly the aborted ones of transactions that overlap', () => {
  const bytes = Buffer.concat([
    transactional(0n, 1n, plain('a1')),
    transactional(1n, 2n, plain('b1')),
    batch(2n, 'none'),
    transactional(3n, 1n, plain('a2')),
    marker(4n, 1n, 'abort'),
    transactional(5n, 2n, plain('b2')),
    transactional(6n, 1n, plain('a3')),
    marker(7n, 2n, 'commit'),
    marker(8n, 1n, 'commit'),
    transactional(9n, 2n, plain('b3')),
    marker(10n, 2n, 'abort'),
  ])
  const aborted: AbortedTransaction[] = [
    { producerId: 2n, firstOffset: 9n },
    { producerId: 1n, firstOffset: 0n },
  ]
  expect(values(rowsOf(decodeBatches(bytes, { ...all, aborted })))).toEqual(['b1', 'none', 'b2', 'a3'])
  expect(values(rowsOf(decodeBatches(bytes, all)))).toEqual(['a1', 'b1', 'none', 'a2', 'b2', 'a3', 'b3'])
})

test('takes a user key of zero bytes for a key, not for an abort marker', () => {
  const zeros = { timestampMs: 0, key: new Uint8Array(8), value: 'user' }
  const bytes = Buffer.concat([
    transactional(0n, 1n, plain('a'), zeros),
    transactional(2n, 1n, zeros, plain('b')),
    marker(4n, 1n, 'abort'),
  ])
  expect(rowsOf(decodeBatches(bytes, { ...all, aborted: [{ producerId: 1n, firstOffset: 0n }] }))).toEqual([])
  expect(values(rowsOf(decodeBatches(encoded([zeros]), all)))).toEqual(['user'])
})

test('keeps a producer hidden over control records of an unknown type', () => {
  const strange = changed(marker(1n, 1n, 'commit'), (b) => b.writeInt16BE(9, b.indexOf(Buffer.of(0, 0, 0, 1), 61) + 2))
  const bytes = Buffer.concat([
    transactional(0n, 1n, plain('a')),
    strange,
    transactional(2n, 1n, plain('b')),
    marker(3n, 1n, 'abort'),
  ])
  expect(rowsOf(decodeBatches(bytes, { ...all, aborted: [{ producerId: 1n, firstOffset: 0n }] }))).toEqual([])
})

test('gives every record the time of the broker when the broker sets it', () => {
  const bytes = changed(
    encoded([
      { ...plain('a'), timestampMs: 5 },
      { ...plain('b'), timestampMs: 6 },
    ]),
    (b) => {
      b.writeInt16BE(0x08, batchLayout.attributes)
      b.writeBigInt64BE(1234n, batchLayout.maxTimestamp)
    },
  )
  expect(rowsOf(decodeBatches(bytes, all)).map((row) => row.timestampMs)).toEqual([1234, 1234])
})

test('reads compressed batches between plain ones, in order', () => {
  const bytes = Buffer.concat([
    batch(0n, 'a'),
    compressed(batch(1n, 'b', 'c'), 1, gzipSync),
    batch(3n, 'd'),
    batch(4n, 'e'),
  ])
  const decoded = decodeBatches(bytes, { ...all, decompress: (_, b) => gunzipSync(b) })
  expect(values(rowsOf(decoded))).toEqual(['a', 'b', 'c', 'd', 'e'])
})

test('names codec, partition and offset when it cannot expand a batch', () => {
  const zstd = compressed(batch(8n, 'b'), 4, (b) => b)
  expect(() => rowsOf(decodeBatches(zstd, all))).toThrow(/CODEC_MISSING.*zstd for partition 0 at offset 8/)
  const unknown = compressed(batch(8n, 'b'), 5, (b) => b)
  expect(() => rowsOf(decodeBatches(unknown, all))).toThrow(/CODEC_UNKNOWN.*codec 5 of partition 0 at offset 8/)
  const broken = compressed(batch(8n, 'b'), 1, (b) => b)
  expect(() => rowsOf(decodeBatches(broken, { ...all, decompress: (_, b) => gunzipSync(b) }))).toThrow(
    /BATCH_DAMAGED.*offset 8/,
  )
})

test('hands over many small batches as one, large ones by themselves, and none too far apart', () => {
  const small = Array.from({ length: 5000 }, (_, i) => batch(BigInt(i), 'v'))
  const counts = [...decodeBatches(Buffer.concat(small), all).batches].map(({ count }) => count)
  expect(counts).toEqual([4096, 904])
  const apart = Buffer.concat([batch(0n, 'a'), batch(2n ** 31n, 'b'), batch(2n ** 40n, 'c')])
  expect(rowsOf(decodeBatches(apart, all)).map(({ offset }) => offset)).toEqual([0n, 2n ** 31n, 2n ** 40n])
  const encoder = new RecordBatchEncoder()
  for (let i = 0; i < 20_000; i++) encoder.add(i, `${i}`, null)
  const rows = rowsOf(decodeBatches(encoder.seal(), all))
  expect(rows.every(({ key, timestampMs }, i) => key === `${i}` && timestampMs === i)).toBe(true)
  expect(rows.length).toBe(20_000)
})
