/**
 * The same pipeline as a second stage would run it, beside the first on one cluster; its output goes elsewhere.
 */
import { pipeline, text, topic } from 'pawl'

export default pipeline('relay', { checkpoint: { intervalMs: 0 }, epoch: { spanMax: 5000 } })
  .from(topic('relay-in', { value: text() }))
  .to('out', topic('relay-beside', { value: text() }))
