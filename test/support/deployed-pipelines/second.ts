/**
 * A pipeline that is deployed again and again: the second build marks each line as its own.
 *
 * Small epochs and short runs, so that a deployment falls between many of them.
 */
import { pipeline, text, topic } from 'pawl'

export default pipeline('relay', { checkpoint: { intervalMs: 0 }, epoch: { spanMax: 500 }, runEpochsMax: 5 })
  .from(topic('relay-in', { value: text() }))
  .map('mark', (line) => `second ${line}`)
  .to('out', topic('relay-out', { value: text() }))
