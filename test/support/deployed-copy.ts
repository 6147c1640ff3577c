/**
 * A pipeline without keys and state, whose calls are counted: lines in, lines out, one fused task an epoch.
 *
 * Epochs are so small that a test decides how many of them one run has.
 */
import { pipeline, text, topic } from 'pawl'

/** Lines that one epoch takes. */
export const epochLines = 20

export default pipeline('copy', { checkpoint: { intervalMs: 100 }, epoch: { spanMax: epochLines } })
  .from(topic('copy-lines', { value: text() }))
  .map((line) => line.toUpperCase())
  .to('copies', topic('copies', { value: text() }))
