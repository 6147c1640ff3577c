/**
 * vitest's `test` with a PostgreSQL, one for each file.
 *
 * Without Debian's PostgreSQL a test is skipped with a reason (which fails under CI, see the reporter).
 */
import { test } from 'vitest'
import { missingPostgres, type Postgres, startPostgres } from './postgres-server.ts'

export { missingPostgres, type Postgres, startPostgres } from './postgres-server.ts'

/** vitest's `test` with a PostgreSQL for the file. */
export const postgresTest = test.extend<{ server: Postgres | null; postgres: Postgres }>({
  server: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of fixtures from the pattern
    async ({}, use) => {
      const server = missingPostgres() === null ? await startPostgres() : null
      await use(server)
      await server?.remove()
    },
    { scope: 'file' },
  ],
  postgres: async ({ server, skip }, use) => {
    if (server === null) skip(missingPostgres() ?? '')
    await use(server as Postgres)
  },
})
