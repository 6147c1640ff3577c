import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { memoryLog } from '../../../lib/adapters/memory/log.ts'
import { headersOf } from '../../../lib/adapters/shared/headers.ts'
import { laneOf } from '../../../lib/adapters/shared/lanes.ts'
import { encodeKey, encodeValue } from '../../../lib/adapters/shared/row-encoding.ts'
import { partitionOf } from '../../../lib/model/murmur2.ts'
import type { Header } from '../../../lib/model/records.ts'
import { json, type Serde, text } from '../../../lib/model/serde.ts'

const as = <T>(serde: Serde<T>) => serde as Serde<unknown>

describe('the lane of a row', () => {
  test('is the same for text and for its bytes, and that of the Java partitioner', () => {
    const property = fc.property(
      fc.string({ unit: 'binary', maxLength: 400 }),
      fc.integer({ min: 1, max: 40 }),
      (key, lanes) => {
        const bytes = Buffer.from(key)
        expect(laneOf(key, 7, lanes)).toBe(partitionOf(bytes, lanes))
        expect(laneOf(bytes, 3, lanes)).toBe(partitionOf(bytes, lanes))
      },
    )
    fc.assert(property)
  })

  test('follows the partition when there is no key, but not when the key is empty', () => {
    expect([0, 1, 2, 3].map((partition) => laneOf(null, partition, 3))).toEqual([0, 1, 2, 0])
    expect(new Set([0, 1, 2].map((partition) => laneOf('', partition, 3))).size).toBe(1)
  })
})

describe('the encoding of a row', () => {
  test('never makes the text "null" of a missing key', () => {
    expect(encodeKey(as(json()), null)).toBeNull()
    expect(encodeKey(as(json()), undefined)).toBeNull()
    expect(encodeKey(as(json()), 'k')).toBe('"k"')
  })

  test('refuses a value that encodes to nothing', () => {
    const careless = { ...json(), name: 'careless', encode: (value: unknown) => JSON.stringify(value) }
    expect(() => encodeValue(as(careless), undefined)).toThrow('ENCODE_FAILED')
    expect(() => encodeValue(as(json()), undefined)).toThrow()
    expect(encodeValue(as(text()), null)).toBeNull()
  })
})

test('headers come back as they were written', async () => {
  const name = fc.string({ unit: 'grapheme', maxLength: 200 })
  const header = fc.tuple(name, fc.option(fc.uint8Array({ maxLength: 300 })))
  const property = fc.asyncProperty(fc.array(header, { maxLength: 80 }), async (made) => {
    const headers = made.map(([of, value]): Header => [of, value === null ? null : Buffer.from(value)])
    const log = memoryLog({ topic: 't', partitions: 1 })
    await log.append(0, [{ key: null, value: 'v', timestampMs: 0, headers }])
    for await (const batch of log.read({ partition: 0, start: 0n, end: 1n }))
      expect(headersOf(batch, 0)).toEqual(headers)
  })
  await fc.assert(property, { numRuns: 50 })
})

test('a memory log overwrites a batch as soon as the next is asked for', async () => {
  const log = memoryLog({ topic: 't', partitions: 1, batchRecordsMax: 1 })
  await log.append(
    0,
    [1, 2].map((n) => ({ key: null, value: `v${n}`, timestampMs: n })),
  )
  const batches = log.read({ partition: 0, start: 0n, end: 2n })[Symbol.asyncIterator]()
  const { value: first } = await batches.next()
  expect(first.bytes.toString()).toBe('v1')
  await batches.next()
  expect(first.bytes.toString()).not.toBe('v1')
})
