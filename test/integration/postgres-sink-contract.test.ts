import { expect } from 'vitest'
import { postgres as postgresSink } from '../../lib/adapters/postgres/sink.ts'
import { contractCases } from '../../lib/testing/contracts/contract.ts'
import { sinkContract } from '../../lib/testing/contracts/sink.ts'
import { sinkRefusalContract } from '../../lib/testing/contracts/sink-refusals.ts'
import { type Postgres, postgresTest as test } from '../support/postgres.ts'
import { type ContractDatabase, freshTable } from '../support/table-contract.ts'

let server: Postgres

const database: ContractDatabase = {
  async createTable(table, refused) {
    const check = refused === null ? '' : `, CHECK (v <> '${refused}')`
    await server.query(`CREATE TABLE ${table} (n bigserial, k text, v text, ts bigint${check})`)
  },
  spec: (options) => postgresSink({ ...options, connection: () => server.url }),
  async visible(table) {
    const rows = await server.query(`SELECT k AS key, v AS value, ts::float8 AS "timestampMs" FROM ${table} ORDER BY n`)
    return rows as Awaited<ReturnType<ContractDatabase['visible']>>
  },
  async backup(table, markers) {
    await server.query(`CREATE TABLE ${table}_b AS TABLE ${table}; CREATE TABLE ${markers}_b AS TABLE ${markers}`)
    return async () => {
      await server.query(`BEGIN; TRUNCATE ${table}, ${markers};
        INSERT INTO ${table} TABLE ${table}_b; INSERT INTO ${markers} TABLE ${markers}_b; COMMIT`)
    }
  },
  async dropMarker(markers, lane) {
    await server.query(`DELETE FROM ${markers} WHERE lane = $1`, [lane])
  },
}

const cases = [
  ...contractCases(sinkContract, { name: 'PostgreSQL', fresh: () => freshTable(database) }),
  ...contractCases(sinkRefusalContract, { name: 'PostgreSQL', fresh: () => freshTable(database, 'dead-letter') }),
]
for (const { name, run } of cases) {
  test(`a PostgreSQL sink: ${name}`, async ({ postgres }) => {
    server = postgres
    await expect(run()).resolves.toBeUndefined()
  })
}
