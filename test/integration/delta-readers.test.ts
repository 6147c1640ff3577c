import { expect, onTestFinished, vi } from 'vitest'
import { laneAppId } from '../../lib/adapters/delta/marker-txns.ts'
import { type DeltaReaders, startDeltaReaders, deltaTest as test } from '../support/delta.ts'
import { deltaRig } from '../support/delta-rig.ts'
import { diskTable, logEntries } from '../support/delta-table.ts'

const columns = { epoch: 'long', n: 'long', name: 'string' } as const
const rowsOf = (epoch: number, count: number) =>
  Array.from({ length: count }, (_, n) => ({ epoch, n, name: `row ${n}` }))
const appId = laneAppId({ stage: 'test', pipeline: 'p', sink: 'rows', lane: 0 })

function freshTable() {
  const seen = diskTable()
  onTestFinished(seen.dispose)
  return seen
}

/** A second Python process, for what runs beside the test. */
function another(): DeltaReaders {
  const readers = startDeltaReaders()
  onTestFinished(readers.stop)
  return readers
}

test('delta-rs and DuckDB read every type as it was written', async ({ readers }) => {
  const seen = freshTable()
  const rig = await deltaRig({
    table: seen.table,
    columns: {
      id: { type: 'long', nullable: false },
      i: 'integer',
      d: 'double',
      price: 'decimal(38,10)',
      small: 'decimal(9,2)',
      s: 'string',
      j: 'json',
      b: 'boolean',
      x: 'binary',
      day: 'date',
      at: 'timestamp',
    },
  })
  await rig.driver.register()
  await rig.run(1, [
    {
      id: 9223372036854775807n,
      i: -5,
      d: 0.1,
      price: '-1234567890123456789012345678.0123456789',
      small: '-12.5',
      s: 'ключ "x"\n',
      j: { a: [1, null] },
      b: true,
      x: new Uint8Array([0, 255]),
      day: '1969-12-31',
      at: '2026-11-30T12:00:00.123456+01:00',
    },
    { id: '-9223372036854775808', s: '', b: false },
  ])
  const expected = [
    ['-9223372036854775808', null, null, null, null, '', null, 'false', null, null, null],
    [
      '9223372036854775807',
      '-5',
      '0.1',
      '-1234567890123456789012345678.0123456789',
      '-12.50',
      'ключ "x"\n',
      '{"a":[1,null]}',
      'true',
      '00ff',
      '1969-12-31',
      '2026-11-30 11:00:00.123456',
    ],
  ]
  const text = `
    def text(v):
        if isinstance(v, bytes): return v.hex()
        if isinstance(v, bool): return str(v).lower()
        if hasattr(v, 'utcoffset') and v.utcoffset() is not None: return v.astimezone(timezone.utc).strftime('%Y-%m-%d %H:%M:%S.%f')
        return None if v is None else str(v)`.replaceAll('\n    ', '\n')
  const order = 'select * from t order by id'
  for (const reader of ['sql', 'duck']) {
    const code = `from datetime import timezone${text}\nresult = [[text(v) for v in row] for row in ${reader}(table, order)]`
    expect(await readers.run(code, { table: seen.table, order }), reader).toEqual(expected)
  }
  const schema = await readers.run('import json\nresult = json.loads(DeltaTable(table).schema().to_json())', {
    table: seen.table,
  })
  expect(schema).toMatchObject({
    fields: expect.arrayContaining([{ name: 'at', type: 'timestamp', nullable: true, metadata: {} }]),
  })
})

