/**
 * A word count with moods: a line `hangs MS` or `fails MS` does so until that time, and is counted afterwards.
 *
 * By the clock and not by a flag, since functions share nothing with the test but their topics.
 */
import { json, pipeline, text, topic } from 'pawl'

function watch(line: string): string {
  const [mood, until] = line.split(' ')
  const leftMs = Number(until) - Date.now()
  if (!(leftMs > 0)) return line
  if (mood === 'fails') throw new Error('the dictionary is closed')
  if (mood === 'hangs') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, leftMs)
  return line
}

export default pipeline('moody', {
  checkpoint: { intervalMs: 500 },
  restart: { strategy: 'fixed-delay', attempts: 1, delayMs: 10 },
})
  .from(topic('moody-lines', { value: text() }))
  .map('watch', (line) => watch(line))
  .keyBy((line) => line.split(' ')[0] ?? '')
  .count('count')
  .to('moody-counts', topic('moody-counts', { key: text(), value: json<number>() }))
