/**
 * At most once, to a target without marker.
 */
import { nullable, pipeline, text, topic } from 'pawl'
import { target } from './deployed-sink-modes.ts'

export default pipeline('most', {
  guarantee: 'at-most-once',
  checkpoint: { intervalMs: 0 },
  epoch: { spanMax: 20 },
})
  .from(topic('most-in', { key: nullable(text()), value: text() }))
  .to('target', target)
