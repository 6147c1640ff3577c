import { expect, test } from 'vitest'
import { laneState } from '../../lib/cli/list-sinks.ts'
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

test('of a lane it is said whether it fits the ledger, and whether rows wait there that it refused', () => {
  const marker = { incarnation: 'a', epoch: 3, hash: 'h' }
  const lane = { registered: true, marker, refusing: false, code: null }
  expect([
    laneState(lane),
    laneState({ ...lane, refusing: true }),
    laneState({ ...lane, refusing: true, code: 'MARKER_FOREIGN' }),
    laneState({ ...lane, registered: false }),
    laneState({ ...lane, registered: false, marker: null }),
  ]).toEqual([
    'sound',
    'sound, holds refused rows',
    'MARKER_FOREIGN, holds refused rows',
    'unregistered',
    'not yet registered',
  ])
})
