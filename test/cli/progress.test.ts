import { describe, expect, test } from 'vitest'
import { newView, observe, observeHead, rateOf } from '../../lib/cli/observe-run.ts'
import { liveRegion } from '../../lib/cli/print-live.ts'
import { eventLine, progressLines } from '../../lib/cli/print-progress.ts'
import { age, count, duration, pairs, size, table, time } from '../../lib/cli/print-values.ts'
import type { ProgressEvent } from '../../lib/model/event.ts'
import type { Head } from '../../lib/model/head.ts'

const startMs = Date.UTC(2026, 0, 2, 3, 4, 5)
const terminal = (nowMs: number) => ({ terminal: true, color: false, nowMs })
const pipe = (nowMs: number) => ({ terminal: false, color: false, nowMs })

const counts = { in: 2500, out: { counts: 1200 }, late: 1, rejected: 2 }
const pipeline = 'words'
const attempt = 'a'.repeat(32)
const committed = (epoch: number, atMs: number): ProgressEvent => {
  return {
    event: 'committed',
    pipeline,
    epoch,
    attempt,
    counts,
    watermarkMs: startMs - 60_000,
    atMs,
    openedAtMs: atMs - 40,
  }
}
const lag: ProgressEvent = {
  event: 'lag',
  pipeline,
  lag: [
    { source: 'lines', topic: 'lines', partition: 0, records: '9007199254740993' },
    { source: 'lines', topic: 'lines', partition: 1, records: '0' },
    { source: 'lines', topic: 'lines', partition: 2, records: '7' },
  ],
}

const observed = (...events: readonly [event: ProgressEvent, atMs: number][]) =>
  events.reduce((view, [event, atMs]) => observe(view, event, atMs), newView(pipeline, startMs))

describe('the view of a run', () => {
  const taken: ProgressEvent = { event: 'taken-over', pipeline, generation: 3, from: 'x (gone)' }
  const opened: ProgressEvent = { event: 'opened', pipeline, epoch: 8, attempt, span: 5000, tasks: 1 }
  const finalized: ProgressEvent = { event: 'finalized', pipeline, epoch: 7, atMs: startMs + 2000 }
  const aborted: ProgressEvent = {
    event: 'aborted',
    pipeline,
    epoch: 8,
    attempt,
    code: 'X',
    message: 'X: it\nfailed. Next: wait.',
  }

  test('shows epoch, commit, output, rate, watermark and lag', () => {
    const view = observed(
      [taken, startMs],
      [committed(7, startMs + 2000), 0],
      [finalized, 0],
      [lag, 0],
      [opened, startMs + 2100],
    )
    const lines = progressLines(view, terminal(startMs + 2500), 100).map((line) => line.replaceAll('\u202f', ' '))
    expect(lines).toEqual([
      'words  running  up 2.5s, generation 3',
      'epoch      8, 5 000 offsets, open for 400ms',
      'committed  7, now, took 40ms',
      'promoted   7, rows: counts 1 200',
      'records    2 500 in, 1 000/s, 1 late, 2 rejected',
      'watermark  2026-01-02T03:03:05.000Z, 63s behind',
      expect.stringMatching(
        /^lag {8}9 007 199 254 741 000, \d+d at this rate, lines\/0 9 007 199 254 740 993, lines\/2 7$/,
      ),
    ])
  })

  test('keeps the last failure in sight, on one line', () => {
    const view = observed([taken, startMs], [opened, startMs], [aborted, startMs + 1000])
    expect(view.state).toBe('retrying')
    const lines = progressLines(view, terminal(startMs + 4000), 100)
    expect(lines.at(-1)).toBe('failures   1, the last one 3.0s ago: X: it failed')
    expect(lines[1]).toBe('epoch      -')
  })

  test('never has a line that is wider than the terminal', () => {
    const view = observed(
      [taken, startMs],
      [committed(7, startMs), 0],
      [lag, 0],
      [{ ...aborted, message: 'm'.repeat(500) }, 0],
    )
    for (const columns of [24, 40, 80, 200]) {
      for (const line of progressLines(view, terminal(startMs), columns))
        expect(line.length).toBeLessThanOrEqual(columns)
    }
  })

  test('measures its rate over the last seconds alone', () => {
    const view = observed([committed(1, startMs + 1000), 0], [committed(2, startMs + 20_000), 0])
    expect(rateOf(view, startMs + 20_000)).toBe(500)
    expect(rateOf(view, startMs + 26_000)).toBe(0)
    expect(view.counts).toEqual({ in: 5000, out: { counts: 2400 }, late: 2, rejected: 4 })
  })

  test('is idle once the run has left, and runs again with the next epoch', () => {
    const left: ProgressEvent = { event: 'left', pipeline, run: 'r', reason: 'nothing to do' }
    const view = observed([taken, startMs], [left, startMs])
    expect(view.state).toBe('idle')
    expect(observe(view, opened, startMs).state).toBe('running')
  })

  test('stands by while another run holds the pipeline, and stops for good', () => {
    const held = (place: string) => ({ run: { open: true, place } }) as Head
    const view = newView(pipeline, startMs)
    const standing = observeHead(view, held('elsewhere'), 'here')
    expect(standing.state).toBe('standing by')
    expect(observeHead(standing, held('here'), 'here').state).toBe('starting')
    expect(observe({ ...view, state: 'stopping' }, opened, startMs).state).toBe('stopping')
  })

  test('gives each event that matters a line', () => {
    const view = observed([committed(7, startMs), 0])
    const line =
      'epoch 7 promoted, 2500 in, counts 1200, 1 late, 2 rejected, took 40ms, watermark 2026-01-02T03:03:05.000Z'
    expect(eventLine(finalized, view)).toBe(line)
    expect(eventLine({ ...finalized, epoch: 6 }, view)).toBe('epoch 6 promoted, which another run had committed')
    expect(eventLine(aborted, view)).toBe(`epoch 8 failed, attempt aaaaaaaa: X: it failed`)
    expect(eventLine(opened, view)).toBe(null)
  })
})

