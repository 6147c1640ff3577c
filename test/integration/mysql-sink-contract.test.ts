import { expect } from 'vitest'
import { mysql } from '../../lib/adapters/mysql/sink.ts'
import { contractCases } from '../../lib/testing/contracts/contract.ts'
import { sinkContract } from '../../lib/testing/contracts/sink.ts'
import { sinkFaultContract } from '../../lib/testing/contracts/sink-faults.ts'
import { sinkRefusalContract } from '../../lib/testing/contracts/sink-refusals.ts'
import { sinkSizeContractOf } from '../../lib/testing/contracts/sink-size.ts'
import { type CuttingProxy, cuttingBy, cuttingProxy } from '../support/cutting-proxy.ts'
import { type MariaDb, mariaDbTest as test } from '../support/mariadb.ts'
import { manyRows } from '../support/sink-sizes.ts'
import { mariaDbSize } from '../support/sink-sizes-servers.ts'
import { type ContractDatabase, freshTable } from '../support/table-contract.ts'

let server: MariaDb
let proxy: CuttingProxy

const database: ContractDatabase = {
  async createTable(table, refused) {
    const check = refused === null ? '' : `, CHECK (v <> '${refused}')`
    await server.query(`CREATE TABLE ${table} (n bigint AUTO_INCREMENT PRIMARY KEY, k text, v text, ts bigint${check})`)
  },
  spec: (options) => mysql({ ...options, connection: () => server.url.replace(`:${server.port}`, `:${proxy.port}`) }),
  async visible(table) {
    const rows = await server.query(`SELECT k AS \`key\`, v AS value, ts AS timestampMs FROM ${table} ORDER BY n`)
    return rows as unknown as Awaited<ReturnType<ContractDatabase['visible']>>
  },
  async backup(table, markers) {
    await server.query(`CREATE TABLE ${table}_b AS SELECT * FROM ${table};
      CREATE TABLE ${markers}_b AS SELECT * FROM ${markers}`)
    return async () => {
      await server.query(`START TRANSACTION; DELETE FROM ${table}; DELETE FROM ${markers};
        INSERT INTO ${table} SELECT * FROM ${table}_b; INSERT INTO ${markers} SELECT * FROM ${markers}_b; COMMIT`)
    }
  },
  async dropMarker(markers, lane) {
    await server.query(`DELETE FROM ${markers} WHERE lane = ?`, [lane])
  },
}

const disturb = cuttingBy(() => proxy)

const implementation = { name: 'MySQL', fresh: () => freshTable(database, { disturb }) }

const cases = [
  ...contractCases(sinkContract, implementation),
  ...contractCases(sinkFaultContract, implementation),
  ...contractCases(sinkRefusalContract, {
    name: 'MySQL',
    fresh: () => freshTable(database, { onReject: 'dead-letter' }),
  }),
]
for (const { name, run } of cases) {
  test(`a MySQL sink: ${name}`, async ({ mariaDb }) => {
    server = mariaDb
    proxy = await cuttingProxy(mariaDb.port)
    await expect(run().finally(() => proxy.close())).resolves.toBeUndefined()
  })
}

test('a MySQL sink takes 40 MB in bounded memory', async ({ mariaDb }) => {
  for (const { run } of contractCases(sinkSizeContractOf(manyRows), mariaDbSize(mariaDb))) {
    await expect(run()).resolves.toBeUndefined()
  }
})
