import { expect, test } from 'vitest'
import { stalledMs } from '../../lib/epoch/report-health.ts'
import type { PartitionLag } from '../../lib/model/event.ts'
import type { Head } from '../../lib/model/head.ts'

const nowMs = 1_000_000
const sound = { committed: { epoch: 7, atMs: nowMs - 500_000 }, promotedThrough: 7, parked: null, open: null }
const head = (change: object = {}) => ({ ...sound, ...change }) as unknown as Head
const waiting = (records: string, ageMs: number | null): PartitionLag => {
  return { source: 'lines', topic: 'lines', partition: 0, records, ageMs }
}

test.each([
  ['nothing waits', head(), [waiting('0', null)], 0],
  ['nobody knows what waits', head(), null, null],
  ['a record came just now, after a quiet night', head(), [waiting('1', 2000)], 2000],
  ['records wait since the last commit', head(), [waiting('5', 600_000)], 500_000],
  ['one partition waits for longer than the other', head(), [waiting('5', 1000), waiting('5', 9000)], 9000],
  ['timestamps say nothing', head(), [waiting('5', null)], 500_000],
  ['it is parked', head({ parked: { kind: 'failure' } }), [waiting('5', 9000)], 0],
  ['a person has paused it', head({ paused: { drain: null } }), [waiting('5', 9000)], 0],
  ['an epoch is not promoted', head({ promotedThrough: 6 }), null, 0],
])('stalled, when %s', (_, seen, lag, expected) => {
  expect(stalledMs(seen, lag, nowMs)).toBe(expected)
})
