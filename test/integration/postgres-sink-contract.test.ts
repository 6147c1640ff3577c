import { expect } from 'vitest'
import { postgres as postgresSink } from '../../lib/adapters/postgres/sink.ts'
import { contractCases } from '../../lib/testing/contracts/contract.ts'
import { sinkContract } from '../../lib/testing/contracts/sink.ts'
import { sinkFaultContract } from '../../lib/testing/contracts/sink-faults.ts'
import { sinkRefusalContract } from '../../lib/testing/contracts/sink-refusals.ts'
import { sinkSizeContractOf } from '../../lib/testing/contracts/sink-size.ts'
import { type CuttingProxy, cuttingBy, cuttingProxy } from '../support/cutting-proxy.ts'
import { type Postgres, postgresTest as test } from '../support/postgres.ts'
import { manyRows } from '../support/sink-sizes.ts'
import { postgresSize } from '../support/sink-sizes-servers.ts'
import { type ContractDatabase, freshTable } from '../support/table-contract.ts'

let server: Postgres
let proxy: CuttingProxy

const database: ContractDatabase = {
  async createTable(table, refused) {
    const check = refused === null ? '' : `, CHECK (v <> '${refused}')`
    await server.query(`CREATE TABLE ${table} (n bigserial, k text, v text, ts bigint${check})`)
  },
  spec: (options) =>
    postgresSink({ ...options, connection: () => server.url.replace(`:${server.port}`, `:${proxy.port}`) }),
  async visible(table) {
    const rows = await server.query(`SELECT k AS key, v AS value, ts::float8 AS "timestampMs" FROM ${table} ORDER BY n`)
    return rows as Awaited<ReturnType<ContractDatabase['visible']>>
  },
  async count(table) {
    const [row] = await server.query(`SELECT count(*)::int AS count FROM ${table}`)
    return Number(row!.count)
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

const disturb = cuttingBy(() => proxy)

const implementation = { name: 'PostgreSQL', fresh: () => freshTable(database, { disturb }) }

const cases = [
  ...contractCases(sinkContract, implementation),
  ...contractCases(sinkFaultContract, implementation),
  ...contractCases(sinkRefusalContract, {
    name: 'PostgreSQL',
    fresh: () => freshTable(database, { onReject: 'dead-letter' }),
  }),
]

for (const { name, run } of cases) {
  test(`a PostgreSQL sink: ${name}`, async ({ postgres }) => {
    server = postgres
    proxy = await cuttingProxy(postgres.port)
    await expect(run().finally(() => proxy.close())).resolves.toBeUndefined()
  })
}

test('a PostgreSQL sink takes 40 MB in bounded memory', async ({ postgres }) => {
  for (const { run } of contractCases(sinkSizeContractOf(manyRows), postgresSize(postgres))) {
    await expect(run()).resolves.toBeUndefined()
  }
})
