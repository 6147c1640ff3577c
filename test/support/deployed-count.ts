/**
 * The word count whose functions are killed: the example's, in epochs small enough that there are many of them.
 *
 * Manifests are retained long enough for a test to read each of them. A task that takes longer than its four seconds
 * is given up, and whatever it still writes is late.
 */
import { pipeline } from 'pawl'
import { lines, wordCounts, wordsOf } from '../../examples/word-count/pipeline.ts'

export default pipeline('ordeal', {
  checkpoint: { intervalMs: 500, timeoutMs: 4000 },
  epoch: { spanMax: 1000 },
  // A fresh execution every few epochs: what a long run does every hundred.
  runEpochsMax: 2,
  retain: { epochs: 1000 },
  // Killed again and again in the same epoch, it would else wait ever longer before it tries again.
  restart: { strategy: 'fixed-delay', attempts: 1000, delayMs: 50 },
  promotionRetryMs: [200, 1000],
})
  .from(lines)
  .flatMap(wordsOf)
  .keyBy((word) => word)
  .count('count')
  .to('word-counts', wordCounts)
