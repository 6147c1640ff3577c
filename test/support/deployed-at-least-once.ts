/**
 * At least once, to a target without marker; beside it a table that refuses some rows, which become dead letters.
 *
 * The table's credentials are a secret, by its name in the account of the emulator.
 */
import { deadLetter, json, nullable, pipeline, type RejectedRecord, text, topic } from 'pawl'
import { postgres } from 'pawl/postgres'
import { managedSecret } from 'pawl/secrets'
import { type FatefulLine, target } from './deployed-sink-modes.ts'

const letters = topic('least-letters', { key: nullable(text()), value: json<RejectedRecord>() })
const lines = pipeline('least', {
  guarantee: 'at-least-once',
  checkpoint: { intervalMs: 0 },
  epoch: { spanMax: 20 },
  onError: deadLetter('letters', letters),
}).from(topic('least-in', { key: nullable(text()), value: text() }))

export default lines.to('target', target).also(
  lines.to(
    'table',
    postgres({
      table: 'welcome',
      mode: 'insert',
      lanes: 2,
      onReject: 'dead-letter',
      connection: managedSecret('modes-database'),
      row: (line: string) => ({ n: (JSON.parse(line) as FatefulLine).n }),
    }),
  ),
)
