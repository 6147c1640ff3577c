import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compile, json, pipeline, text, topic } from '../../lib/index.ts'
import { linesOf, type Row, runner } from './support.ts'

const wordCount = (options: { shards?: number } = {}) =>
  compile(
    pipeline('word-count', options)
      .from(topic('lines', { value: text() }))
      .flatMap((line) => line.split(' '))
      .filter((word) => word !== '')
      .keyBy((word) => word)
      .count('counts')
      .to('out', topic('word-counts', { key: text(), value: json<number>() })),
  )

function latest(rows: readonly Row[]): Map<unknown, unknown> {
  return new Map(rows.map(({ key, value }) => [key, value]))
}

function foldOf(lines: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const word of lines.flatMap((line) => line.split(' ')))
    if (word !== '') counts.set(word, (counts.get(word) ?? 0) + 1)
  return counts
}

const word = fc.constantFrom('a', 'b', 'c', 'dé', '日本', '😀', 'longer-than-the-short-text-limit', '')
const lines = fc.array(
  fc.array(word, { maxLength: 5 }).map((words) => words.join(' ')),
  { maxLength: 30 },
)

describe('word count', () => {
  test('emits each touched key once an epoch, in first-touch order', () => {
    const run = runner(wordCount())
    const first = run.epoch([{ source: 'lines', batch: linesOf(['b a b', 'a b']) }])
    expect(first.rows.out.map(({ key, value }) => [key, value])).toEqual([
      ['b', 3],
      ['a', 2],
    ])
    expect(first.counts).toEqual({ in: 2, out: { out: 2 }, late: 0, rejected: 0 })
    const second = run.epoch([{ source: 'lines', batch: linesOf(['c a'], { baseOffset: 2n }) }])
    expect(second.rows.out.map(({ key, value }) => [key, value])).toEqual([
      ['c', 1],
      ['a', 3],
    ])
  })

  test('is the fold of its input, fused or not, with any shards, cut into epochs anywhere', () => {
    fc.assert(
      fc.property(
        lines,
        fc.nat(30),
        fc.constantFrom(1, 3),
        fc.boolean(),
        fc.boolean(),
        (all, cut, shards, one, two) => {
          const run = runner(wordCount({ shards }), shards)
          const rows = [all.slice(0, cut), all.slice(cut)].flatMap((part, i) => {
            const inputs = part.map((line, at) => ({
              source: 'lines',
              batch: linesOf([line], { baseOffset: BigInt(at) }),
            }))
            return run.epoch(inputs, { unfused: i === 0 ? one : two, readers: 2 }).rows.out
          })
          expect(latest(rows)).toEqual(foldOf(all))
        },
      ),
    )
  })
})
