import { defineConfig } from 'vitest/config'

export default defineConfig({
  resolve: { conditions: ['pawl-source'] },
  ssr: { resolve: { conditions: ['pawl-source'], externalConditions: ['pawl-source'] } },
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 20_000,
    pool: 'forks',
  },
})
