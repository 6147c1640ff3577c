/**
 * A real PostgreSQL for tests and measurements; nothing of a test runner is used here.
 *
 * Small: 32 MB of buffers, `fsync` on, so that a killed server recovers as it would elsewhere.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { findProgram, postgresFolder, type Server, startServer } from './server.ts'

/** A PostgreSQL whose database `postgres` belongs to `postgres`. */
export interface Postgres extends Server {
  readonly url: string
  /** One statement, or several without values, on a connection of its own. */
  query(text: string, values?: readonly unknown[]): Promise<pg.QueryResult['rows']>
  connect(): Promise<pg.Client>
}

/** What the tests lack, as a sentence; null when PostgreSQL can be started. */
export function missingPostgres(): string | null {
  const found = findProgram('initdb', postgresFolder())
  return found === null ? 'postgresql is missing, so nothing was run against PostgreSQL' : null
}

export async function startPostgres(): Promise<Postgres> {
  const folder = postgresFolder()
  const server = await startServer({
    name: 'postgres',
    user: 'postgres',
    prepare: (directory, run) => {
      run(`${folder}/initdb`, [
        '-D',
        `${directory}/db`,
        '-U',
        'postgres',
        '-E',
        'UTF8',
        '--locale=C',
        '-A',
        'trust',
        '-N',
      ])
    },
    command: (directory, port) => [
      `${folder}/postgres`,
      '-D',
      `${directory}/db`,
      '-p',
      String(port),
      '-h',
      '127.0.0.1',
      '-k',
      directory,
      ...['shared_buffers=32MB', 'max_connections=40', 'max_wal_size=512MB'].flatMap((setting) => ['-c', setting]),
    ],
  })
  const url = `postgres://postgres:not-asked@127.0.0.1:${server.port}/postgres`
  const connect = async () => {
    for (let tries = 0; ; tries++) {
      const client = new pg.Client({ connectionString: url })
      client.on('error', () => undefined)
      try {
        await client.connect()
        return client
      } catch (error) {
        if (tries >= 100) throw error
      }
      await sleep(50)
    }
  }
  await (await connect()).end()
  return {
    ...server,
    url,
    connect,
    async restart() {
      await server.restart()
      await (await connect()).end()
    },
    async query(text, values) {
      const client = await connect()
      try {
        const answer = await client.query(text, values as unknown[])
        return Array.isArray(answer) ? answer.at(-1).rows : answer.rows
      } finally {
        await client.end()
      }
    },
  }
}
