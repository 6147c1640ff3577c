import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compile, json, pipeline, text, topic, tumbling } from '../../lib/index.ts'
import { windowStartOf } from '../../lib/stream/window.ts'
import { batchOf, type EpochOutcome, runner } from './support.ts'

interface Options {
  readonly sizeMs?: number
  readonly allowedLatenessMs?: number
  readonly shards?: number
}

/** Counts records by key and window; rows are `key@start: count`. */
const counting = ({ sizeMs = 10, allowedLatenessMs = 0, shards = 1 }: Options = {}) =>
  compile(
    pipeline('windows', { shards })
      .from(topic('lines', { value: text() }))
      .keyBy((line) => line)
      .window(tumbling({ sizeMs, allowedLatenessMs }))
      .aggregate('counts', {
        create: () => 0,
        add: (count) => count + 1,
        result: (count, { key, window }) => `${key}@${window.startMs}-${window.endMs}: ${count}`,
      })
      .sideOutput('late', (late) => late.to('late-lines', topic('late', { key: text(), value: text() })))
      .to('out', topic('out', { key: text(), value: json<string>() })),
  )

type Event = readonly [line: string, timestampMs: number]

const input = (events: readonly Event[]) => [
  { source: 'lines', batch: batchOf(events.map(([value, timestampMs]) => ({ value, timestampMs }))) },
]
const values = ({ rows }: EpochOutcome) => rows.out.map(({ value }) => value)

describe('a tumbling window', () => {
  test('fires when the watermark reaches its last millisecond, with that as its time', () => {
    const run = runner(counting())
    expect(
      values(
        run.epoch(
          input([
            ['a', 1],
            ['b', 9],
            ['a', 10],
          ]),
          { newWatermarkMs: 8 },
        ),
      ),
    ).toEqual([])
    const fired = run.epoch(input([['a', 2]]), { watermarkMs: 8, newWatermarkMs: 9 })
    expect(fired.rows.out).toEqual([
      { key: 'a', value: 'a@0-10: 2', timestampMs: 9 },
      { key: 'b', value: 'b@0-10: 1', timestampMs: 9 },
    ])
    expect(run.entries()).toBe(1)
  })

  test('fires in order of window start, then of first touch', () => {
    const run = runner(counting())
    const outcome = run.epoch(
      input([
        ['b', 25],
        ['a', 5],
        ['b', 7],
        ['a', 21],
      ]),
      { newWatermarkMs: 100 },
    )
    expect(values(outcome)).toEqual(['a@0-10: 1', 'b@0-10: 1', 'b@20-30: 1', 'a@20-30: 1'])
  })

  test('is late against the watermark with which the epoch began, not the new one', () => {
    const run = runner(counting())
    expect(
      values(
        run.epoch(
          input([
            ['a', 100],
            ['a', 1],
          ]),
          { watermarkMs: 8, newWatermarkMs: 99 },
        ),
      ),
    ).toEqual(['a@0-10: 1'])
    const next = run.epoch(
      input([
        ['a', 9],
        ['x', 95],
      ]),
      { watermarkMs: 99, newWatermarkMs: 99 },
    )
    expect(next.rows['late-lines']).toEqual([
      { key: 'a', value: 'a', timestampMs: 9 },
      { key: 'x', value: 'x', timestampMs: 95 },
    ])
    expect(next.counts).toMatchObject({ late: 2, rejected: 0, out: { out: 0, 'late-lines': 2 } })
  })

  test('fires again for late records that it still takes, and then is gone', () => {
    const run = runner(counting({ allowedLatenessMs: 20 }))
    run.epoch(
      input([
        ['a', 1],
        ['b', 1],
      ]),
      { newWatermarkMs: 15 },
    )
    expect(values(run.epoch(input([['a', 2]]), { watermarkMs: 15, newWatermarkMs: 28 }))).toEqual(['a@0-10: 2'])
    expect(run.entries()).toBe(2)
    const last = run.epoch(input([['b', 3]]), { watermarkMs: 28, newWatermarkMs: 29 })
    expect(values(last)).toEqual(['b@0-10: 2'])
    expect(run.entries()).toBe(0)
    expect(run.epoch(input([['a', 4]]), { watermarkMs: 29, newWatermarkMs: 29 }).counts.late).toBe(1)
  })

  test('late records without a side output are counted', () => {
    const compiled = compile(
      pipeline('p')
        .from(topic('lines', { value: text() }))
        .keyBy((line) => line)
        .window(tumbling({ sizeMs: 10 }))
        .count('counts')
        .to('out', topic('out', { key: text(), value: json<number>() })),
    )
    const { counts } = runner(compiled).epoch(input([['a', 1]]), { watermarkMs: 50, newWatermarkMs: 50 })
    expect(counts).toMatchObject({ late: 1, out: { out: 0 } })
  })

  test('nothing fires and nothing is late before there is a watermark', () => {
    const outcome = runner(counting()).epoch(
      input([
        ['a', -1000],
        ['a', 1000],
      ]),
    )
    expect([values(outcome), outcome.counts.late]).toEqual([[], 0])
  })

  test('windows may follow one another', () => {
    const compiled = compile(
      pipeline('p', { shards: 2 })
        .from(topic('lines', { value: text() }))
        .keyBy((line) => line)
        .window(tumbling({ sizeMs: 10 }))
        .count('small')
        .keyBy(() => 'all')
        .window(tumbling({ sizeMs: 100 }))
        .reduce('large', (a, b) => a + b)
        .to('out', topic('out', { key: text(), value: json<number>() })),
    )
    for (const unfused of [false, true]) {
      const run = runner(compiled, 2)
      run.epoch(
        input([
          ['a', 1],
          ['b', 11],
          ['a', 95],
        ]),
        { newWatermarkMs: 50, unfused },
      )
      const { rows } = run.epoch(input([['c', 60]]), { watermarkMs: 50, newWatermarkMs: 99, unfused })
      expect(rows.out).toEqual([{ key: 'all', value: 4, timestampMs: 99 }])
    }
  })
})

