/**
 * The test runner: one project for each kind of test.
 *
 * All kinds but `integration` need nothing outside this repository and run side by side. `integration` comes last, two
 * files at a time: its tests start servers, kill processes and mostly wait, so more would only make them late.
 */
import { defineConfig } from 'vitest/config'
import { SummaryReporter } from './test/support/summary-reporter.ts'

const kinds = {
  tidy: ['test/tidy/**/*.test.ts'],
  types: ['test/types/**/*.test.ts'],
  unit: ['test/*/**/*.test.ts', '!test/{tidy,types,contract,simulation,integration}/**'],
  contract: ['test/contract/**/*.test.ts'],
  simulation: ['test/simulation/**/*.test.ts'],
  integration: ['test/integration/**/*.test.ts'],
}

/** Whatever a crowded machine may do is tried again, and named; never what compares rows: it may be a row too many. */
const slowMachine = /^(?![\s\S]*(deeply equal|deep-equal|to have a length))/

const project = (name: keyof typeof kinds) => {
  const alone = name === 'integration'
  return {
    extends: true as const,
    test: {
      name,
      include: kinds[name].filter((glob) => !glob.startsWith('!')),
      exclude: [
        '**/node_modules/**',
        ...kinds[name].filter((glob) => glob.startsWith('!')).map((glob) => glob.slice(1)),
      ],
      testTimeout: alone ? 120_000 : 20_000,
      hookTimeout: alone ? 120_000 : 20_000,
      ...(alone ? { maxWorkers: 2, retry: { count: 1, condition: slowMachine } } : { maxWorkers: '100%' }),
      sequence: { groupOrder: alone ? 1 : 0 },
    },
  }
}

export default defineConfig({
  resolve: { conditions: ['pawl-source'] },
  ssr: { resolve: { conditions: ['pawl-source'], externalConditions: ['pawl-source'] } },
  test: {
    pool: 'forks',
    reporters: ['default', new SummaryReporter()],
    projects: (Object.keys(kinds) as (keyof typeof kinds)[]).map(project),
  },
})
