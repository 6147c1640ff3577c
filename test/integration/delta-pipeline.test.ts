import { cpSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { entryBytes, entryName } from '../../lib/adapters/delta/actions.ts'
import type { ColumnSpecs } from '../../lib/adapters/shared/parquet-columns.ts'
import { delta } from '../../lib/delta.ts'
import { text } from '../../lib/model/serde.ts'
import { pipeline } from '../../lib/stream/pipeline.ts'
import { topic } from '../../lib/stream/topic.ts'
import { diskTable, logEntries, type SeenTable, tableRows } from '../support/delta-table.ts'
import { install } from '../support/table-runs.ts'

const settings = {
  checkpoint: { intervalMs: 0 },
  promotionRetryMs: [50, 200],
  retain: { epochs: 50 },
  epoch: { spanMax: 40 },
} as const

/** Lines `n name` become rows. */
function linesPipeline(table: string, columns: ColumnSpecs = { n: 'long', name: 'string' }, lanes = 1) {
  return pipeline('lines', settings)
    .from(topic('lines', { value: text() }))
    .keyBy((line) => line.split(' ')[1]!)
    .count('count')
    .to(
      'lake',
      delta({
        table,
        columns,
        lanes,
        checkpointEvery: 7,
        row: (n: number, name: string) => ({ n, name }),
      }),
    )
}

function freshTable() {
  const seen = diskTable()
  onTestFinished(seen.dispose)
  return seen
}

const linesOf = (from: number, count: number) =>
  Array.from({ length: count }, (_, i) => `${from + i} c${(from + i) % 5}`)

/** The count that each name has in the newest row. */
async function counts(seen: SeenTable): Promise<Record<string, number>> {
  const newest: Record<string, number> = {}
  const rows = await tableRows(seen)
  expect(new Set(rows.map(({ n, name }) => `${n} ${name}`)).size, 'a row twice').toBe(rows.length)
  for (const { n, name } of rows) newest[String(name)] = Math.max(newest[String(name)] ?? 0, Number(n))
  return newest
}

const fold = (lines: number) =>
  Object.fromEntries(
    [0, 1, 2, 3, 4].map((c) => [`c${c}`, Array.from({ length: lines }, (_, i) => i % 5).filter((i) => i === c).length]),
  )

test('a table put back from a copy of ten epochs ago is healed', async () => {
  const seen = freshTable()
  const runs = install(linesPipeline(seen.table, undefined, 2))
  onTestFinished(runs.remove)
  await runs.append(...linesOf(0, 200))
  expect(await runs.run()).toMatchObject({ reason: 'caught-up' })
  cpSync(seen.table, join(seen.directory, 'copy'), { recursive: true })
  await runs.append(...linesOf(200, 400))
  expect(await runs.run()).toMatchObject({ reason: 'caught-up' })
  rmSync(seen.table, { recursive: true })
  renameSync(join(seen.directory, 'copy'), seen.table)
  expect(await counts(seen)).toEqual(fold(200))
  await runs.append(...linesOf(600, 40))
  expect(await runs.run()).toMatchObject({ reason: 'caught-up' })
  expect(runs.events).toContainEqual(expect.objectContaining({ event: 'healed', sink: 'lake' }))
  expect(await counts(seen)).toEqual(fold(640))
})

test('a table that does not fit parks the pipeline naming column and epoch; once mended, nothing is lost or repeated', async () => {
  const seen = freshTable()
  const runs = install(linesPipeline(seen.table))
  onTestFinished(runs.remove)
  await runs.append(...linesOf(0, 100))
  expect(await runs.run()).toMatchObject({ reason: 'caught-up' })
  const entries = await logEntries(seen)
  const good = entries.flat().find(({ metaData }) => metaData !== undefined)!
  const bad = { ...good.metaData, schemaString: String(good.metaData!.schemaString).replace('"long"', '"string"') }
  await seen.write(entryName(entries.length), entryBytes([{ metaData: bad as never }]))
  await runs.append(...linesOf(100, 20))
  const parked = await runs.run({ signal: AbortSignal.timeout(3000) })
  expect(parked).toMatchObject({ reason: expect.stringMatching(/parked|stopped/) })
  const told = runs.events.find(({ event }) => event === 'parked')
  expect(told).toMatchObject({ code: 'SINK_SCHEMA_INVALID', message: expect.stringMatching(/epoch \d+.*column n/) })
  expect(await counts(seen)).toEqual(fold(100))
  await seen.write(entryName(entries.length + 1), entryBytes([good as never]))
  expect(await runs.run({ resume: true })).toMatchObject({ reason: 'caught-up' })
  expect(await counts(seen)).toEqual(fold(120))
})

test('a table that is gone stops the pipeline in place of beginning anew', async () => {
  const seen = freshTable()
  const runs = install(linesPipeline(seen.table))
  onTestFinished(runs.remove)
  await runs.append(...linesOf(0, 10))
  expect(await runs.run()).toMatchObject({ reason: 'caught-up' })
  rmSync(seen.table, { recursive: true })
  await runs.append(...linesOf(10, 10))
  expect(await runs.run({ signal: AbortSignal.timeout(3000) })).toMatchObject({ code: 'MARKER_MISSING' })
  expect(await seen.names().catch(() => [])).toEqual([])
})

test('a pipeline whose file has more columns adds them to the table, and promotes what was staged before as it was', async () => {
  const seen = freshTable()
  const runs = install(linesPipeline(seen.table))
  onTestFinished(runs.remove)
  await runs.append(...linesOf(0, 10))
  expect(await runs.run()).toMatchObject({ reason: 'caught-up' })
  const wider = runs.rebuild(linesPipeline(seen.table, { n: 'long', name: 'string', note: 'string' }))
  await wider.append(...linesOf(10, 10))
  expect(await wider.run()).toMatchObject({ reason: 'caught-up' })
  expect(await counts(seen)).toEqual(fold(20))
  const changes = (await logEntries(seen)).flat().filter(({ metaData }) => metaData !== undefined)
  expect(changes).toHaveLength(2)
  expect(String(changes[1]!.metaData!.schemaString)).toContain('"note"')
})