test('case 45: negative timestamps fall into the window below', () => {
  expect([-1, -5000, -5001, 0, 4999].map((timestampMs) => windowStartOf(timestampMs, 5000))).toEqual([
    -5000, -5000, -10_000, 0, 0,
  ])
  const outcome = runner(counting({ sizeMs: 5000 })).epoch(input([['a', -1]]), { newWatermarkMs: -1 })
  expect(values(outcome)).toEqual(['a@-5000-0: 1'])
})

/** What a plain loop over all events makes of them, epoch by epoch. */
function plainWindows(
  epochs: readonly (readonly Event[])[],
  watermarks: readonly number[],
  lateness: number,
): string[] {
  const open = new Map<string, { start: number; key: string; count: number }>()
  const seen: string[] = []
  let before = Number.NEGATIVE_INFINITY
  for (const [i, events] of epochs.entries()) {
    const touched = new Set<string>()
    for (const [key, at] of events) {
      const start = Math.floor(at / 10) * 10
      if (start + 9 + lateness <= before) seen.push(`late ${key} ${at}`)
      else {
        const id = `${key}/${start}`
        open.set(id, { start, key, count: (open.get(id)?.count ?? 0) + 1 })
        touched.add(id)
      }
    }
    for (const [id, { start, key, count }] of open) {
      const first = start + 9 > before
      if (start + 9 <= watermarks[i] && (first || touched.has(id))) seen.push(`${key}@${start}-${start + 10}: ${count}`)
    }
    before = watermarks[i]
  }
  return seen.sort()
}

test('case 47: results equal a plain loop, however it is run, with or without a restart in between', () => {
  const event = fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.integer({ min: -40, max: 60 }))
  const epoch = fc.record({
    events: fc.array(event, { maxLength: 8 }),
    step: fc.nat(30),
    unfused: fc.boolean(),
    restart: fc.boolean(),
  })
  const lateness = fc.constantFrom(0, 5, 25)
  fc.assert(
    fc.property(
      fc.array(epoch, { maxLength: 5 }),
      fc.constantFrom(1, 3),
      lateness,
      (epochs, shards, allowedLatenessMs) => {
        const run = runner(counting({ shards, allowedLatenessMs }), shards)
        const watermarks = epochs.map((_, i) => -45 + epochs.slice(0, i + 1).reduce((sum, { step }) => sum + step, 0))
        const seen: string[] = []
        for (const [i, { events, unfused, restart }] of epochs.entries()) {
          if (restart) run.restart()
          const options = { watermarkMs: i === 0 ? null : watermarks[i - 1], newWatermarkMs: watermarks[i], unfused }
          const outcome = run.epoch(input(events), options)
          seen.push(...(values(outcome) as string[]))
          seen.push(...outcome.rows['late-lines'].map(({ key, timestampMs }) => `late ${key} ${timestampMs}`))
        }
        expect(seen.sort()).toEqual(
          plainWindows(
            epochs.map(({ events }) => events),
            watermarks,
            allowedLatenessMs,
          ),
        )
      },
    ),
  )
})