test('statistics let delta-rs leave out files, and partitions are read from the log', async ({ readers }) => {
  const seen = freshTable()
  const rig = await deltaRig({
    table: seen.table,
    columns: { ...columns, price: 'decimal(18,2)', at: 'timestamp', day: 'date', region: 'string' },
    partitionBy: ['day', 'region'],
  })
  await rig.driver.register()
  for (const epoch of [1, 2, 3]) {
    const more = { price: `${epoch}.50`, at: 1_000_000n * BigInt(epoch), day: '2026-11-30' }
    await rig.run(epoch, [
      ...rowsOf(epoch, 10).map((row) => ({ ...row, ...more, region: 'a/b c' })),
      ...rowsOf(epoch, 2).map((row) => ({ ...row, ...more, region: null })),
    ])
  }
  const stats = await readers.run<unknown[][]>(
    `
t = DeltaTable(table).get_add_actions(flatten=True)
names = ['num_records', 'partition.region', 'min.epoch', 'max.epoch', 'null_count.epoch', 'min.name', 'max.name']
result = sorted(map(list, zip(*[t.column(n).to_pylist() for n in names])), key=str)`.trim(),
    { table: seen.table },
  )
  expect(stats).toHaveLength(6)
  expect(stats).toContainEqual([10, 'a/b c', 2, 2, 0, 'row 0', 'row 9'])
  expect(stats).toContainEqual([2, null, 3, 3, 0, 'row 0', 'row 1'])
  const query = (text: string) => readers.run('result = sql(table, text)', { table: seen.table, text })
  expect(await query("select count(*) from t where region = 'a/b c' and day = '2026-11-30'")).toEqual([[30]])
  expect(await query('select count(*) from t where region is null and epoch >= 2')).toEqual([[4]])
  expect(await query('select count(*) from t where price > 2.4 and price < 3')).toEqual([[12]])
  expect(await query("select count(*) from t where at = timestamp '1970-01-01T00:00:02Z'")).toEqual([[12]])
})

test('a reader that never rests sees whole epochs only', async ({ readers }) => {
  const seen = freshTable()
  const rig = await deltaRig({ table: seen.table, columns, checkpointEvery: 5 })
  await rig.driver.register()
  const beside = another()
  const watching = beside.run<{ readings: number; torn: unknown[]; last: number }>(
    `
readings, torn, last = 0, [], 0
while last < 30:
    seen = sql(table, 'select epoch, count(*) from t group by epoch order by epoch')
    readings += 1
    if seen != [[e, 100 + e] for e in range(1, len(seen) + 1)] or len(seen) < last: torn.append(seen)
    last = len(seen)
result = {'readings': readings, 'torn': torn, 'last': last}`.trim(),
    { table: seen.table },
  )
  for (let epoch = 1; epoch <= 30; epoch++) {
    const committables = await rig.driver.commit(
      epoch,
      rowsOf(epoch, 50).map((value) => ({ value: value as never })),
      rowsOf(epoch, 50 + epoch).map((value) => ({ value: value as never })),
    )
    for (const committable of committables) expect(await rig.promote(committable)).toEqual({ result: 'promoted' })
    await new Promise((resolve) => setTimeout(resolve, 15))
  }
  const watched = await watching
  expect(watched.torn).toEqual([])
  expect(watched.readings).toBeGreaterThan(3)
  expect(await readers.run('result = DeltaTable(table).transaction_version(appId)', { table: seen.table, appId })).toBe(
    30,
  )
})

test('a foreign writer that appends all the time and the sink both get through', async ({ readers }) => {
  const seen = freshTable()
  const rig = await deltaRig({ table: seen.table, columns, checkpointEvery: 7 })
  await rig.driver.register()
  const appending = another().run<number>(
    `
import os
count = 0
while not os.path.exists(stop):
    write_deltalake(table, rows(epoch=[0], n=[count], name=['foreign']), mode='append')
    count += 1
result = count`.trim(),
    { table: seen.table, stop: `${seen.directory}/stop` },
  )
  const entries = async () => (await seen.names()).filter((name) => /\d{20}\.json$/.test(name)).length
  const before = await entries()
  await vi.waitUntil(async () => (await entries()) > before, { timeout: 30_000 })
  for (let epoch = 1; epoch <= 25; epoch++) {
    await rig.run(epoch, rowsOf(epoch, 4))
    await new Promise((resolve) => setTimeout(resolve, 15))
  }
  await seen.write('../stop', Buffer.alloc(0))
  const foreign = await appending
  expect(foreign).toBeGreaterThan(3)
  const query = 'select epoch, count(*), count(distinct n) from t group by epoch order by epoch'
  const counts = await readers.run('result = sql(table, query)', { table: seen.table, query })
  const ours = Array.from({ length: 25 }, (_, i) => [i + 1, 4, 4])
  expect(counts).toEqual([[0, foreign, foreign], ...ours])
})

