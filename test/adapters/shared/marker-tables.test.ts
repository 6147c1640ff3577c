import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { markerTableSql as mysqlSql } from '../../../lib/adapters/mysql/markers.ts'
import { markerTableSql as postgresSql } from '../../../lib/adapters/postgres/markers.ts'

const page = readFileSync(new URL('../../../docs/databases.md', import.meta.url), 'utf8')

test('the statements that the docs show are those that are run', () => {
  for (const sql of [postgresSql(), mysqlSql()]) expect(page).toContain(sql)
})
