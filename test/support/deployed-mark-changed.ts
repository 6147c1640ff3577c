/**
 * The build that replaces the one of `deployed-mark.ts`: one operator differs.
 */
import { pipeline, text, topic } from 'pawl'

const settings = { checkpoint: { intervalMs: 100 }, retain: { epochs: 1000 }, runEpochsMax: 5 } as const

export default pipeline('mark', settings)
  .from(topic('mark-lines', { value: text() }))
  .map((line) => `second ${line}`)
  .to('marked', topic('marked', { value: text() }))
