/**
 * The word count over an intake of events: small epochs, and a garbage collection every ten of them.
 */
import { pipeline, text, topic } from 'pawl'
import { wordCounts, wordsOf } from '../../examples/word-count/pipeline.ts'

export default pipeline('intake', {
  checkpoint: { intervalMs: 100 },
  epoch: { spanMax: 1000 },
  retain: { epochs: 3 },
})
  .from(topic('lines', { value: text(), isolation: 'read_uncommitted' }))
  .flatMap(wordsOf)
  .keyBy((word) => word)
  .count('count')
  .to('word-counts', wordCounts)