describe('a live region', () => {
  /** What a terminal shows: a screen that understands what the region writes. */
  const screen = () => {
    let lines = ['']
    let row = 0
    const raw = (text: string) => {
      for (const [part] of text.replaceAll('\x1b', '␛').matchAll(/␛\[\??\d*[A-Za-z]|\r|\n|[^␛\r\n]+/g)) {
        const up = /^␛\[(\d+)A$/.exec(part)?.[1]
        if (up !== undefined) row -= Number(up)
        else if (part === '␛[J') lines = [...lines.slice(0, row), '']
        else if (part === '\n') lines[++row] ??= ''
        else if (part !== '\r' && !part.startsWith('␛')) lines[row] = part
      }
    }
    return { raw, shown: () => lines }
  }

  test('is drawn in place, below the lines that were printed for good', () => {
    const { raw, shown } = screen()
    const live = liveRegion({ raw })
    live.draw(['one', 'two', 'three'])
    live.print('for good')
    live.draw(['four', 'five'])
    expect(shown()).toEqual(['for good', 'four', 'five', ''])
    live.close()
    expect(shown()).toEqual(['for good', 'four', 'five', ''])
  })

  test('gives the cursor back once', () => {
    let written = ''
    const live = liveRegion({
      raw: (text) => {
        written += text
      },
    })
    live.draw(['x'])
    live.close()
    live.close()
    expect(written.split('\x1b[?25h')).toHaveLength(2)
  })
})

describe('values', () => {
  test('numbers have separators on terminals only', () => {
    expect(count(terminal(0), 1234567)).toBe('1\u202f234\u202f567')
    expect(count(pipe(0), 1234567)).toBe('1234567')
    expect(count(terminal(0), 2n ** 63n - 1n)).toBe('9\u202f223\u202f372\u202f036\u202f854\u202f775\u202f807')
  })

  test.each([
    [0, '0ms'],
    [999, '999ms'],
    [1000, '1.0s'],
    [59_400, '59s'],
    [180_000, '3m'],
    [7_200_000, '2h'],
    [864_000_000, '10d'],
  ])('%i ms are %s', (ms, text) => {
    expect(duration(ms)).toBe(text)
  })

  test('ages, sizes and times say what they are', () => {
    expect([age(pipe(5000), 4500), age(pipe(5000), 2000)]).toEqual(['now', '3.0s ago'])
    expect([0, 1023, 1024, 15 * 2 ** 20, 3 * 2 ** 40].map(size)).toEqual([
      '0 B',
      '1023 B',
      '1.0 KiB',
      '15 MiB',
      '3.0 TiB',
    ])
    expect([time(null), time(-1), time(Number.MAX_SAFE_INTEGER)]).toEqual([
      '-',
      '1969-12-31T23:59:59.999Z',
      '9007199254740991',
    ])
  })

  test('tables align numbers to the right and end no line with blanks', () => {
    expect(
      table(
        ['name', '>count', 'note'],
        [
          ['a', '5', ''],
          ['long', '1000', 'x'],
        ],
      ),
    ).toEqual(['name  count  note', 'a         5', 'long   1000  x'])
    expect(
      pairs([
        ['a', '1'],
        ['long', ''],
      ]),
    ).toEqual(['a     1', 'long'])
  })
})
