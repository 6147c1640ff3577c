/**
 * vitest's `test` with a MariaDB, one for each file.
 *
 * Without Debian's MariaDB a test is skipped with a reason (which fails under CI, see the reporter).
 */
import { test } from 'vitest'
import { type MariaDb, missingMariaDb, startMariaDb } from './mariadb-server.ts'

export { type MariaDb, missingMariaDb, startMariaDb } from './mariadb-server.ts'

/** vitest's `test` with a MariaDB for the file. */
export const mariaDbTest = test.extend<{ server: MariaDb | null; mariaDb: MariaDb }>({
  server: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of fixtures from the pattern
    async ({}, use) => {
      const server = missingMariaDb() === null ? await startMariaDb() : null
      await use(server)
      await server?.remove()
    },
    { scope: 'file' },
  ],
  mariaDb: async ({ server, skip }, use) => {
    if (server === null) skip(missingMariaDb() ?? '')
    await use(server as MariaDb)
  },
})
