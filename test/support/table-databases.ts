/**
 * The real databases as the cases for table sinks see them.
 *
 * Apart from the cases, which know no dialect, and from the servers, which know no sink.
 */
import { mysql } from '../../lib/adapters/mysql/sink.ts'
import { postgres } from '../../lib/adapters/postgres/sink.ts'
import type { MariaDb } from './mariadb-server.ts'
import type { Postgres } from './postgres-server.ts'
import type { TableDatabase } from './table-rig.ts'

export function postgresDatabase(server: Postgres): TableDatabase {
  return {
    server,
    url: server.url,
    query: (text) => server.query(text),
    spec: postgres,
    widen: (column) => `ALTER COLUMN ${column} TYPE bigint`,
    async lockTable(table) {
      const client = await server.connect()
      await client.query(`BEGIN; LOCK TABLE ${table}`)
      return async () => {
        await client.query('ROLLBACK')
        await client.end()
      }
    },
  }
}

export function mariaDbDatabase(server: MariaDb): TableDatabase {
  return {
    server,
    url: server.url,
    query: (text) => server.query(text),
    spec: mysql,
    widen: (column) => `MODIFY ${column} bigint`,
    async lockTable(table) {
      const connection = await server.connect()
      await connection.query(`LOCK TABLES ${table} WRITE`)
      return () => connection.end()
    },
  }
}
