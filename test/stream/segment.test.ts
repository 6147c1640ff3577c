import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compile, json, pipeline, text, topic } from '../../lib/index.ts'
import { text as textSerde } from '../../lib/model/serde.ts'
import { type Origin, TaskContext } from '../../lib/stream/context.ts'
import { readSegment, SegmentWriter } from '../../lib/stream/segment.ts'
import { batchOf, linesOf, runner } from './support.ts'

const origins: readonly Origin[] = [0, 1].map((index) => ({
  ...{ index, source: `s${index}`, topic: `t${index}`, key: textSerde() },
}))

interface Written {
  readonly node: number
  readonly key: string | number
  readonly value: unknown
  readonly timestampMs: number
  /** Null: emitted at the end of an epoch. */
  readonly source: number | null
  readonly partition: number
  readonly offset: bigint
}

function written(records: readonly Written[]): Buffer {
  const writer = new SegmentWriter()
  const context = new TaskContext(0)
  for (const { node, key, value, timestampMs, source, partition, offset } of records) {
    context.leaveRecord()
    context.key = key
    context.timestampMs = timestampMs
    if (source !== null) {
      context.origin = origins[source]
      context.partition = partition
      context.baseOffset = offset - (offset % 3n)
      context.offsetDelta = Number(offset % 3n)
    }
    writer.add(context, node, value)
  }
  return Buffer.concat(writer.take() ?? [])
}

function read(segment: Buffer): Written[] {
  const context = new TaskContext(0)
  const records: Written[] = []
  readSegment(segment, context, origins, (node, value) => {
    const { key, timestampMs, origin, partition, offset } = context
    const source = origin === null ? null : origin.index
    records.push({ node, key: key as string | number, value, timestampMs, source, partition, offset })
  })
  return records
}

const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ minLength: 20, maxLength: 60 }),
  fc.constantFrom('\ud800', '日本', ''),
)
const plain = fc.oneof(anyText, fc.double(), fc.boolean(), fc.constantFrom(null, undefined), fc.jsonValue())
const special = fc.oneof(
  fc.uint8Array(),
  fc.bigInt(),
  fc.date(),
  fc.record({ at: fc.date({ noInvalidDate: true }), blob: fc.uint8Array(), missing: fc.constant(undefined) }),
  fc.array(anyText).map((items) => new Set(items)),
)
const record: fc.Arbitrary<Written> = fc
  .record({
    node: fc.nat(300),
    key: fc.oneof(anyText, fc.double({ noNaN: true })),
    value: fc.oneof(plain, special),
    timestampMs: fc.oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true })),
    source: fc.constantFrom(0, 1, null),
    partition: fc.oneof(fc.nat(1), fc.nat(70_000)),
    offset: fc.oneof(fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }), fc.bigInt({ min: 0n, max: 5n })),
  })
  .map((one) => (one.source === null ? { ...one, partition: -1, offset: -1n } : { ...one }))

describe('a shuffle segment', () => {
  test('gives back every key, value, time and coordinate', () => {
    fc.assert(
      fc.property(fc.array(record, { minLength: 1, maxLength: 20 }), (records) => {
        expect(read(written(records))).toStrictEqual(records)
      }),
    )
  })

  test('keeps a key that is also the value once', () => {
    const one = { node: 0, key: 'word', value: 'word', timestampMs: 0, source: 0, partition: 0, offset: 0n }
    expect(read(written([one]))).toEqual([one])
    expect(written([one, one]).length).toBeLessThan(written([one, { ...one, value: 'wor' }]).length)
  })

  test('refuses what it cannot keep, and keeps nothing of it', () => {
    const writer = new SegmentWriter()
    const context = new TaskContext(0)
    context.key = 'k'
    writer.add(context, 0, 'before')
    context.timestampMs = 7
    expect(() => writer.add(context, 1, { call: () => 1 })).toThrow('a function')
    writer.add(context, 1, 'after')
    expect(read(Buffer.concat(writer.take()!))).toMatchObject([
      { node: 0, value: 'before', timestampMs: 0 },
      { node: 1, value: 'after', timestampMs: 7 },
    ])
    expect(writer.take()).toBeNull()
  })

  test('is refused when a byte, the length or the version differs', () => {
    const good = written([{ node: 0, key: 'k', value: 'v', timestampMs: 0, source: 0, partition: 0, offset: 0n }])
    const damaged = expect.objectContaining({ code: 'SHUFFLE_DAMAGED', kind: 'Retryable' })
    for (let at = 9; at < good.length; at++) {
      const bad = Buffer.from(good)
      bad[at] ^= 1
      expect(() => read(bad), `byte ${at}`).toThrow(damaged)
    }
    expect(() => read(good.subarray(0, -1))).toThrow(damaged)
    expect(() => read(Buffer.concat([good, good]))).toThrow(damaged)
    expect(() => read(Buffer.from('PWSG'))).toThrow(damaged)
    expect(() => read(Buffer.concat([Buffer.from('PWSG\x02'), good.subarray(5)]))).toThrow(/version 2/)
    expect(() => read(Buffer.alloc(20))).toThrow(/PWSG/)
  })
})

test('offsets may go back', () => {
  const one = { node: 0, key: 'k', value: 'v', timestampMs: 0, source: 0, partition: 0 }
  const records = [5n, 3n, 4n].map((offset) => ({ ...one, offset }))
  expect(read(written(records))).toEqual(records)
})

test('offsets stay right when a log reuses the object of its last batch', () => {
  const writer = new SegmentWriter()
  const context = new TaskContext(0)
  const batch = { ...linesOf(['a']), baseOffset: 100n }
  context.origin = origins[0]
  context.partition = 0
  for (const baseOffset of [100n, 200n]) {
    context.batch = Object.assign(batch, { baseOffset })
    context.batches++
    context.key = 'k'
    writer.add(context, 0, 'v')
  }
  expect(read(Buffer.concat(writer.take()!)).map(({ offset }) => offset)).toEqual([100n, 200n])
})

test('an error behind a shuffle still names the record of its source', () => {
  const compiled = compile(
    pipeline('p')
      .from(topic('lines', { value: text() }))
      .keyBy((line) => line[0])
      .reduce('joined', (all, line) => {
        if (line === 'a-bad') throw new Error('bad line')
        return all + line
      })
      .to('out', topic('out', { key: text(), value: text() })),
  )
  const batch = linesOf(['a1', 'b1', 'a2', 'a-bad'], { partition: 4, baseOffset: 9007199254740993n })
  expect(() => runner(compiled).epoch([{ source: 'lines', batch }], { unfused: true })).toThrow(
    expect.objectContaining({
      code: 'OPERATOR_FAILED',
      details: {
        ...{ source: 'lines', topic: 'lines', partition: 4, offset: '9007199254740996' },
        ...{ operator: 'joined', error: 'Error: bad line' },
      },
    }),
  )
})

test('a value that no segment can hold is charged to the keyBy before it', () => {
  const compiled = compile(
    pipeline('p', { onError: 'skip' })
      .from(topic('lines', { value: json<{ n: number }>() }))
      .map((value) => ({ ...value, call: () => value.n }))
      .keyBy('key', () => 'k')
      .count('c')
      .to('out', topic('out', { key: text(), value: json<number>() })),
  )
  const batch = batchOf([{ value: '{"n":1}' }])
  const { rejected } = runner(compiled).epoch([{ source: 'lines', batch }], { unfused: true })
  expect(rejected).toMatchObject([{ operator: 'key', offset: '0' }])
})
