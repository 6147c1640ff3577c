/**
 * The first and the last words of the demo.
 *
 * The table shows the words that occur most, read from the files of the sink, beside the independent count.
 */
import { count, styled } from './board.ts'
import type { Progress } from './progress.ts'
import type { Verdict } from './verdict.ts'

/** What was gone through. */
export interface Journey {
  readonly total: number
  readonly progress: Progress
  readonly kills: number
  readonly seconds: number
}

const wordsShown = 10
const differencesShown = 20

/** Says what is about to happen. */
export function printWelcome(total: number, kills: number): void {
  console.log()
  console.log(`  ${styled('bold', 'Pawl')} counts the words of ${count(total)} lines.`)
  console.log(`  Its worker is killed ${kills} times on the way, with SIGKILL, at any moment.`)
  console.log(`  ${styled('dim', 'examples/word-count/pipeline.ts, in a directory, with nothing but Node')}`)
  console.log()
}

/** Shows the counts, and whether they are right. */
export function printVerdict({ words, differences, files, rows }: Verdict, journey: Journey): void {
  const { total, progress, kills, seconds } = journey
  console.log()
  console.log(styled('dim', `  ${'word'.padEnd(10)}${'in the files'.padStart(14)}${'expected'.padStart(12)}`))
  for (const { word, shown, expected } of words.slice(0, wordsShown)) {
    const mark = shown === expected ? styled('green', '✓') : styled('red', '✗')
    console.log(`  ${word.padEnd(10)}${count(shown).padStart(14)}${count(expected).padStart(12)}  ${mark}`)
  }
  const rest = words.slice(wordsShown)
  const occurrences = words.reduce((sum, { expected }) => sum + expected, 0)
  console.log(styled('dim', `  and ${count(rest.length)} more`))
  console.log()
  console.log(`  ${count(total)} lines, ${count(occurrences)} words; ${count(rows)} rows in ${files} files`)
  console.log(
    `  ${kills} crashes survived, ${progress.committed} epochs, ${progress.died} attempts that died, ${seconds.toFixed(0)} s`,
  )
  console.log('  pawl verify finds the chain of epochs, its objects and the marker of the sink sound')
  console.log()
  if (differences.length === 0) console.log(`  ${styled('green', styled('bold', 'every count equal'))}`)
  for (const difference of differences.slice(0, differencesShown)) console.log(`  ${styled('red', difference)}`)
  if (differences.length > differencesShown) console.log(`  and ${differences.length - differencesShown} more`)
  console.log()
}
