import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'

const root = new URL('../../', import.meta.url)

/** Runs an npm script and fails with what it prints. */
function expectContent(script: string): void {
  const { status, stdout, stderr } = spawnSync('npm', ['run', '--silent', script], { cwd: root, encoding: 'utf8' })
  if (status !== 0) expect.fail(`npm run ${script} ended with ${status}\n${stdout}${stderr}`)
}

test('the types hold', () => expectContent('types'), 60_000)

test('format and lint are clean', () => expectContent('lint'), 60_000)
