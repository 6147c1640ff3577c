import { describe, expect, test } from 'vitest'
import {
  compile,
  deadLetter,
  json,
  nullable,
  PawlError,
  type PipelineOptions,
  pipeline,
  type RejectedRecord,
  text,
  topic,
} from '../../lib/index.ts'
import { limits } from '../../lib/model/limits.ts'
import { batchOf, linesOf, runner } from './support.ts'

interface Order {
  readonly id: string
  readonly price: number
}

const dead = topic('dead', { value: json<RejectedRecord>() })
const source = topic('orders', { key: text(), value: json<Order>() })

const orders = (onError: PipelineOptions['onError']) =>
  compile(
    pipeline('orders', { onError })
      .from(source)
      .map('price', (order) => {
        if (order.price < 0) throw new RangeError(`price ${order.price}`)
        return order.price
      })
      .to('out', topic('prices', { key: text(), value: json<number>() })),
  )

const batch = batchOf(
  [
    { key: 'a', value: '{"price":1}', timestampMs: 10 },
    { key: 'b', value: '{"price":' },
    { key: 'c', value: '{"price":-5}', timestampMs: 30 },
    { key: 'd', value: null },
    { key: null, value: '{"price":2}' },
    { key: 'f', value: '{"price":3}', timestampMs: 60 },
  ],
  { partition: 3, baseOffset: 9007199254740993n },
)

function failureOf(run: () => unknown): PawlError {
  try {
    run()
  } catch (error) {
    return error as PawlError
  }
  throw new Error('nothing failed')
}

describe('under onError: fail', () => {
  const fail = (record: Parameters<typeof batchOf>[0][number]) =>
    failureOf(() =>
      runner(orders('fail')).epoch([
        { source: 'orders', batch: batchOf([record], { partition: 3, baseOffset: 9007199254740993n }) },
      ]),
    )
  const place = { source: 'orders', topic: 'orders', partition: 3, offset: '9007199254740993' }

  test('an operator that throws names its record, exactly past 2^53, and keeps the cause', () => {
    const error = fail({ key: 'c', value: '{"price":-5}' })
    expect(error).toMatchObject({ code: 'OPERATOR_FAILED', kind: 'Invalid' })
    expect(error.details).toEqual({ ...place, operator: 'price', error: 'RangeError: price -5' })
    expect(error.cause).toBeInstanceOf(RangeError)
    expect(error.message).toContain('price on record orders/3@9007199254740993: RangeError: price -5')
  })

  test('malformed JSON is a decode failure at the source', () => {
    const error = fail({ key: 'c', value: '{"price":' })
    expect(error.code).toBe('DECODE_FAILED')
    expect(error.details).toMatchObject({ ...place, operator: 'orders' })
  })

  test('a tombstone fails to decode unless the serde is nullable', () => {
    expect(fail({ key: 'c', value: null })).toMatchObject({ code: 'DECODE_FAILED' })
    const copy = compile(
      pipeline('p')
        .from(topic('orders', { value: nullable(text()) }))
        .to('out', topic('copy', { value: nullable(text()) })),
    )
    const { rows } = runner(copy).epoch([{ source: 'orders', batch: batchOf([{ value: null }, { value: '' }]) }])
    expect(rows.out.map(({ value }) => value)).toEqual([null, ''])
  })

  test('a record above the size limit is refused before it is decoded', () => {
    expect(fail({ key: 'c', value: 'x'.repeat(limits.recordBytesMax) })).toMatchObject({ code: 'RECORD_TOO_LARGE' })
  })

  test('a value that its sink cannot encode is charged to the sink', () => {
    const cyclic = compile(
      pipeline('p')
        .from(source)
        .map('cycle', (order) => {
          const cycle: Record<string, unknown> = { ...order }
          cycle.self = cycle
          return cycle
        })
        .to('out', topic('o', { key: text(), value: json() })),
    )
    const error = failureOf(() => runner(cyclic).epoch([{ source: 'orders', batch }]))
    expect(error.code).toBe('ENCODE_FAILED')
    expect(error.details).toMatchObject({ operator: 'out', offset: '9007199254740993' })
  })
})

test('a key is decoded only when somebody needs it', () => {
  const keyless = compile(
    pipeline('p')
      .from(source)
      .map((order) => order.price)
      .withKey((price) => `${price}`)
      .to('out', topic('o', { key: text(), value: json<number>() })),
  )
  const { counts } = runner(keyless).epoch([
    { source: 'orders', batch: batchOf([{ key: null, value: '{"price":1}' }]) },
  ])
  expect(counts).toMatchObject({ out: { out: 1 }, rejected: 0 })
})

