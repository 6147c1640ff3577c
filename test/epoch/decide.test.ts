import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decide, dueAtMs } from '../../lib/epoch/decide.ts'
import type { Facts } from '../../lib/epoch/facts.ts'
import type { Head, Parked } from '../../lib/model/head.ts'
import { limits } from '../../lib/model/limits.ts'
import { defaultSettings } from '../../lib/model/settings.ts'
import type { RunKey } from '../../lib/model/steps.ts'
import { headWith } from './support.ts'

const nowMs = 1_000_000
const run: RunKey = {
  pipeline: 'counting',
  id: 'run-1',
  sequence: 1,
  place: 'here',
  lingerMs: 0,
  resume: false,
  startedAtMs: 500,
}
const mine = headWith()
const foreign = (sequence: number, open = true) => headWith({ run: { ...mine.run, id: 'run-0', sequence, open } })
const parked = (change: Partial<Parked> = {}): Parked => ({
  kind: 'failure',
  code: 'OPERATOR_FAILED',
  message: 'm',
  sinceMs: 100,
  retryAtMs: null,
  retries: 0,
  build: 'b',
  ...change,
})
const open = { attempt: 'a', epoch: 5, build: 'b', openedAtMs: 0, span: 1, suspect: null }
const paused = { id: 'p', sinceMs: 100, by: 'ada', why: 'migration', drain: null }
const hurry = { id: 'h', atMs: 100, epoch: null }

const aging = (runMsMax: number) => ({ ...defaultSettings, runMsMax })

const facts = (change: Partial<Facts> = {}): Facts => ({
  run,
  head: mine,
  nowMs,
  build: 'b',
  settings: defaultSettings,
  holderGone: false,
  stopping: false,
  unchangedMs: 0,
  sinks: [{ sink: 'counts', lanes: 1 }],
  ...change,
})

const table: readonly (readonly [sentence: string, facts: Facts, decision: string])[] = [
  ['creates a pipeline that has no head', facts({ head: null }), 'create'],
  ['claims from a run that closed', facts({ head: foreign(0, false) }), 'claim'],
  ['claims from a run that is gone', facts({ head: foreign(0), holderGone: true }), 'claim'],
  [
    'claims when the head has not moved for the length of the lease',
    facts({ head: foreign(0), unchangedMs: 150_000 }),
    'claim',
  ],
  ['watches a run that may be alive', facts({ head: foreign(0), unchangedMs: 149_999 }), 'watch'],
  ['retires when another run of its number came first', facts({ head: foreign(1) }), 'retire'],
  ['retires when a later run came first', facts({ head: foreign(7, false) }), 'retire'],
  ['retires when it is closed', facts({ head: headWith({ run: { ...mine.run, open: false } }) }), 'retire'],
  [
    'retires when it has watched for as many events as it may have',
    facts({ head: foreign(0), run: { ...run, events: limits.runEventsMax } }),
    'retire',
  ],
  [
    'retires when its execution ends before the lease that it watches',
    facts({
      head: foreign(0),
      settings: aging(60_000),
      run: { ...run, startedAtMs: nowMs - limits.expressMs + 15_000 },
    }),
    'retire',
  ],
  [
    'watches beyond the age at which it would hand over',
    facts({ head: foreign(0), settings: aging(60_000), run: { ...run, startedAtMs: nowMs - 200_000 } }),
    'watch',
  ],
  [
    'starts the next run when it closed to hand over',
    facts({ head: headWith({ run: { ...mine.run, open: false, epochs: 100 } }) }),
    'start-next',
  ],
  ['clears what a dead step of its own left open', facts({ head: headWith({ open }) }), 'clear'],
  ['rests while the pipeline is parked', facts({ head: headWith({ parked: parked() }) }), 'rest'],
  ['goes on with another build', facts({ head: headWith({ parked: parked() }), build: 'c' }), 'unpark'],
  [
    'goes on when a person asks',
    facts({ head: headWith({ parked: parked() }), run: { ...run, resume: true } }),
    'unpark',
  ],
  [
    'rests when it parked after the person asked',
    facts({ head: headWith({ parked: parked({ sinceMs: 501 }) }), run: { ...run, resume: true } }),
    'rest',
  ],
  [
    'rests until a parked promotion is due much later, whatever the build',
    facts({
      head: headWith({ promotedThrough: 3, parked: parked({ kind: 'promotion', retryAtMs: nowMs + 100_000 }) }),
      build: 'c',
    }),
    'rest',
  ],
  [
    'promotes again when a parked promotion is due',
    facts({ head: headWith({ promotedThrough: 3, parked: parked({ kind: 'promotion', retryAtMs: nowMs }) }) }),
    'promote',
  ],
  [
    'promotes what is committed and unpromoted before anything else',
    facts({ head: headWith({ promotedThrough: 3 }), sinks: [] }),
    'promote',
  ],
  [
    'waits for a parked promotion that is due soon',
    facts({ head: headWith({ promotedThrough: 3, parked: parked({ kind: 'promotion', retryAtMs: nowMs + 1 }) }) }),
    'wait',
  ],
  ['rests when it is told to stop', facts({ stopping: true }), 'rest'],
  [
    'promotes what is committed before it stops',
    facts({ stopping: true, head: headWith({ promotedThrough: 3 }) }),
    'promote',
  ],
  ['hands over after its epochs', facts({ head: headWith({ run: { ...mine.run, epochs: 100 } }) }), 'hand-over'],
  [
    'case 62: hands over after its events, whatever they went into',
    facts({ run: { ...run, events: limits.runEventsMax } }),
    'hand-over',
  ],
  [
    'hands over by its age where executions end by it',
    facts({ settings: aging(60_000), run: { ...run, startedAtMs: nowMs - 60_000 } }),
    'hand-over',
  ],
  [
    'does not hand over before that age',
    facts({ settings: aging(60_000), run: { ...run, startedAtMs: nowMs - 59_999 } }),
    'survey',
  ],
  ['registers lanes that the head does not know', facts({ sinks: [{ sink: 'counts', lanes: 2 }] }), 'register'],
  ['rests while a person has paused it', facts({ head: headWith({ paused }) }), 'rest'],
  [
    'promotes what is committed although a person has paused it',
    facts({ head: headWith({ paused, promotedThrough: 3 }) }),
    'promote',
  ],
  [
    'clears what a dead step left open although a person has paused it',
    facts({ head: headWith({ paused, open }) }),
    'clear',
  ],
  ['stays paused with another build', facts({ head: headWith({ paused }), build: 'c' }), 'rest'],
  [
    'lifts the park of another build and stays paused',
    facts({ head: headWith({ paused, parked: parked() }), build: 'c' }),
    'unpark',
  ],
  ['surveys while it drains', facts({ head: headWith({ paused: { ...paused, drain: { ends: [] } } }) }), 'survey'],
  [
    'does not wait for the checkpoint interval when a person hurries',
    facts({ head: headWith({ hurry, committed: { ...mine.committed, openedAtMs: nowMs - 1 } }) }),
    'survey',
  ],
  [
    'waits for the restart delay although a person hurries',
    facts({ head: headWith({ hurry, failures: { ...mine.failures, notBeforeMs: nowMs + 1 } }) }),
    'wait',
  ],
  [
    'waits for the checkpoint interval',
    facts({ head: headWith({ committed: { ...mine.committed, openedAtMs: nowMs - 1 } }) }),
    'wait',
  ],
  [
    'waits for the restart delay',
    facts({ head: headWith({ failures: { ...mine.failures, notBeforeMs: nowMs + 1 } }) }),
    'wait',
  ],
  ['surveys when nothing else is to be done', facts(), 'survey'],
]

