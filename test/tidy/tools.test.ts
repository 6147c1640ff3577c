import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { textOf } from './source.ts'

const root = new URL('../../', import.meta.url)

/** Runs an npm script and fails with what it prints. */
function expectContent(script: string): void {
  const { status, stdout, stderr } = spawnSync('npm', ['run', '--silent', script], { cwd: root, encoding: 'utf8' })
  if (status !== 0) expect.fail(`npm run ${script} ended with ${status}\n${stdout}${stderr}`)
}

test('the types hold', () => expectContent('types'), 60_000)

test('format and lint are clean', () => expectContent('lint'), 60_000)

test('every npm script names files that exist', () => {
  const scripts = Object.entries<string>(JSON.parse(textOf('package.json')).scripts)
  const missing = scripts.flatMap(([name, command]) =>
    [...command.matchAll(/[\w/.-]+\.ts\b/g)]
      .filter(([file]) => !existsSync(new URL(file, root)))
      .map(([file]) => `npm run ${name} needs ${file}`),
  )
  expect(missing).toEqual([])
})
