import { expect, test } from 'vitest'
import { compile, json, pipeline, text, topic } from '../../lib/index.ts'
import { batchOf, linesOf, runner } from './support.ts'

const lines = topic('lines', { key: text(), value: text() })
const out = topic('out', { key: text(), value: json() })

test('functions see the record that they are called for', () => {
  const compiled = compile(
    pipeline('p')
      .from(lines, { timestamp: (_line, { timestampMs }) => timestampMs + 1 })
      .map((line, { key, timestampMs, topic: name, partition, offset, processingTimeMs }) => ({
        ...{ line, key, timestampMs, name, partition },
        ...{ offset: `${offset}`, processingTimeMs },
      }))
      .to('out', out),
  )
  const batch = batchOf([{ key: 'k', value: 'v', timestampMs: 41 }], { partition: 2, baseOffset: 2n ** 60n })
  const { rows } = runner(compiled).epoch([{ source: 'lines', batch }], { processingTimeMs: 77 })
  const value = { line: 'v', key: 'k', timestampMs: 42, name: 'lines', partition: 2, offset: `${2n ** 60n}` }
  expect(rows.out).toEqual([{ key: 'k', value: { ...value, processingTimeMs: 77 }, timestampMs: 42 }])
})

test('a key that one branch sets is not seen by another', () => {
  const source = pipeline('p').from(lines)
  const branches = source
    .withKey((line) => `new-${line}`)
    .to('first', out)
    .also(
      source
        .keyBy((line) => `keyed-${line}`)
        .count('c', { emit: 'record' })
        .to('second', out),
    )
    .also(source.to('third', out))
    .also(source.map((line) => line).to('fourth', out))
  const { rows } = runner(compile(branches)).epoch([{ source: 'lines', batch: batchOf([{ key: 'old', value: 'v' }]) }])
  expect(Object.entries(rows).map(([sink, [row]]) => [sink, row.key])).toEqual([
    ['first', 'new-v'],
    ['second', 'keyed-v'],
    ['third', 'old'],
    ['fourth', 'old'],
  ])
})

test('nor is a key that a branch behind a keyed operator sets', () => {
  const counts = pipeline('p')
    .from(lines)
    .keyBy((line) => line)
    .count('c')
  const branches = counts
    .withKey((count) => `count-${count}`)
    .to('first', out)
    .also(counts.to('second', out))
  const { rows } = runner(compile(branches)).epoch([{ source: 'lines', batch: batchOf([{ value: 'v' }]) }])
  expect([rows.first[0].key, rows.second[0].key]).toEqual(['count-1', 'v'])
})

test('filter drops, flatMap takes any iterable, merge takes both sides', () => {
  const source = pipeline('p').from(lines)
  const letters = source.flatMap((line) => new Set(line))
  const pairs = source.flatMap(function* (line) {
    yield line
    yield line
  })
  const merged = letters.merge('both', pairs).filter('no-b', (value) => value !== 'b')
  const compiled = compile(merged.withKey(() => 'k').to('out', out))
  expect(compiled.topology.nodes.map(({ id }) => id)).toContain('both')
  const { rows } = runner(compiled).epoch([{ source: 'lines', batch: linesOf(['aab']) }])
  expect(rows.out.map(({ value }) => value)).toEqual(['a', 'aab', 'aab'])
})

test('a string is no list of values', () => {
  const compiled = compile(
    pipeline('p')
      .from(lines)
      .flatMap('chars', (line) => line)
      .to('out', topic('o', { key: text(), value: text() })),
  )
  expect(() => runner(compiled).epoch([{ source: 'lines', batch: linesOf(['ab']) }])).toThrow(
    /chars .* no list of values/,
  )
})

test('an epoch without records leaves nothing behind', () => {
  const compiled = compile(pipeline('p').from(lines).to('out', out))
  const { rows, counts, eventTimes } = runner(compiled).epoch([])
  expect([rows.out, counts, eventTimes]).toEqual([[], { in: 0, out: { out: 0 }, late: 0, rejected: 0 }, []])
})

test('event times are kept by source and partition', () => {
  const compiled = compile(pipeline('p').from(lines).to('out', out))
  const at = (timestampMs: number, partition: number) => ({
    source: 'lines',
    batch: batchOf([{ key: 'k', value: 'v', timestampMs }], { partition }),
  })
  const { eventTimes } = runner(compiled).epoch([at(5, 0), at(-9, 1), at(3, 0)])
  expect(eventTimes).toEqual([
    { source: 'lines', partition: 0, maxTimestampMs: 5 },
    { source: 'lines', partition: 1, maxTimestampMs: -9 },
  ])
})
