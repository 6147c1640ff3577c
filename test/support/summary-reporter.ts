/**
 * The last line of a test run: `N passed, N failed`, with `, N skipped` where there are any.
 *
 * A test file that does not load and an error outside any test count as failed, so that a run which tested
 * nothing cannot look green. With `CI=true` a skipped test is a failure too: there every tool is at hand, and
 * what was not run was not proven. Reasons for skips, and tests that passed at the second try only, are printed above
 * the summary.
 */
import type { Reporter, SerializedError, TestModule } from 'vitest/node'

interface Tally {
  passed: number
  failed: number
  skipped: number
  readonly reasons: Set<string>
  /** Names of tests that failed before they passed, with what failed. */
  readonly flaky: string[]
}

/** Prints the summary when the process ends, after all other reporters. */
export class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const total = tally(modules, unhandled.length)
    const strict = process.env.CI === 'true' && total.skipped > 0
    if (strict) total.failed += total.skipped
    if (total.failed > 0) process.exitCode = 1
    process.once('exit', () => {
      for (const test of total.flaky) process.stdout.write(`passed at the second try: ${test}\n`)
      for (const reason of total.reasons) process.stdout.write(`skipped: ${reason}\n`)
      if (strict) process.stdout.write('A skipped test counts as failed, because CI=true.\n')
      process.stdout.write(`${summary(total)}\n`)
    })
  }
}

function tally(modules: readonly TestModule[], unhandledCount: number): Tally {
  const total: Tally = { passed: 0, failed: unhandledCount, skipped: 0, reasons: new Set(), flaky: [] }
  for (const module of modules) {
    const suites = [module, ...module.children.allSuites()]
    total.failed += suites.filter((suite) => suite.errors().length > 0).length
    for (const test of module.children.allTests()) {
      const result = test.result()
      if (test.diagnostic()?.flaky)
        total.flaky.push(`${test.fullName}: ${result.errors?.[0]?.message.split('\n')[0] ?? ''}`)
      if (result.state === 'passed') total.passed++
      else if (result.state === 'failed') total.failed++
      else {
        total.skipped++
        if (result.state === 'skipped' && result.note) total.reasons.add(result.note)
      }
    }
  }
  if (modules.length === 0) total.failed++
  return total
}

function summary({ passed, failed, skipped }: Tally): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
}
