/**
 * Copies each line behind the mark of its build, so that the output tells which build made it.
 */
import { pipeline, text, topic } from 'pawl'

const settings = { checkpoint: { intervalMs: 100 }, retain: { epochs: 1000 }, runEpochsMax: 5 } as const

export default pipeline('mark', settings)
  .from(topic('mark-lines', { value: text() }))
  .map((line) => `first ${line}`)
  .to('marked', topic('marked', { value: text() }))
