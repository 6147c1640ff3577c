/**
 * The same word count with an operator that throws at random, as people like to show exactly-once.
 *
 * Why this is safe: an operator only computes. What it has done to state and output so far lies under the attempt,
 * where nobody sees it, until one write commits the whole epoch. When it throws, the attempt is aborted, its state
 * and output are discarded, and the same epoch is planned again. No word is lost, none is counted twice.
 *
 * The chance comes from outside the record: tried again, the same line passes. Operators should not do this. They
 * should give the same answer for the same record, and one that always throws on a record needs `onError` instead:
 * see `examples/orders`.
 */
import { pipeline } from 'pawl'
import { lines, wordCounts, wordsOf } from './pipeline.ts'

const chance = 1 / 1000

export default pipeline('flaky-word-count', {
  checkpoint: { intervalMs: 200 },
  // Small epochs, so that most attempts get through; and more patience with a line that fails twice in a row.
  epoch: { spanMax: 500, convictAfter: 20 },
  restart: { strategy: 'fixed-delay', attempts: 100, delayMs: 5 },
})
  .from(lines)
  .map('stumble', (line) => {
    if (Math.random() < chance) throw new Error('stumbled, as I do now and then')
    return line
  })
  .flatMap(wordsOf)
  .keyBy((word) => word)
  .count('count')
  .to('word-counts', wordCounts)
