import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compile, json, type PipelineOptions, pipeline, text, topic } from '../../lib/index.ts'
import type { OperatorState } from '../../lib/state/operator-state.ts'
import { batchOf, linesOf, type Row, runner, type TestRecord } from './support.ts'

const lines = topic('lines', { value: text() })
const out = topic('out', { key: text(), value: json() })
const pairs = (rows: readonly Row[]) => rows.map(({ key, value }) => [key, value])

/** Lines `key value` summed by key. */
const sums = (emit: 'epoch' | 'record', options: PipelineOptions = {}) =>
  compile(
    pipeline('sums', options)
      .from(lines)
      .keyBy((line) => line.split(' ')[0])
      .aggregate('sums', {
        create: () => ({ sum: 0 }),
        add: (state, line) => {
          const value = Number(line.split(' ')[1])
          state.sum += value
          if (value < 0) throw new RangeError('negative')
          return state
        },
        result: ({ sum }, { key }) => `${key}=${sum}`,
        emit,
      })
      .to('out', out),
  )

describe('an aggregate', () => {
  test('emits its result once a key and epoch, with the largest event time of the key', () => {
    const records: TestRecord[] = [
      { value: 'a 1', timestampMs: 7 },
      { value: 'b 2', timestampMs: 9 },
      { value: 'a 3', timestampMs: 5 },
    ]
    const { rows } = runner(sums('epoch')).epoch([{ source: 'lines', batch: batchOf(records) }])
    expect(rows.out).toEqual([
      { key: 'a', value: 'a=4', timestampMs: 7 },
      { key: 'b', value: 'b=2', timestampMs: 9 },
    ])
  })

  test('emits for each record on request, with the time of the record', () => {
    const records: TestRecord[] = [
      { value: 'a 1', timestampMs: 7 },
      { value: 'a 3', timestampMs: 5 },
    ]
    const { rows } = runner(sums('record')).epoch([{ source: 'lines', batch: batchOf(records) }])
    expect(rows.out).toEqual([
      { key: 'a', value: 'a=1', timestampMs: 7 },
      { key: 'a', value: 'a=4', timestampMs: 5 },
    ])
  })

  test('goes on from the last epoch, and says nothing of keys that it did not touch', () => {
    const run = runner(sums('epoch'))
    run.epoch([{ source: 'lines', batch: linesOf(['a 1', 'b 1']) }])
    expect(pairs(run.epoch([{ source: 'lines', batch: linesOf(['b 5']) }]).rows.out)).toEqual([['b', 'b=6']])
  })

  test('leaves the state as it was when it throws, even after it changed it in place', () => {
    const run = runner(sums('epoch', { onError: 'skip' }))
    const first = run.epoch([{ source: 'lines', batch: linesOf(['a 1', 'a -5', 'b -1', 'a 2']) }])
    expect(pairs(first.rows.out)).toEqual([['a', 'a=3']])
    expect(first.rejected.map(({ operator, offset }) => [operator, offset])).toEqual([
      ['sums', '1'],
      ['sums', '2'],
    ])
    const second = run.epoch([{ source: 'lines', batch: linesOf(['a -7', 'b 1', 'a 0'], { baseOffset: 4n }) }])
    expect(pairs(second.rows.out)).toEqual([
      ['b', 'b=1'],
      ['a', 'a=3'],
    ])
  })

  test('a result that throws names its key, as no single record is at fault', () => {
    const compiled = (onError: 'fail' | 'skip') =>
      compile(
        pipeline('p', { onError })
          .from(lines)
          .keyBy((line) => line)
          .aggregate('counts', {
            create: () => 0,
            add: (count) => count + 1,
            result: () => {
              throw new Error('no result')
            },
          })
          .to('out', out),
      )
    const inputs = [{ source: 'lines', batch: linesOf(['a']) }]
    expect(() => runner(compiled('fail')).epoch(inputs)).toThrow(
      expect.objectContaining({
        code: 'OPERATOR_FAILED',
        details: { operator: 'counts', key: 'a', error: 'Error: no result' },
      }),
    )
    const [rejected] = runner(compiled('skip')).epoch(inputs).rejected
    expect(rejected).toMatchObject({
      source: '',
      topic: '',
      partition: -1,
      offset: '-1',
      operator: 'counts',
      value: null,
    })
    expect(Buffer.from(rejected.key!, 'base64').toString()).toBe('a')
  })

  test('an accumulator that is undefined is refused', () => {
    const compiled = compile(
      pipeline('p')
        .from(lines)
        .keyBy((line) => line)
        .reduce('last', () => undefined as never)
        .to('out', out),
    )
    expect(() => runner(compiled).epoch([{ source: 'lines', batch: linesOf(['a', 'a']) }])).toThrow(/undefined as the/)
  })
})

