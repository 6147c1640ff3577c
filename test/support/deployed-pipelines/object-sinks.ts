/**
 * A pipeline that ends in tables and buckets of others, to look at the rights that a deployment gives it.
 */
import { pipeline, text, topic } from 'pawl'
import { dynamodb } from 'pawl/dynamodb'
import { s3Files } from 'pawl/s3'

const lines = pipeline('object-sinks').from(topic('lines', { value: text() }))
const counts = lines.keyBy((line) => line).count('count')
const latest = dynamodb<string, unknown>({
  table: 'latest',
  keys: { at: 'N' },
  markerTable: 'markers',
  mode: 'transactions',
  item: (line) => ({ at: 1, line }),
})

export default counts
  .to('totals', dynamodb({ table: 'totals', keys: { word: 'S' }, lanes: 2, item: (count: number) => ({ count }) }))
  .also(lines.to('latest', latest))
  .also(lines.to('lake', s3Files({ bucket: 'lake', prefix: 'lines', format: 'json-lines' })))
