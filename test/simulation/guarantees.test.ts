import { beforeAll, describe, expect, test } from 'vitest'
import { generatedPart, runTable, type Table, tableText } from '../../scripts/guarantees-page.ts'
import { columns, guaranteeOf, runCell, type SinkKind, sinkKinds } from '../support/guarantee-cells.ts'

/** What the literature gives, by sink: a source that cannot be read again, one that can, and the same at most once. */
const literature: Readonly<Record<SinkKind, readonly string[]>> = {
  any: ['at-most-once', 'at-least-once', 'at-most-once'],
  idempotent: ['at-most-once', 'exactly-once', 'exactly-once'],
  'write-ahead': ['at-most-once', 'at-least-once', 'at-most-once'],
  transactional: ['at-most-once', 'exactly-once', 'exactly-once'],
}

let table: Table
beforeAll(async () => {
  table = await runTable()
}, 240_000)

describe.each(sinkKinds)('a sink of kind %s', (kind) => {
  test.each(columns.map(({ title }, index) => ({ title, index })))(
    'has the guarantee of the literature under some crash, and no less under any, behind a $title',
    ({ index }) => {
      const cell = table.get(kind)![index]!
      expect(cell.runs).toBeGreaterThan(100)
      // Seen, not only allowed: a guarantee that is named too low would be wrong as well.
      expect(guaranteeOf(cell)).toBe(literature[kind][index])
      expect(cell.silent, 'a loss that nothing names').toBe(false)
    },
  )
})

test('an idempotent sink shows older values for a moment while an epoch is repeated', () => {
  expect(table.get('idempotent')![1]!.older).toBe(true)
  expect(table.get('transactional')![1]!.older).toBe(false)
})

test('docs/guarantees.md has the table that was run', () => {
  expect(generatedPart().part, 'run npm run guarantees').toBe(tableText(table))
})

test('a process that wakes up late leaves an older value in an idempotent sink, unless it compares epoch and row', async () => {
  const again = columns[1]!
  expect((await runCell('idempotent', again, false, ['zombie'])).repeats).toBe(true)
  expect((await runCell('idempotent', again, true, ['zombie'])).repeats).toBe(false)
  expect((await runCell('transactional', again, false, ['zombie'])).repeats).toBe(false)
}, 120_000)
