/**
 * Every kind of refusal that a table knows, in both modes: each names sink, row key, epoch and column, or the
 * columns of the constraint, and nothing of the epoch is there.
 */
import assert from 'node:assert/strict'
import { isPawlError, type PawlError } from '../../lib/model/errors.ts'
import { type AnyRow, freshName, markerOf, type TableDatabase, tableRig } from './table-rig.ts'

type Case = (database: TableDatabase) => Promise<void>
type Dialect = 'postgres' | 'mysql'

interface Kind {
  /** Columns and constraints beside the key; `%` stands for a name of the test's own. */
  readonly columns: string | Readonly<Record<Dialect, string>>
  readonly good: AnyRow
  readonly bad: AnyRow
  readonly column: string
  /** Statements that make what the table refers to; `%` as in `columns`. */
  readonly before?: readonly string[]
  /** Upserts into such a table are refused as a whole by MySQL. */
  readonly insertOnly?: 'mysql'
}

const kinds: Readonly<Record<string, Kind>> = {
  'NOT NULL': { columns: 'v int NOT NULL', good: { v: 1 }, bad: { v: null }, column: 'v' },
  'a column that is left out and has no default': {
    columns: 'v int NOT NULL, w int',
    good: { v: 1, w: 1 },
    bad: { w: 1 },
    column: 'v',
  },
  'text too long': { columns: 'v varchar(5)', good: { v: 'short' }, bad: { v: 'too long' }, column: 'v' },
  'a number out of range': { columns: 'v int', good: { v: 1 }, bad: { v: 5_000_000_000 }, column: 'v' },
  'text for a number': { columns: 'v int', good: { v: 1 }, bad: { v: 'seven' }, column: 'v' },
  'a decimal out of range': {
    columns: 'v decimal(5, 2)',
    good: { v: '123.45' },
    bad: { v: '12345.67' },
    column: 'v',
  },
  'a date that is none': { columns: 'v date', good: { v: '2024-02-29' }, bad: { v: '2023-02-29' }, column: 'v' },
  'a time that is none': {
    columns: { postgres: 'v timestamptz', mysql: 'v datetime(6)' },
    good: { v: new Date(0) },
    bad: { v: '2024-01-01T25:00:00Z' },
    column: 'v',
  },
  'a named CHECK': {
    columns: 'v int, w int, CONSTRAINT positive CHECK (w > 0)',
    good: { v: 0, w: 1 },
    bad: { v: 1, w: 0 },
    column: 'w',
  },
  'the CHECK of a column': { columns: 'v int, w int CHECK (w > 0)', good: { w: 1 }, bad: { w: 0 }, column: 'w' },
  'a CHECK of two columns': {
    columns: 'w int, v int, CHECK (v > w)',
    good: { v: 2, w: 1 },
    bad: { v: 1, w: 2 },
    column: 'w, v',
  },
  UNIQUE: {
    columns: 'v int, w int, UNIQUE (w)',
    good: { v: 1, w: 7 },
    bad: { v: 2, w: 7 },
    column: 'w',
    insertOnly: 'mysql',
  },
  'UNIQUE of two columns': {
    columns: 'v int, w varchar(9), CONSTRAINT %_once UNIQUE (v, w)',
    good: { v: 1, w: 'x' },
    bad: { v: 1, w: 'x' },
    column: 'v, w',
    insertOnly: 'mysql',
  },
  'a foreign key': {
    before: ['CREATE TABLE %_parents (id int PRIMARY KEY)', 'INSERT INTO %_parents VALUES (1)'],
    columns: 'w int, v int, FOREIGN KEY (v) REFERENCES %_parents (id)',
    good: { v: 1 },
    bad: { v: 2 },
    column: 'v',
  },
  JSON: { columns: 'w int, v json', good: { v: { a: [1] } }, bad: { v: '{"a": ' }, column: 'v' },
  bytes: {
    columns: { postgres: 'v bytea', mysql: 'v varbinary(3)' },
    good: { v: new Uint8Array([0, 255]) },
    bad: { v: '\\xno hex' },
    column: 'v',
  },
}

/** 60 rows of which two are refused: the first is the one to be named. */
async function refusedByName(database: TableDatabase, mode: 'insert' | 'upsert', columns: string, kind: Kind) {
  const table = freshName('kind')
  const named = (sql: string) => sql.replaceAll('%', table)
  for (const statement of kind.before ?? []) await database.query(named(statement))
  await database.query(`CREATE TABLE ${table} (k int PRIMARY KEY, ${named(columns)})`)
  const rig = await tableRig(database.spec({ table, mode, key: ['k'], connection: database.url }))
  await rig.base()
  await rig.run([[{ k: 1, ...kind.good }]])
  const rows: [AnyRow][] = columns.includes('UNIQUE')
    ? []
    : Array.from({ length: 58 }, (_, i) => [{ k: 10 + i, ...kind.good }])
  rows.splice(40, 0, [{ k: 5, ...kind.bad }], [{ k: 6, ...kind.bad }])
  const error = await refusalOf(rig.promote(await rig.stage(rows, 60)))
  const { sink, lane, epoch, rowKey, column } = error.details
  assert.deepEqual(
    { code: error.code, sink, lane, epoch, rowKey, column },
    { code: 'ROWS_REFUSED', sink: 'rows', lane: 0, epoch: 2, rowKey: 'k=5', column: kind.column },
    error.message,
  )
  assert.ok(error.message.includes(`row k=5, column ${kind.column}: `), error.message)
  assert.equal((await database.query(`SELECT k FROM ${table}`)).length, 1)
  assert.deepEqual(await rig.sink.marker(0), markerOf(rig.incarnation, 1))
  await rig.sink.close()
}

async function refusalOf(promotion: Promise<unknown>): Promise<PawlError> {
  const error = await promotion.catch((thrown: unknown) => thrown)
  if (isPawlError(error)) return error
  throw new Error(`not refused, but: ${String(error)}`)
}

/** Cases by name, of one dialect. */
export function kindCases(dialect: Dialect): Readonly<Record<string, Case>> {
  const cases: Record<string, Case> = {}
  for (const mode of ['insert', 'upsert'] as const)
    for (const [name, kind] of Object.entries(kinds)) {
      const { columns, insertOnly } = kind
      const mine = typeof columns === 'string' ? columns : columns[dialect]
      if (mode === 'upsert' && insertOnly === dialect) continue
      cases[`${mode}: names row and column of ${name}`] = (database) => refusedByName(database, mode, mine, kind)
    }
  return cases
}
