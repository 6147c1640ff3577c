/**
 * What the READMEs of the examples tell people to type, through the real command.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, test } from 'vitest'

let directory: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'pawl-typed-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

function pawl(words: readonly string[], input = '', env: Readonly<Record<string, string>> = {}): string {
  const args = ['--conditions=pawl-source', 'lib/cli/main.ts', ...words, '--dir', directory]
  return execFileSync(process.execPath, args, { input, encoding: 'utf8', env: { ...process.env, ...env } })
}

/** The lines between `<<'LINES'` and `LINES` of an example's README. */
function linesOf(example: string): string {
  const text = readFileSync(`examples/${example}/README.md`, 'utf8')
  return /<<'LINES'\n([\s\S]*?)^LINES$/m.exec(text)![1]
}

const rowsOf = (sink: string) => pawl(['consume', sink, '--keys']).trimEnd().split('\n')

test('word-count counts the words of lines that are produced in two portions', () => {
  pawl(['produce', 'lines', '--partitions', '2'], 'to be or not to be\n')
  pawl(['run', 'examples/word-count/pipeline.ts', '--until', 'caught-up'])
  pawl(['produce', 'lines'], 'that is the question\nbe\n')
  pawl(['run', 'examples/word-count/pipeline.ts', '--until', 'caught-up'])
  const counts = Object.fromEntries(rowsOf('word-counts').map((row) => row.split('\t')))
  expect(counts).toEqual({ to: '2', be: '3', or: '1', not: '1', that: '1', is: '1', the: '1', question: '1' })
  expect(pawl(['verify'])).toContain('sound')
})

test('word-count with an operator that throws runs as a file that imports another', () => {
  pawl(['produce', 'lines', '--partitions', '1'], 'a b a\n')
  pawl(['run', 'examples/word-count/flaky.ts', '--until', 'caught-up'])
  expect(rowsOf('word-counts').sort()).toEqual(['a\t2', 'b\t1'])
})

test('bids shows the total that its README promises', () => {
  pawl(['produce', 'bids', '--partitions', '1'], linesOf('bids'))
  pawl(['run', 'examples/bids/pipeline.ts', '--until', 'caught-up'])
  expect(rowsOf('bid-totals')).toEqual(['vase@1700000000000\t{"count":3,"sum":3750}'])
})

test('orders shows the totals and dead letters that its README promises', () => {
  pawl(['produce', 'orders', '--partitions', '1'], linesOf('orders'))
  pawl(['run', 'examples/orders/pipeline.ts', '--until', 'caught-up'])
  expect(rowsOf('totals')).toEqual(['ann\t{"orders":2,"cents":2000}'])
  const letters = pawl(['consume', 'dead-letters'])
    .trimEnd()
    .split('\n')
    .map((row) => JSON.parse(row))
  expect(letters).toMatchObject([
    { topic: 'orders', partition: 0, offset: '1', operator: 'check', error: { message: 'cents is negative' } },
    { topic: 'orders', partition: 0, offset: '3', operator: 'orders', error: { name: 'SyntaxError' } },
  ])
})

test('own-sink fills a table of SQLite that Pawl knows nothing of', () => {
  const env = { WORDS_DB: join(directory, 'words.db') }
  const run = () => pawl(['run', 'examples/own-sink/pipeline.ts', '--until', 'caught-up'], '', env)
  pawl(['produce', 'lines', '--partitions', '2'], 'ratchet pawl\n')
  run()
  pawl(['produce', 'lines'], 'pawl tooth\n')
  run()
  const db = new DatabaseSync(env.WORDS_DB)
  const words = db.prepare('SELECT value FROM words ORDER BY value').all()
  db.close()
  expect(words.map(({ value }) => value)).toEqual(['pawl', 'pawl', 'ratchet', 'tooth'])
  expect(pawl(['sinks', 'list', 'examples/own-sink/pipeline.ts'], '', env)).toContain('sound')
})
