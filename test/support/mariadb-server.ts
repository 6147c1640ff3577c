/**
 * A real MariaDB for tests and measurements; nothing of a test runner is used here.
 *
 * Small: 32 MB of buffers, the log flushed at each commit, so that a killed server recovers as it would elsewhere.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import mysql from 'mysql2/promise'
import { findProgram, type Server, startServer } from './server.ts'

/** A MariaDB with a database `pawl` and the user `pawl`. */
export interface MariaDb extends Server {
  readonly url: string
  /** Statements on a connection of their own; the rows of the last. */
  query(text: string, values?: readonly unknown[]): Promise<readonly Record<string, unknown>[]>
  connect(): Promise<mysql.Connection>
}

/** What the tests lack, as a sentence; null when MariaDB can be started. */
export function missingMariaDb(): string | null {
  const found = findProgram('mariadbd') && findProgram('mariadb-install-db')
  return found ? null : 'mariadb-server is missing, so nothing was run against MariaDB'
}

export async function startMariaDb(): Promise<MariaDb> {
  const server = await startServer({
    name: 'mariadb',
    user: 'mysql',
    prepare: (directory, run) => {
      const options = ['--no-defaults', `--datadir=${directory}/db`, '--auth-root-authentication-method=normal']
      run(findProgram('mariadb-install-db')!, [...options, '--skip-test-db'])
    },
    command: (directory, port) => [
      findProgram('mariadbd')!,
      '--no-defaults',
      `--datadir=${directory}/db`,
      `--tmpdir=${directory}`,
      `--port=${port}`,
      '--bind-address=127.0.0.1',
      `--socket=${directory}/s`,
      `--pid-file=${directory}/pid`,
      '--innodb-buffer-pool-size=32M',
      '--innodb-log-file-size=64M',
      '--innodb-flush-log-at-trx-commit=1',
      '--skip-log-bin',
      '--performance-schema=OFF',
      '--max-connections=40',
    ],
  })
  const connectAs = async (options: mysql.ConnectionOptions) => {
    for (let tries = 0; ; tries++) {
      try {
        const connection = await mysql.createConnection({ ...options, multipleStatements: true, timezone: 'Z' })
        connection.on('error', () => undefined)
        return connection
      } catch (error) {
        if (tries >= 100) throw error
      }
      await sleep(50)
    }
  }
  const root = await connectAs({ socketPath: `${server.directory}/s`, user: 'root' })
  await root.query(`CREATE DATABASE pawl CHARACTER SET utf8mb4; CREATE USER pawl@'%' IDENTIFIED BY 'open-sesame';
    GRANT ALL ON pawl.* TO pawl@'%'`)
  await root.end()
  const url = `mysql://pawl:open-sesame@127.0.0.1:${server.port}/pawl`
  const connect = () => connectAs({ uri: url })
  return {
    ...server,
    url,
    connect,
    async restart() {
      await server.restart()
      await (await connect()).end()
    },
    async query(text, values) {
      const connection = await connect()
      try {
        const [answer] = await connection.query(text, values as string[])
        const rows = answer as unknown[]
        return (Array.isArray(rows) && Array.isArray(rows.at(-1)) ? rows.at(-1) : rows) as Record<string, unknown>[]
      } finally {
        await connection.end()
      }
    },
  }
}
