/**
 * The demo that newcomers see first, in a short form, as a process of its own and without a terminal.
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { judge } from '../../examples/demo/verdict.ts'

const demo = ['--conditions=pawl-source', 'examples/demo/demo.ts', '--lines', '20000', '--kills', '5', '--seconds', '6']

test('the demo counts every word once although its worker is killed five times', async () => {
  const env = { ...process.env, FORCE_COLOR: undefined }
  const { stdout } = await promisify(execFile)(process.execPath, demo, { env })
  expect(stdout).toMatch(/^ {2}20,000 lines, \d+,\d{3} words; [\d,]+ rows in \d+ files$/m)
  expect(stdout).toMatch(/^ {2}5 crashes survived, \d+ epochs, \d+ attempts that died, \d+ s$/m)
  expect(stdout).toMatch(/^ {2}every count equal$/m)
  expect(stdout.match(/^ {2}kill +\d/gm)).toHaveLength(5)
  expect(stdout).not.toContain('\x1b')
})

/** A sink's directory with one file an epoch, of words and counts. */
function filesOf(...epochs: readonly Readonly<Record<string, number>>[]): string {
  const directory = mkdtempSync(join(tmpdir(), 'pawl-verdict-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  for (const [i, counts] of epochs.entries()) {
    const rows = Object.entries(counts).map(([key, value]) => `${JSON.stringify({ key, value, timestamp: 0 })}\n`)
    writeFileSync(join(directory, `${String(i + 1).padStart(12, '0')}-0-abcdefgh.jsonl`), rows.join(''))
  }
  return directory
}

const expected = new Map([
  ['a', 3],
  ['b', 1],
])

test('the verdict of the demo finds nothing in counts that are right', () => {
  const verdict = judge(filesOf({ a: 1, b: 1 }, { a: 3 }), expected)
  expect(verdict).toMatchObject({ differences: [], files: 2, rows: 3 })
})

test('the verdict of the demo names a lost word, a word too many and a count too high', () => {
  expect(judge(filesOf({ a: 1 }, { a: 4, c: 2 }), expected).differences).toEqual([
    'a was counted 4 times, it occurs 3 times',
    'b was counted 0 times, it occurs 1 times',
    'c was counted 2 times, it occurs 0 times',
  ])
})

test('the verdict of the demo notices an epoch that is shown twice although the last counts are right', () => {
  const { differences } = judge(filesOf({ a: 1, b: 1 }, { a: 1, b: 1 }, { a: 3 }), expected)
  expect(differences).toEqual([
    'a goes from 1 to 1 in 000000000002-0-abcdefgh.jsonl',
    'b goes from 1 to 1 in 000000000002-0-abcdefgh.jsonl',
  ])
})
