/**
 * The word count that workers are killed under: the example's, with short leases, so that a worker which hangs is
 * taken over while a test waits.
 *
 * Manifests are retained long enough for a test to read each of them before it is collected.
 */
import { pipeline, topic } from 'pawl'
import { lines, wordCounts, wordsOf } from '../../examples/word-count/pipeline.ts'

const settings = {
  checkpoint: { intervalMs: 200, timeoutMs: 1900 },
  leaseMs: 4000,
  retain: { epochs: 100 },
  // Killed again and again in the same epoch, the workers would else wait ever longer before they try again.
  restart: { strategy: 'fixed-delay', attempts: 1000, delayMs: 50 },
  // A sink that was away for an outage is asked again soon.
  promotionRetryMs: [200, 1000],
} as const

/** One task, one lane. */
export default pipeline('ordeal', settings)
  .from(lines)
  .flatMap(wordsOf)
  .keyBy((word) => word)
  .count('count')
  .to('word-counts', wordCounts)

/** Two shards in worker threads, a shuffle between them, two lanes. */
export const sharded = pipeline('ordeal', { ...settings, shards: 2, epoch: { fuseSpanMax: 0 } })
  .from(lines)
  .flatMap(wordsOf)
  .keyBy((word) => word)
  .count('count')
  .to('word-counts', topic('word-counts', { ...wordCounts, lanes: 2 }))
