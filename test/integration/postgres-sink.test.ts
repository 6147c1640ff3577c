import { expect } from 'vitest'
import { postgres as postgresSink } from '../../lib/adapters/postgres/sink.ts'
import { postgresTest as test } from '../support/postgres.ts'
import { tableCases } from '../support/table-cases.ts'
import { postgresDatabase } from '../support/table-databases.ts'
import { kindCases } from '../support/table-kinds.ts'
import { freshName, tableRig } from '../support/table-rig.ts'

for (const [name, run] of Object.entries({ ...tableCases, ...kindCases('postgres') })) {
  test(`a PostgreSQL sink: ${name}`, async ({ postgres }) => {
    await expect(run(postgresDatabase(postgres))).resolves.toBeUndefined()
  })
}

test('names column and key of what a constraint refuses at COMMIT only, and goes on once it is mended', async ({
  postgres,
}) => {
  const table = freshName('later')
  await postgres.query(
    `CREATE TABLE ${table} (k int, v int, CONSTRAINT ${table}_v UNIQUE (v) DEFERRABLE INITIALLY DEFERRED)`,
  )
  const rig = await tableRig(postgresSink({ connection: postgres.url, table }))
  await rig.base()
  const committable = await rig.stage([[{ k: 1, v: 6 }], [{ k: 2, v: 7 }], [{ k: 3, v: 7 }]])
  await expect(rig.promote(committable)).rejects.toMatchObject({
    code: 'ROWS_REFUSED',
    message: expect.stringContaining('at COMMIT, row with (v)=(7), column v: '),
    details: { sink: 'rows', rowKey: '(v)=(7)', column: 'v' },
  })
  expect(await postgres.query(`SELECT * FROM ${table}`)).toEqual([])
  await postgres.query(`ALTER TABLE ${table} DROP CONSTRAINT ${table}_v`)
  expect(await rig.promote(committable)).toEqual({ result: 'promoted' })
  expect(await postgres.query(`SELECT k FROM ${table} ORDER BY k`)).toEqual([{ k: 1 }, { k: 2 }, { k: 3 }])
})

test('maps types exactly', async ({ postgres }) => {
  const table = freshName('types')
  await postgres.query(`CREATE TABLE ${table} (k int, i8 bigint, n numeric, f float8, b bool, t timestamptz,
    d date, j jsonb, y bytea, s text, a int[])`)
  const rig = await tableRig(postgresSink({ connection: postgres.url, table }))
  await rig.base()
  const at = new Date('2024-02-29T23:59:59.987Z')
  await rig.run([
    [{ k: 1, i8: 9_223_372_036_854_775_807n, n: '12345678901234567890.123456789', f: 0.1, b: true, t: at }],
    [
      {
        k: 2,
        i8: '-9223372036854775808',
        f: Number.NEGATIVE_INFINITY,
        b: false,
        t: '2024-03-01T00:59:59.987654+01:00',
      },
    ],
    [
      {
        k: 3,
        j: { a: [1, null, 'ž\\"'], big: '9007199254740993' },
        y: new Uint8Array([0, 92, 10, 255]),
        s: '',
        a: '{1,2}',
      },
    ],
    [{ k: 4, j: null, y: null, s: null, f: -0, d: '2024-02-29' }],
  ])
  const rows =
    await postgres.query(`SELECT k, i8::text, n::text, f::text, b, (t AT TIME ZONE 'UTC')::text AS t, d::text,
    j, encode(y, 'hex') AS y, s, a FROM ${table} ORDER BY k`)
  const none = { i8: null, n: null, f: null, b: null, t: null, d: null, j: null, y: null, s: null, a: null }
  const n = '12345678901234567890.123456789'
  expect(rows).toEqual([
    { ...none, k: 1, i8: '9223372036854775807', n, f: '0.1', b: true, t: '2024-02-29 23:59:59.987' },
    { ...none, k: 2, i8: '-9223372036854775808', f: '-Infinity', b: false, t: '2024-02-29 23:59:59.987654' },
    { ...none, k: 3, j: { a: [1, null, 'ž\\"'], big: '9007199254740993' }, y: '005c0aff', s: '', a: [1, 2] },
    { ...none, k: 4, f: '-0', d: '2024-02-29' },
  ])
})

test('runs a statement of the user once a row, in the transaction of the marker', async ({ postgres }) => {
  const table = freshName('sums')
  await postgres.query(`CREATE TABLE ${table} (k text PRIMARY KEY, n bigint)`)
  const sql = `INSERT INTO ${table} AS t VALUES ($1, $2) ON CONFLICT (k) DO UPDATE SET n = t.n + excluded.n`
  const parameters = (value: unknown, key: unknown) => [key as string, value as bigint]
  const rig = await tableRig(postgresSink({ connection: postgres.url, table, mode: 'sql', sql, parameters }))
  await rig.base()
  await rig.run([
    [1n, 'a\t'],
    [2n, 'b\\'],
    [9_007_199_254_740_993n, 'a\t'],
  ])
  const second = await rig.stage([
    [5n, 'a\t'],
    [null, 'c'],
  ])
  await rig.promote(second)
  expect((await rig.promote(second)).result).toBe('refused')
  expect(await postgres.query(`SELECT k, n::text FROM ${table} ORDER BY k`)).toEqual([
    { k: 'a\t', n: '9007199254740999' },
    { k: 'b\\', n: '2' },
    { k: 'c', n: null },
  ])
})

test('writes into the table that the epoch was committed for, whatever the pipeline file says now', async ({
  postgres,
}) => {
  const table = freshName('before')
  await postgres.query(`CREATE TABLE ${table} (k int); CREATE TABLE ${table}_now (k int)`)
  const rig = await tableRig(postgresSink({ connection: postgres.url, table }), { pipeline: table })
  await rig.base()
  const committable = await rig.stage([[{ k: 1 }]])
  const options = { store: rig.store, pipeline: table }
  const changed = await tableRig(postgresSink({ connection: postgres.url, table: `${table}_now` }), options)
  const permit = { incarnation: rig.incarnation, epoch: 1, manifest: { sha256: 'hash-of-1' } }
  expect(await changed.sink.promote(committable, permit as never)).toEqual({ result: 'promoted' })
  expect(await postgres.query(`SELECT * FROM ${table}`)).toEqual([{ k: 1 }])
})

test('needs no right to make tables where the table of markers is there', async ({ postgres }) => {
  const table = freshName('rights')
  const markers = `${table}_markers`
  const owner = await tableRig(postgresSink({ connection: postgres.url, table, markerTable: markers }))
  await owner.base()
  await postgres.query(`CREATE TABLE ${table} (k int); CREATE ROLE ${table} LOGIN;
    GRANT INSERT ON ${table} TO ${table}; GRANT SELECT, INSERT, UPDATE ON ${markers} TO ${table}`)
  const { port } = postgres
  const connection = { host: '127.0.0.1', port, user: table, password: () => 'not-asked', database: 'postgres' }
  const rig = await tableRig(postgresSink({ connection, table, markerTable: markers }))
  await rig.base()
  await rig.run([[{ k: 1 }]])
  const refused = await tableRig(postgresSink({ connection, table, markerTable: `${markers}_2` }))
  await expect(refused.base()).rejects.toMatchObject({ code: 'AUTHORIZATION_FAILED' })
})