test('a key that several need is decoded once', () => {
  let decoded = 0
  const counting = { ...text(), decode: () => `${decoded++}` }
  const source = pipeline('p').from(topic('orders', { key: counting, value: text() }))
  const sink = topic('o', { key: text(), value: text() })
  const { rows } = runner(compile(source.to('one', sink).to('two', sink))).epoch([
    { source: 'orders', batch: batchOf([{ key: 'k', value: 'v' }]) },
  ])
  expect([rows.one[0].key, rows.two[0].key, decoded]).toEqual(['0', '0', 1])
})

test('under onError: skip the others go on, and what was skipped is kept', () => {
  const { rows, rejected, counts } = runner(orders('skip')).epoch([{ source: 'orders', batch }])
  expect(rows.out.map(({ key, value }) => [key, value])).toEqual([
    ['a', 1],
    ['f', 3],
  ])
  expect(counts).toEqual({ in: 6, out: { out: 2 }, late: 0, rejected: 4 })
  expect(rejected.map(({ operator, offset, error }) => [operator, offset, error.name])).toEqual([
    ['orders', '9007199254740994', 'SyntaxError'],
    ['price', '9007199254740995', 'RangeError'],
    ['orders', '9007199254740996', 'TypeError'],
    ['orders', '9007199254740997', 'TypeError'],
  ])
  expect(rejected[1]).toEqual({
    ...{ source: 'orders', topic: 'orders', partition: 3, offset: '9007199254740995', timestampMs: 30 },
    operator: 'price',
    error: { name: 'RangeError', message: 'price -5' },
    key: Buffer.from('c').toString('base64'),
    value: Buffer.from('{"price":-5}').toString('base64'),
    cutBytes: 0,
  })
  expect(rejected[2].value).toBeNull()
  expect(rejected[3].key).toBeNull()
})

test('of a huge record and a long message only the beginning is kept, so that the dead letter itself fits', () => {
  const compiled = compile(
    pipeline('p', { onError: deadLetter('dead', dead) })
      .from(topic('orders', { value: text() }))
      .map('picky', (line) => {
        if (line !== '') throw new Error(line)
        return line
      })
      .to('out', topic('o', { value: text() })),
  )
  const value = 'x'.repeat(limits.rejectedBytesMax + 5)
  const { rows } = runner(compiled).epoch([{ source: 'orders', batch: batchOf([{ key: 'key', value }]) }])
  const row = rows.dead[0].value as RejectedRecord
  expect(row.cutBytes).toBe(8)
  expect(Buffer.from(row.value!, 'base64')).toHaveLength(limits.rejectedBytesMax - 3)
  expect(row.error.message).toHaveLength(limits.errorCharsMax + 1)
})

test('no more records are skipped in an epoch than its limit keeps', () => {
  const lines = Array.from({ length: limits.rejectedPerEpochMax + 1 }, () => 'no json')
  const error = failureOf(() => runner(orders('skip')).epoch([{ source: 'orders', batch: linesOf(lines) }]))
  expect(error).toMatchObject({ code: 'EPOCH_TOO_LARGE', kind: 'Retryable' })
})

test('case 68: under a dead-letter policy each bad record becomes a row with its reason', () => {
  const { rows, rejected, counts } = runner(orders(deadLetter('dead', dead))).epoch([{ source: 'orders', batch }])
  expect(rows.out).toHaveLength(2)
  expect(counts).toMatchObject({ out: { out: 2, dead: 4 }, rejected: 4 })
  expect(rejected).toEqual([])
  expect(rows.dead[1]).toMatchObject({ key: null, timestampMs: 30, value: { operator: 'price', partition: 3 } })
})

test('an element of a flatMap that is rejected takes none of its siblings along', () => {
  const compiled = compile(
    pipeline('p', { onError: 'skip' })
      .from(topic('lines', { value: text() }))
      .flatMap((line) => line.split(' '))
      .map('parse', (word) => JSON.parse(word) as number)
      .to('out', topic('o', { value: json<number>() })),
  )
  const { rows, rejected } = runner(compiled).epoch([{ source: 'lines', batch: linesOf(['1 x 3']) }])
  expect(rows.out.map(({ value }) => value)).toEqual([1, 3])
  expect(rejected).toHaveLength(1)
})