test('nobody downstream can change an accumulator, nor what a reduce began with', () => {
  interface Tally {
    n: number
  }
  const parsed = pipeline('p')
    .from(lines)
    .map((line): Tally => ({ n: Number(line) }))
  const spoil = (tally: Tally) => {
    const { n } = tally
    tally.n = 1000
    return n
  }
  const tallies = parsed.keyBy(() => 'k').reduce('tallies', (a, b) => ({ n: a.n + b.n }), { emit: 'record' })
  const spoilt = tallies
    .map(spoil)
    .to('out', out)
    .also(
      parsed
        .map(spoil)
        .withKey(() => 'k')
        .to('direct', out),
    )
  const run = runner(compile(spoilt))
  const epochs = ['1', '2'].map((line, at) =>
    run.epoch([{ source: 'lines', batch: linesOf([line, line], { baseOffset: BigInt(2 * at) }) }]),
  )
  expect(epochs.flatMap(({ rows }) => rows.out.map(({ value }) => value))).toEqual([1, 2, 4, 6])
})

test('a reduce begins with the first value and keeps the order of one key', () => {
  const compiled = compile(
    pipeline('p')
      .from(lines)
      .keyBy((line) => line[0])
      .reduce('joined', (all, line) => all + line[1])
      .to('out', out),
  )
  const inputs = ['a1', 'b1', 'a2', 'a3'].map((line, at) => ({
    source: 'lines',
    batch: linesOf([line], { baseOffset: BigInt(at) }),
  }))
  for (const unfused of [false, true])
    expect(pairs(runner(compiled).epoch(inputs, { unfused, readers: 2 }).rows.out)).toEqual([
      ['a', 'a123'],
      ['b', 'b1'],
    ])
})

test('numbers and strings are different keys', () => {
  const compiled = compile(
    pipeline('p')
      .from(lines)
      .keyBy((line): string | number => (line.startsWith('n') ? Number(line.slice(1)) : line))
      .count('c')
      .to('out', topic('o', { key: json<string | number>(), value: json<number>() })),
  )
  for (const unfused of [false, true])
    expect(
      pairs(runner(compiled).epoch([{ source: 'lines', batch: linesOf(['1', 'n1', 'n1']) }], { unfused }).rows.out),
    ).toEqual([
      ['1', 1],
      [1, 2],
    ])
})

/** Orders and payments of one customer meet in one operator; the counts are counted again by size. */
const twoStages = (shards: number) => {
  const head = pipeline('two', { shards })
  const orders = head.from(topic('orders', { value: text() })).keyBy((line) => line[0])
  const payments = head
    .from(topic('payments', { value: text() }))
    .map((line) => `${line}!`)
    .keyBy((line) => line[0])
  const perCustomer = orders.merge(payments).reduce('history', (all, line) => `${all},${line}`)
  const bySize = perCustomer
    .to('histories', topic('histories', { key: text(), value: text() }))
    .keyBy((history) => history.split(',').length)
    .count('sizes')
  return compile(bySize.to('sizes-out', topic('sizes', { key: json<number>(), value: json<number>() })))
}

const customerLines = fc.array(
  fc.tuple(fc.constantFrom('a', 'b', 'c', 'd'), fc.nat(9)).map(([k, n]) => `${k}${n}`),
  {
    maxLength: 12,
  },
)

