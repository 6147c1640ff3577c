/**
 * vitest's `test` with a Redis, one for each file.
 *
 * Without Debian's Redis a test is skipped with a reason (which fails under CI, see the reporter).
 */
import { test } from 'vitest'
import { missingRedis, type RedisServer, startRedis } from './redis-server.ts'

export { clusterUp, missingRedis, type RedisServer, startRedis, startRedisCluster } from './redis-server.ts'

/** vitest's `test` with a Redis for the file. */
export const redisTest = test.extend<{ server: RedisServer | null; redis: RedisServer }>({
  server: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of fixtures from the pattern
    async ({}, use) => {
      const server = missingRedis() === null ? await startRedis() : null
      await use(server)
      await server?.remove()
    },
    { scope: 'file' },
  ],
  redis: async ({ server, skip }, use) => {
    if (server === null) skip(missingRedis() ?? '')
    await use(server as RedisServer)
  },
})
