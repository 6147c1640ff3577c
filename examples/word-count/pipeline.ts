/**
 * Word count: lines in, the running count of each word out.
 *
 * The hello world of stream processing, and the pipeline that `npm start` kills again and again.
 */
import { json, pipeline, text, topic } from 'pawl'

/** Where lines come from: a Kafka topic with `--bootstrap`, else a log in the directory of the pipeline. */
export const lines = topic('lines', { value: text() })

/** Where counts go: the key is the word, the value how often it was seen so far. */
export const wordCounts = topic('word-counts', { key: text(), value: json() })

/** The words of a line, in lower case. */
export const wordsOf = (line: string) => line.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []

// An epoch every 200 ms: counts are seen soon after, and a crash has little to repeat.
export default pipeline('word-count', { checkpoint: { intervalMs: 200 } })
  .from(lines)
  .flatMap(wordsOf)
  .keyBy((word) => word)
  // State: one number a word. `count` names it for ever, so that the next build finds it again.
  .count('count')
  // Once a word and epoch: nobody can see the steps between.
  .to('word-counts', wordCounts)
