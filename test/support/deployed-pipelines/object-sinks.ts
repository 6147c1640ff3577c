/**
 * A pipeline that ends in tables, buckets and a database of others, to look at the rights that a deployment gives it.
 */
import { pipeline, text, topic } from 'pawl'
import { dynamodb } from 'pawl/dynamodb'
import { postgres } from 'pawl/postgres'
import { s3Files } from 'pawl/s3'
import { managedSecret } from 'pawl/secrets'

const lines = pipeline('object-sinks').from(topic('lines', { value: text() }))
const counts = lines.keyBy((line) => line).count('count')
const latest = dynamodb<string, unknown>({
  table: 'latest',
  keys: { at: 'N' },
  markerTable: 'markers',
  mode: 'transactions',
  item: (line) => ({ at: 1, line }),
})

const connection = managedSecret('arn:aws:secretsmanager:eu-central-1:111122223333:secret:database')

export default counts
  .to('totals', dynamodb({ table: 'totals', keys: { word: 'S' }, lanes: 2, item: (count: number) => ({ count }) }))
  .also(lines.to('latest', latest))
  .also(lines.to('lake', s3Files({ bucket: 'lake', prefix: 'lines', format: 'json-lines' })))
  .also(lines.to('rows', postgres({ table: 'lines', connection, row: (line: string) => ({ line }) })))
