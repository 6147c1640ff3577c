import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { delayOf, forgiveFailures, judgeFailure, noFailures } from '../../lib/epoch/restart.ts'
import type { FailureReason, Failures, OpenAttempt, SourceOffset } from '../../lib/model/head.ts'
import { defaultSettings, type Settings } from '../../lib/model/settings.ts'

const settings = (change: Partial<Settings> = {}): Settings => ({ ...defaultSettings, ...change })
const reason = (code: string, record: SourceOffset | null = null, atMs = 1000): FailureReason => ({
  code,
  message: code,
  attempt: 'a',
  atMs,
  record,
  operator: null,
})
const attempt = (span: number, suspect: SourceOffset | null = null): OpenAttempt => ({
  attempt: 'a',
  epoch: 1,
  build: 'b',
  openedAtMs: 0,
  span,
  suspect,
})
const at = (offset: number): SourceOffset => ({ source: 'lines', partition: 0, offset: `${offset}` })

describe('the restart strategy', () => {
  test('gives up at once when it is none', () => {
    expect(delayOf({ strategy: 'none' }, 1, [], 0)).toBeNull()
  })

  test('waits a fixed delay for so many attempts', () => {
    const fixed = { strategy: 'fixed-delay', attempts: 2, delayMs: 50 } as const
    expect([1, 2, 3].map((nth) => delayOf(fixed, nth, [], 0))).toEqual([50, 50, null])
  })

  test('waits longer each time up to the longest, for ever or for so many attempts', () => {
    const growing = {
      strategy: 'exponential-delay',
      initialMs: 100,
      maxMs: 500,
      multiplier: 2,
      attempts: null,
    } as const
    expect([1, 2, 3, 4, 1e9].map((nth) => delayOf(growing, nth, [], 0))).toEqual([100, 200, 400, 500, 500])
    expect(delayOf({ ...growing, attempts: 3 }, 4, [], 0)).toBeNull()
  })

  test('counts failures within its interval only', () => {
    const rate = { strategy: 'failure-rate', failures: 2, intervalMs: 100, delayMs: 5 } as const
    expect(delayOf(rate, 3, [0, 901, 1000], 1000)).toBe(5)
    expect(delayOf(rate, 3, [902, 951, 1000], 1000)).toBeNull()
  })
})

describe('a failure', () => {
  test('that repeating cannot mend parks at once', () => {
    for (const code of ['LINEAGE_CHANGED', 'LOG_OFFSET_LOST', 'MANIFEST_DAMAGED', 'TOPIC_MISSING']) {
      expect(judgeFailure(noFailures, reason(code), attempt(10), settings()).parked?.code).toBe(code)
    }
  })

  test('that is transient is tried again, and never halves what would have fitted', () => {
    for (const code of ['STORE_UNAVAILABLE', 'LEDGER_BUSY', 'SHUFFLE_DAMAGED', 'ASSERTION_FAILED']) {
      const { parked, failures } = judgeFailure(noFailures, reason(code), attempt(10), settings())
      expect([parked, failures.spanMax, failures.count]).toEqual([null, null, 1])
    }
  })

  test('case 65: by timeout or size halves the next attempt, down to one record', () => {
    for (const code of ['EPOCH_TIMEOUT', 'EPOCH_TOO_LARGE']) {
      let failures: Failures = noFailures
      const spans: number[] = []
      for (let span = 100; span > 1; span = failures.spanMax!) {
        failures = judgeFailure(failures, reason(code), attempt(span), settings()).failures
        spans.push(failures.spanMax!)
      }
      expect(spans).toEqual([50, 25, 12, 6, 3, 1])
    }
  })

  test('without a word is repeated once as it was, then halved', () => {
    const first = judgeFailure(noFailures, reason('EPOCH_CRASHED'), attempt(64), settings())
    expect(first.failures.spanMax).toBeNull()
    const second = judgeFailure(first.failures, reason('EPOCH_CRASHED'), attempt(64), settings())
    expect(second.failures.spanMax).toBe(32)
  })

  test('of one record alone convicts it when it is repeated, and parks where records may not be rejected', () => {
    const once = judgeFailure(
      { ...noFailures, count: 3, spanMax: 1 },
      reason('EPOCH_CRASHED'),
      attempt(1, at(7)),
      settings(),
    )
    expect([once.failures.convicted, once.parked]).toEqual([[], null])
    const other = judgeFailure(once.failures, reason('EPOCH_CRASHED'), attempt(1, at(8)), settings())
    expect(other.failures.convicted).toEqual([])
    const again = judgeFailure(once.failures, reason('EPOCH_CRASHED'), attempt(1, at(7)), settings())
    expect(again.failures.convicted).toEqual([at(7)])
    expect(again.parked?.message).toContain('lines/0 offset 7')
    const letters = judgeFailure(
      once.failures,
      reason('EPOCH_CRASHED'),
      attempt(1, at(7)),
      settings({ onError: 'dead-letter' }),
    )
    expect([letters.failures.convicted, letters.parked]).toEqual([[at(7)], null])
  })

  test('that names the same record again parks, without bisection', () => {
    const first = judgeFailure(noFailures, reason('OPERATOR_FAILED', at(3)), attempt(64), settings())
    expect([first.parked, first.failures.spanMax]).toEqual([null, null])
    expect(judgeFailure(first.failures, reason('OPERATOR_FAILED', at(3)), attempt(64), settings()).parked?.code).toBe(
      'OPERATOR_FAILED',
    )
    expect(judgeFailure(first.failures, reason('OPERATOR_FAILED', at(4)), attempt(64), settings()).parked).toBeNull()
  })

  test('keeps a bounded list of times, and is forgotten with the commit, which doubles the next epoch', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('EPOCH_CRASHED', 'EPOCH_TIMEOUT', 'STORE_UNAVAILABLE'), { maxLength: 150 }),
        (codes) => {
          let failures: Failures = noFailures
          for (const [i, code] of codes.entries()) {
            failures = judgeFailure(
              failures,
              reason(code, null, i),
              attempt(failures.spanMax ?? 64),
              settings(),
            ).failures
            expect(failures.spanMax ?? 1).toBeGreaterThanOrEqual(1)
          }
          expect(failures.atMs.length).toBeLessThanOrEqual(100)
          const forgiven = forgiveFailures(failures, 64)
          expect([forgiven.count, forgiven.convicted, forgiven.notBeforeMs]).toEqual([0, [], 0])
          if (failures.spanMax !== null) expect(forgiven.spanMax ?? 64).toBe(Math.min(64, failures.spanMax * 2))
        },
      ),
    )
  })
})
