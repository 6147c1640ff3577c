/**
 * The words of a topic, each into a table of SQLite: a pipeline on a sink of its own.
 */
import { nullable, pipeline, text, topic } from 'pawl'
import { sqlite } from './sink.ts'

export default pipeline('own-sink', { checkpoint: { intervalMs: 200 } })
  .from(topic('lines', { key: nullable(text()), value: text() }))
  .flatMap((line) => line.split(' '))
  .to('words', sqlite<string>({ file: process.env.WORDS_DB ?? 'words.db', table: 'words', textOf: (word) => word }))
