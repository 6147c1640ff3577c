/**
 * A pipeline that ends in tables, buckets and a database of others, to look at the rights that a deployment gives it.
 */
import { deadLetter, json, nullable, pipeline, type RejectedRecord, text, topic } from 'pawl'
import { dynamodb } from 'pawl/dynamodb'
import { postgres } from 'pawl/postgres'
import { s3Files } from 'pawl/s3'
import { managedSecret } from 'pawl/secrets'

const letters = topic('letters', { key: nullable(text()), value: json<RejectedRecord>() })
const lines = pipeline('object-sinks', { onError: deadLetter('letters', letters) }).from(
  topic('lines', { value: text() }),
)
const counts = lines.keyBy((line) => line).count('count')
const latest = dynamodb<string, unknown>({
  table: 'latest',
  keys: { at: 'N' },
  markerTable: 'markers',
  mode: 'transactions',
  onReject: 'dead-letter',
  refusedTable: 'latest-refused',
  item: (line) => ({ at: 1, line }),
})

const connection = managedSecret('arn:aws:secretsmanager:eu-central-1:111122223333:secret:database')

const totals = dynamodb<number, string>({
  table: 'totals',
  keys: { word: 'S' },
  lanes: 2,
  onReject: 'dead-letter',
  item: (count) => ({ count }),
})
const plain = dynamodb<string, unknown>({ table: 'plain', keys: { line: 'S' }, item: (line) => ({ line }) })

export default counts
  .to('totals', totals)
  .also(lines.to('latest', latest))
  .also(lines.to('lake', s3Files({ bucket: 'lake', prefix: 'lines', format: 'json-lines' })))
  .also(lines.to('plain', plain))
  .also(lines.to('rows', postgres({ table: 'lines', connection, row: (line: string) => ({ line }) })))