test('goes on after delta-rs made a checkpoint, compacted, cleaned up the log and vacuumed', async ({ readers }) => {
  const seen = freshTable()
  const rig = await deltaRig({ table: seen.table, columns })
  await rig.driver.register()
  for (const epoch of [1, 2, 3]) await rig.run(epoch, rowsOf(epoch, 3))
  await readers.run(
    `
t = DeltaTable(table)
t.alter.set_table_properties({'delta.logRetentionDuration': 'interval 0 days'})
t.optimize.compact()
t.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
t = DeltaTable(table)
t.create_checkpoint()
t.cleanup_metadata()`.trim(),
    { table: seen.table },
  )
  const left = (await seen.names()).filter((name) => /\d{20}\.json$/.test(name))
  expect(left.length).toBeLessThan(4)
  await rig.run(4, rowsOf(4, 3))
  await rig.restart()
  expect(await rig.driver.sink.marker(0)).toEqual(rig.driver.markerOf(4))
  await rig.run(5, rowsOf(5, 3))
  const query = 'select epoch, count(*) from t group by epoch order by epoch'
  for (const reader of ['sql', 'duck']) {
    const counts = await readers.run(`result = ${reader}(table, query)`, { table: seen.table, query })
    expect(counts, reader).toEqual([1, 2, 3, 4, 5].map((epoch) => [epoch, 3]))
  }
})

test('delta-rs reads our checkpoint when the entries before it are gone', async ({ readers }) => {
  const seen = freshTable()
  const rig = await deltaRig({ table: seen.table, columns, checkpointEvery: 4 })
  await rig.driver.register()
  await rig.run(1, rowsOf(1, 3))
  await readers.run('DeltaTable(table).optimize.compact()', { table: seen.table })
  for (const epoch of [2, 3, 4, 5, 6]) await rig.run(epoch, rowsOf(epoch, 3))
  const newest = (await seen.names()).filter((name) => name.endsWith('.checkpoint.parquet')).at(-1)!
  expect(newest).toBe('_delta_log/00000000000000000008.checkpoint.parquet')
  for (const name of await seen.names()) if (/\d{20}\.json$/.test(name) && name < newest) await seen.remove(name)
  const code = `
t = DeltaTable(table)
p = t.protocol()
result = [t.version(), p.min_reader_version, p.min_writer_version, t.transaction_version(appId), sql(table, query)]`.trim()
  const query = 'select epoch, count(*) from t group by epoch order by epoch'
  const epochs = [1, 2, 3, 4, 5, 6].map((epoch) => [epoch, 3])
  expect(await readers.run(code, { table: seen.table, appId, query })).toEqual([8, 1, 2, 6, epochs])
  await rig.restart()
  await rig.run(7, rowsOf(7, 3))
  expect((await logEntries(seen)).length).toBe(2)
})

test('adds columns to the table when the sink has more, and parks naming the column when they do not fit', async ({
  readers,
}) => {
  const seen = freshTable()
  await readers.run("write_deltalake(table, rows(n=[1], name=['foreign']))", { table: seen.table })
  const rig = await deltaRig({ table: seen.table, columns })
  await rig.driver.register()
  await rig.run(1, rowsOf(1, 1))
  await rig.restart({ columns: { ...columns, more: 'decimal(9,2)' } })
  await rig.run(2, [{ epoch: 2, n: 1, more: '1.25' }])
  const query = 'select epoch, n, name, cast(more as varchar) from t order by epoch nulls first'
  const args = { table: seen.table, query }
  const shown = [
    [null, 1, 'foreign', null],
    [1, 0, 'row 0', null],
    [2, 1, null, '1.25'],
  ]
  expect(await readers.run('result = sql(table, query)', args)).toEqual(shown)
  await rig.restart({ columns: { ...columns, more: 'string' } })
  const [stuck] = await rig.commit(3, [{ epoch: 3, n: 1, more: 'text' }])
  await expect(rig.promote(stuck!)).rejects.toMatchObject({
    code: 'SINK_SCHEMA_INVALID',
    message: expect.stringMatching(/sink rows, lane 0, epoch 3: table .* has column more as "decimal\(9,2\)"/),
    details: expect.objectContaining({ column: 'more' }),
  })
  expect(await readers.run('result = sql(table, query)', args)).toEqual(shown)
})

test('refuses a table that asks for more of its writers, naming what', async ({ readers }) => {
  const seen = freshTable()
  const config = "configuration={'delta.enableDeletionVectors': 'true'}"
  await readers.run(`write_deltalake(table, rows(n=[1]), ${config})`, { table: seen.table })
  const rig = await deltaRig({ table: seen.table, columns })
  await expect(rig.driver.register()).rejects.toMatchObject({
    code: 'SINK_SCHEMA_INVALID',
    message: expect.stringMatching(/asks for reader version 3.*deletionVectors/),
  })
})
