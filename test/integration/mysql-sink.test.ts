import { inspect } from 'node:util'
import { expect } from 'vitest'
import { mysql } from '../../lib/adapters/mysql/sink.ts'
import { mariaDbTest as test } from '../support/mariadb.ts'
import { tableCases } from '../support/table-cases.ts'
import { mariaDbDatabase } from '../support/table-databases.ts'
import { kindCases } from '../support/table-kinds.ts'
import { freshName, tableRig } from '../support/table-rig.ts'

for (const [name, run] of Object.entries({ ...tableCases, ...kindCases('mysql') })) {
  test(`a MySQL sink: ${name}`, async ({ mariaDb }) => {
    await expect(run(mariaDbDatabase(mariaDb))).resolves.toBeUndefined()
  })
}

test('maps types exactly', async ({ mariaDb }) => {
  const table = freshName('types')
  await mariaDb.query(`CREATE TABLE ${table} (k int, i8 bigint, u8 bigint unsigned, n decimal(38, 9), f double,
    b boolean, t timestamp(6) NULL, d date, j json, y varbinary(10), s text)`)
  const rig = await tableRig(mysql({ connection: mariaDb.url, table }))
  await rig.base()
  const at = new Date('2024-02-29T23:59:59.987Z')
  const n = '12345678901234567890.123456789'
  await rig.run([
    [{ k: 1, i8: 9_223_372_036_854_775_807n, u8: 18_446_744_073_709_551_615n, n, f: 0.1, b: true, t: at }],
    [{ k: 2, i8: '-9223372036854775808', b: false, j: { a: [1, null, 'ž\\"'] } }],
    [{ k: 3, y: new Uint8Array([0, 92, 10, 255, 39]), s: '\0', f: 1e300 }],
    [{ k: 4, y: null, s: '', d: '2024-02-29', t: null }],
  ])
  const rows = await mariaDb.query(`SET time_zone = '+00:00'; SELECT k, CAST(i8 AS CHAR) AS i8, CAST(u8 AS CHAR) AS u8,
    CAST(n AS CHAR) AS n, f, b, CAST(t AS CHAR) AS t, CAST(d AS CHAR) AS d, j, HEX(y) AS y, s FROM ${table} ORDER BY k`)
  const none = { i8: null, u8: null, n: null, f: null, b: null, t: null, d: null, j: null, y: null, s: null }
  const u8 = '18446744073709551615'
  expect(rows.map((row) => ({ ...row }))).toEqual([
    { ...none, k: 1, i8: '9223372036854775807', u8, n, f: 0.1, b: 1, t: '2024-02-29 23:59:59.987000' },
    { ...none, k: 2, i8: '-9223372036854775808', b: 0, j: expect.anything() },
    { ...none, k: 3, y: '005C0AFF27', s: '\0', f: 1e300 },
    { ...none, k: 4, s: '', d: '2024-02-29' },
  ])
  const [stored] = await mariaDb.query(`SELECT CAST(j AS CHAR) AS j FROM ${table} WHERE k = 2`)
  expect(JSON.parse(String(stored?.j))).toEqual({ a: [1, null, 'ž\\"'] })
})

test('runs a statement of the user once a row, in the transaction of the marker', async ({ mariaDb }) => {
  const table = freshName('sums')
  await mariaDb.query(`CREATE TABLE ${table} (k varchar(20) PRIMARY KEY, n bigint, note text)`)
  const sql = `INSERT INTO ${table} VALUES (?, ?, 'why?') /* a ? */ ON DUPLICATE KEY UPDATE n = n + VALUES(n) -- ?`
  const parameters = (value: unknown, key: unknown) => [key as string, value as bigint]
  const rig = await tableRig(mysql({ connection: mariaDb.url, table, mode: 'sql', sql, parameters }))
  await rig.base()
  await rig.run([
    [1n, "a'"],
    [2n, 'b\\'],
    [9_007_199_254_740_993n, "a'"],
  ])
  const second = await rig.stage([
    [5n, "a'"],
    [null, 'c'],
  ])
  await rig.promote(second)
  expect((await rig.promote(second)).result).toBe('refused')
  const rows = await mariaDb.query(`SELECT k, CAST(n AS CHAR) AS n, note FROM ${table} ORDER BY k`)
  expect(rows.map((row) => ({ ...row }))).toEqual([
    { k: "a'", n: '9007199254740999', note: 'why?' },
    { k: 'b\\', n: '2', note: 'why?' },
    { k: 'c', n: null, note: 'why?' },
  ])
})

test('refuses a table without transactions, and another unique index under an upsert', async ({ mariaDb }) => {
  const table = freshName('engine')
  await mariaDb.query(`CREATE TABLE ${table} (k int PRIMARY KEY, e varchar(10)) ENGINE = MyISAM`)
  const rig = await tableRig(mysql({ connection: mariaDb.url, table, mode: 'upsert', key: ['k'] }))
  await rig.base()
  const committable = await rig.stage([[{ k: 1, e: 'x' }]])
  await expect(rig.promote(committable)).rejects.toThrow(/engine MyISAM .* has no transactions/)
  await mariaDb.query(`ALTER TABLE ${table} ENGINE = InnoDB, ADD UNIQUE KEY by_e (e)`)
  await expect(rig.promote(committable)).rejects.toThrow(/unique index by_e/)
  await mariaDb.query(`ALTER TABLE ${table} DROP KEY by_e`)
  expect(await rig.promote(committable)).toEqual({ result: 'promoted' })
})

test('keys that the collation holds for equal are one row', async ({ mariaDb }) => {
  const table = freshName('collated')
  await mariaDb.query(`CREATE TABLE ${table} (k varchar(10) COLLATE utf8mb4_general_ci PRIMARY KEY, v int)`)
  const rig = await tableRig(mysql({ connection: mariaDb.url, table, mode: 'upsert', key: ['k'] }))
  await rig.base()
  await rig.run([[{ k: 'a', v: 1 }], [null, 'A'], [{ k: 'b', v: 1 }], [{ k: 'B', v: 2 }]])
  expect((await mariaDb.query(`SELECT * FROM ${table}`)).map((row) => ({ ...row }))).toEqual([{ k: 'b', v: 2 }])
})

test('a wrong password is refused without being told', async ({ mariaDb }) => {
  const url = mariaDb.url.replace('open-sesame', 'wrong-sesame')
  const rig = await tableRig(mysql({ connection: url, table: 't' }))
  const error = await rig.base().catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: 'AUTHENTICATION_FAILED' })
  expect(inspect(error, { depth: 10, showHidden: true })).not.toContain('wrong-sesame')
})
