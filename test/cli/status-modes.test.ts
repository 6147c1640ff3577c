import { expect, test } from 'vitest'
import { headLines, headRecord } from '../../lib/cli/report-status.ts'
import { headWith } from '../epoch/support.ts'

const style = { colours: false, width: 100, nowMs: 1000 } as never

test('status says what at-most-once gave up, and which lanes hold refused rows', () => {
  const recent = [{ epoch: 4, sink: 'mail', lane: 0, rows: 7, code: 'UNKNOWN_RESULT' }]
  const refusing = [{ sink: 'orders', lane: 2 }]
  const head = headWith({ unconfirmed: { rows: 12, recent }, refusing })
  const text = headLines(head, null, style).join('\n')
  expect(text).toMatch(/unconfirmed +12 rows were given up/)
  expect(text).toMatch(/refused +orders\/2: the next epoch/)
  expect(headRecord(head, null)).toMatchObject({ unconfirmed: { rows: 12, recent }, refusing })
})

test('status says nothing of either where there is none', () => {
  const text = headLines(headWith(), null, style).join('\n')
  expect(text).not.toMatch(/unconfirmed|refused/)
})