test('keyed streams merged from two sources give the same in one task, in stages and in shards', () => {
  fc.assert(
    fc.property(customerLines, customerLines, fc.constantFrom(1, 3), (orders, payments, shards) => {
      const inputs = [
        { source: 'orders', batch: linesOf(orders) },
        { source: 'payments', batch: linesOf(payments) },
      ]
      const expected = new Map<string, string>()
      for (const line of [...orders, ...payments.map((one) => `${one}!`)])
        expected.set(line[0], expected.has(line[0]) ? `${expected.get(line[0])},${line}` : line)
      const one = runner(twoStages(shards), shards).epoch(inputs)
      const staged = runner(twoStages(shards), shards).epoch(inputs, { unfused: true, readers: 2 })
      expect(new Map(one.rows.histories.map(({ key, value }) => [key, value]))).toEqual(expected)
      expect(staged.rows).toEqual(one.rows)
      expect(staged.counts).toEqual(one.counts)
    }),
  )
})

test('a stream of an earlier stage may merge with one of a later stage', () => {
  const head = pipeline('p', { shards: 2 })
  const words = head.from(lines)
  const counts = words.keyBy((word) => word).count('counts')
  const lengths = words.withKey((word) => word).map((word) => word.length)
  const totals = counts
    .merge(lengths)
    .map((n) => n * 10)
    .to('all', topic('all', { key: text(), value: json<number>() }))
    .keyBy((_n, { key }) => key)
    .reduce('totals', (a, b) => a + b)
  const compiled = compile(totals.to('out', out))
  expect(compiled.topology.stages).toBe(3)
  expect([0, 1, 2].map((stage) => compiled.sinksOf(stage))).toEqual([['all'], ['all'], ['out']])
  const inputs = [{ source: 'lines', batch: linesOf(['abc', 'x', 'abc']) }]
  for (const unfused of [false, true]) {
    const { rows } = runner(compiled, 2).epoch(inputs, { unfused })
    expect(new Map(rows.out.map(({ key, value }) => [key, value]))).toEqual(
      new Map([
        ['abc', 80],
        ['x', 20],
      ]),
    )
    expect(rows.all).toHaveLength(5)
  }
})

test('rows of operators of two stages reach one sink in the same order, fused or not', () => {
  const words = pipeline('p').from(lines)
  const late = words
    .keyBy((word) => word)
    .count('first')
    .keyBy((count) => count)
    .count('second')
    .withKey((_count, { key }) => `second-${key}`)
  const early = words
    .keyBy((word) => word)
    .count('other')
    .withKey((_count, { key }) => `other-${key}`)
  const compiled = compile(late.merge(early).to('out', out))
  const inputs = [{ source: 'lines', batch: linesOf(['a', 'b', 'a']) }]
  const rows = [false, true].map((unfused) => pairs(runner(compiled).epoch(inputs, { unfused }).rows.out))
  expect(rows[0]).toEqual([
    ['other-a', 2],
    ['other-b', 1],
    ['second-2', 1],
    ['second-1', 1],
  ])
  expect(rows[1]).toEqual(rows[0])
})

test('state tables out of order are noticed, not used', () => {
  const compiled = sums('epoch', { shards: 2 })
  const states = [64, 0].map((from) => compiled.state('sums', [from, from + 64], null, []))
  const writer = { add: () => {}, bufferedBytes: 0, flush: async () => {}, seal: async () => [] }
  const program = (states: readonly OperatorState[]) => () =>
    compiled.program({
      ...{ stage: 'fused', shards: 2, shard: 0, processingTimeMs: 0, watermarkMs: null, convicted: [] },
      ...{ writers: { out: writer }, states },
    })
  expect(program(states)).toThrow(/out of order/)
  expect(program(states.slice(1))).toThrow(/1 state tables for 2 shards/)
  expect(program([...states].reverse())).not.toThrow()
})

test('results are the same when the state is read back from its snapshots between epochs', () => {
  const run = runner(sums('epoch', { shards: 2 }), 2)
  run.epoch([{ source: 'lines', batch: linesOf(['a 1', 'b 2', 'c 3']) }])
  run.restart()
  const { rows } = run.epoch([{ source: 'lines', batch: linesOf(['c 1', 'a 1'], { baseOffset: 3n }) }])
  expect(new Map(rows.out.map(({ key, value }) => [key, value]))).toEqual(
    new Map([
      ['a', 'a=2'],
      ['c', 'c=4'],
    ]),
  )
})

test('state of an operator that the pipeline lacks is refused', () => {
  expect(() => sums('epoch').state('gone', [0, 128], null, [])).toThrow(
    expect.objectContaining({ code: 'LINEAGE_CHANGED', details: { operator: 'gone' } }),
  )
})
