/**
 * A transcript of commands, as the docs show them: what was typed, what came out, with which exit code.
 *
 * What differs from run to run (times, ids, addresses) is replaced by examples of the same shape.
 */
import { expect } from 'vitest'
import type { Ended } from './command.ts'

/** Commands and headings, in order. */
export interface Transcript {
  heading(text: string): void
  /** Types the words, and expects the exit code. */
  say(code: number, ...words: readonly string[]): Promise<Ended>
  text(title: string): string
}

const replaced: readonly (readonly [pattern: RegExp, example: string])[] = [
  [/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '2026-11-30T21:14:05.120Z'],
  [/(?<![\w-])(\d+(\.\d)?(ms|s|m|h|d) ago|now)\b/g, '3s ago'],
  [/\b\d+(\.\d)?(ms|s)\b(?! ago)/g, '80ms'],
  [/\b\d+(\.\d)? (B|KiB)(?!\w)/g, '1.2 KiB'],
  [/\b[0-9a-f]{32}\b/g, '6f1e2d3c4b5a69788796a5b4c3d2e1f0'],
  [/\b[0-9a-f]{8}\b/g, '6f1e2d3c'],
  [/\b[0-9a-f]{64}\b/g, '0123456789abcdef'.repeat(4)],
  [/differ by \d+\.\d s/g, 'differ by 0.2 s'],
  [/\d+ of \d+ calls/g, '900 of 1000 calls'],
  [/^(orphans +)\d+/gm, '$14'],
  [/(:execution:[\w-]+:)([\w-]+?)-\d+-\d+/g, '$1$2-12-34'],
  [/at linux:[\w:.@/#-]+/g, 'at linux:host:…:4711:12345'],
  [/\bgeneration +\d+/g, 'generation 4'],
  [/\brun \d+\b/g, 'run 4'],
]

/** Stands for what a run of the same commands would print. */
export function normalized(text: string): string {
  const lines = replaced.reduce((sum, [pattern, example]) => sum.replaceAll(pattern, example), text).split('\n')
  const cells = lines.map((line) => line.trim().split(/ {2,}/))
  return lines.map((line, at) => (cells[at]!.length < 4 ? line : aligned(lines, cells, at))).join('\n')
}

/** A line of a table, aligned again now that its cells have other widths. */
function aligned(lines: readonly string[], cells: readonly (readonly string[])[], at: number): string {
  const own = cells[at]!
  let [from, to] = [at, at + 1]
  while (cells[from - 1]?.length === own.length) from--
  while (cells[to]?.length === own.length) to++
  const rows = cells.slice(from, to)
  const padded = own.map((cell, column) => {
    const width = Math.max(...rows.map((row) => row[column]!.length))
    const isNumber = rows.slice(1).every((row) => /^(-|\d+(ms)?)$/.test(row[column]!))
    return isNumber ? cell.padStart(width) : cell.padEnd(width)
  })
  return `${/^ +[a-z]/.test(lines[from]!) ? '  ' : ''}${padded.join('  ')}`.trimEnd()
}

/** A transcript of the commands that `pawl` runs; `shown` are words that every command gets and the reader need not see. */
export function transcript(pawl: (words: readonly string[]) => Promise<Ended>): Transcript {
  const lines: string[] = []
  return {
    heading: (text) => void lines.push('', `## ${text}`),
    async say(code, ...words) {
      const ended = await pawl(words)
      const typed = words.map((word) => (/[^\w./-]/.test(word) ? `'${word}'` : word)).join(' ')
      expect(`${typed}: ${ended.code} ${ended.code === code ? '' : ended.stderr + ended.stdout}`.trim()).toBe(
        `${typed}: ${code}`,
      )
      const out = normalized(`${ended.stdout}${ended.stderr}`.trimEnd())
      const exit = code === 0 ? [] : [`(exit code ${code})`]
      lines.push('', '```console', `$ pawl ${typed}`, ...(out === '' ? [] : [out]), ...exit, '```')
      return ended
    },
    text: (title) => `${[`# ${title}`, ...lines].join('\n')}\n`,
  }
}
