/**
 * The verdict: what the files of the sink say, against the count that was kept while the lines were made.
 *
 * Only what any reader of the directory sees is looked at: one file an epoch, the names in the order of epochs. A
 * word's last line is its count. Its counts must rise from line to line, or something was shown twice.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** One word, as counted on both sides. */
export interface WordCount {
  readonly word: string
  readonly shown: number
  readonly expected: number
}

/** What was found. */
export interface Verdict {
  /** By falling count. */
  readonly words: readonly WordCount[]
  /** What is wrong, one sentence each; empty when every count is equal. */
  readonly differences: readonly string[]
  readonly files: number
  readonly rows: number
}

/** Reads the files of a sink. */
export function judge(directory: string, expected: ReadonlyMap<string, number>): Verdict {
  const shown = new Map<string, number>()
  const differences: string[] = []
  const names = readdirSync(directory).filter((name) => name.endsWith('.jsonl'))
  let rows = 0
  for (const name of names.sort()) {
    const lines = readFileSync(join(directory, name), 'utf8').trimEnd().split('\n')
    for (const line of lines) {
      const { key, value } = JSON.parse(line) as { key: string; value: number }
      const before = shown.get(key) ?? 0
      if (value <= before) differences.push(`${key} goes from ${before} to ${value} in ${name}`)
      shown.set(key, value)
      rows++
    }
  }
  const words = [...new Set([...expected.keys(), ...shown.keys()])].map((word): WordCount => {
    return { word, shown: shown.get(word) ?? 0, expected: expected.get(word) ?? 0 }
  })
  for (const { word, shown: found, expected: wanted } of words)
    if (found !== wanted) differences.push(`${word} was counted ${found} times, it occurs ${wanted} times`)
  words.sort((a, b) => b.expected - a.expected)
  return { words, differences, files: names.length, rows }
}