describe('a run', () => {
  test.each(table)('%s', (_, given, decision) => {
    expect(decide(given).decision).toBe(decision)
  })
})

const headOf = fc.record({
  sequence: fc.integer({ min: 0, max: 3 }),
  isMine: fc.boolean(),
  isOpen: fc.boolean(),
  epochs: fc.integer({ min: 0, max: 120 }),
  opens: fc.boolean(),
  behind: fc.integer({ min: 0, max: 2 }),
  parkedAs: fc.constantFrom(
    null,
    parked(),
    parked({ kind: 'promotion', retryAtMs: nowMs + 5 }),
    parked({ build: 'z' }),
  ),
})

test('decides on any facts, the same for the same facts, and only the holder acts on the head', () => {
  fc.assert(
    fc.property(
      fc.option(headOf),
      fc.boolean(),
      fc.nat(300_000),
      fc.nat(20_000),
      (drawn, holderGone, unchangedMs, events) => {
        const head: Head | null = drawn && {
          ...mine,
          open: drawn.opens ? open : null,
          promotedThrough: 4 - drawn.behind,
          parked: drawn.parkedAs,
          run: {
            ...mine.run,
            id: drawn.isMine ? 'run-1' : 'other',
            open: drawn.isOpen,
            sequence: drawn.sequence,
            epochs: drawn.epochs,
          },
        }
        const given = facts({ head, holderGone, unchangedMs, run: { ...run, events } })
        const decided = decide(given)
        expect(decide(given)).toEqual(decided)
        const isHolder = head?.run.open === true && head.run.id === run.id
        const acts = ['clear', 'unpark', 'rest', 'promote', 'hand-over', 'register', 'wait', 'survey']
        expect(acts.includes(decided.decision)).toBe(isHolder)
        if (decided.decision === 'survey') expect([head?.open, head?.promotedThrough]).toEqual([null, 4])
        if (decided.decision === 'wait' || decided.decision === 'watch') expect(decided.waitMs).toBeGreaterThan(0)
      },
    ),
  )
})

test('the next epoch is due after the restart delay, the interval and the minimum pause, whichever is last', () => {
  const settings = {
    ...defaultSettings,
    checkpoint: { ...defaultSettings.checkpoint, intervalMs: 100, minPauseMs: 30 },
  }
  const head = headWith({ committed: { ...mine.committed, openedAtMs: 1000, atMs: 1080 } })
  expect(dueAtMs({ settings }, head)).toBe(1110)
  expect(dueAtMs({ settings }, { ...head, failures: { ...head.failures, notBeforeMs: 5000 } })).toBe(5000)
  expect(dueAtMs({ settings }, { ...head, committed: { ...head.committed, openedAtMs: 2000 } })).toBe(2100)
  expect(dueAtMs({ settings }, { ...head, committed: { ...head.committed, epoch: 0 } })).toBe(0)
})

test('what one epoch could not take does not wait for the interval, but for delay and pause', () => {
  const settings = {
    ...defaultSettings,
    checkpoint: { ...defaultSettings.checkpoint, intervalMs: 10_000, minPauseMs: 30 },
  }
  const head = headWith({ committed: { ...mine.committed, openedAtMs: 1000, atMs: 1080 } })
  expect(dueAtMs({ settings }, head, true)).toBe(1110)
  expect(dueAtMs({ settings }, { ...head, failures: { ...head.failures, notBeforeMs: 5000 } }, true)).toBe(5000)
})
