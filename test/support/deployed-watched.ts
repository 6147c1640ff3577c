/**
 * A pipeline whose alarms are made to fire: lines in, lines out, what cannot be stomached to the dead letters.
 *
 * Its checkpoints are short, so that seconds without a commit are a stall.
 */
import { deadLetter, json, pipeline, text, topic } from 'pawl'

export default pipeline('watched', {
  checkpoint: { intervalMs: 100, timeoutMs: 4000 },
  onError: deadLetter('dead', topic('watched-dead', { value: json<unknown>() })),
})
  .from(topic('watched-in', { value: text() }))
  .map('stomach', (line) => {
    if (line === 'poison') throw new Error('cannot stomach it')
    return line
  })
  .keyBy((line) => line)
  .count('count')
  .to('out', topic('watched-out', { key: text(), value: json<number>() }))