test('a generator that throws half-way emits nothing', () => {
  const compiled = compile(
    pipeline('p', { onError: 'skip' })
      .from(topic('lines', { value: text() }))
      .flatMap('gen', function* (line) {
        yield line
        throw new Error('half-way')
      })
      .to('out', topic('o', { value: text() })),
  )
  const { rows, rejected } = runner(compiled).epoch([{ source: 'lines', batch: linesOf(['a']) }])
  expect(rows.out).toEqual([])
  expect(rejected.map(({ operator }) => operator)).toEqual(['gen'])
})

test.each([
  ['map', (value: string) => Promise.resolve(value)],
  ['filter', () => Promise.resolve(true)],
  ['flatMap', () => Promise.resolve([])],
  ['withKey', () => Promise.resolve('k')],
] as const)('a %s that returns a promise fails and is named', (method, fn) => {
  const stream = pipeline('p').from(topic('lines', { value: text() })) as unknown as Record<
    string,
    (id: string, fn: unknown) => { to: (id: string, sink: unknown) => unknown }
  >
  const compiled = compile(stream[method]('later', fn).to('out', topic('o', { value: json() })))
  const error = failureOf(() => runner(compiled).epoch([{ source: 'lines', batch: linesOf(['a']) }]))
  expect(error).toMatchObject({ code: 'OPERATOR_FAILED', details: { operator: 'later' } })
  expect(error.message).toContain('synchronous')
})

test.each([[Number.NaN], [undefined], [null], [{}]])('a key that is %s is refused', (key) => {
  const compiled = compile(
    pipeline('p')
      .from(topic('lines', { value: text() }))
      .keyBy('key', () => key as unknown as string)
      .count('c')
      .to('out', topic('o', { key: text(), value: json<number>() })),
  )
  const error = failureOf(() => runner(compiled).epoch([{ source: 'lines', batch: linesOf(['a']) }]))
  expect(error).toMatchObject({ code: 'OPERATOR_FAILED', details: { operator: 'key' } })
})

test('a timestamp that is no number rejects the record and moves no watermark', () => {
  const compiled = compile(
    pipeline('p', { onError: 'skip' })
      .from(topic('lines', { value: text() }), { timestamp: (line) => Number(line) })
      .to('out', topic('o', { value: text() })),
  )
  const { rejected, eventTimes } = runner(compiled).epoch([{ source: 'lines', batch: linesOf(['5', 'x']) }])
  expect(rejected.map(({ operator, offset }) => [operator, offset])).toEqual([['lines', '1']])
  expect(eventTimes).toEqual([{ source: 'lines', partition: 0, maxTimestampMs: 5 }])
})

test('what is not the fault of a row passes through the sink, and through the dead-letter sink', () => {
  const full = new PawlError('DISK_FULL', 'no space')
  const compiled = orders(deadLetter('dead', dead))
  const epoch = (failing: Record<string, Error>) => () =>
    runner(compiled).epoch([{ source: 'orders', batch }], { failing })
  expect(epoch({ out: full })).toThrow(full)
  expect(epoch({ dead: full })).toThrow(full)
  expect(epoch({ dead: new Error('no') })).toThrow(
    expect.objectContaining({ code: 'ENCODE_FAILED', details: expect.objectContaining({ operator: 'dead' }) }),
  )
})

test('a row that is too large for its sink is rejected as such', () => {
  const failing = { out: new PawlError('RECORD_TOO_LARGE', '9 bytes') }
  expect(() => runner(orders('fail')).epoch([{ source: 'orders', batch }], { failing })).toThrow(
    expect.objectContaining({ code: 'RECORD_TOO_LARGE', details: expect.objectContaining({ operator: 'out' }) }),
  )
})

test('a convicted record is rejected instead of processed', () => {
  const compiled = orders('skip')
  const convicted = [
    { source: 'orders', partition: 3, offset: '9007199254740993' },
    { source: 'others', partition: 3, offset: '9007199254740998' },
    { source: 'orders', partition: 2, offset: '9007199254740998' },
  ]
  const { rows, rejected } = runner(compiled).epoch([{ source: 'orders', batch }], { convicted })
  expect(rows.out.map(({ key }) => key)).toEqual(['f'])
  expect(rejected[0]).toMatchObject({ offset: '9007199254740993', operator: 'orders', error: { name: 'Convicted' } })
})
