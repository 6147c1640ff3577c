/**
 * A process that keeps a pipeline into a table of DynamoDB and a bucket of S3 going, to be killed:
 * `object-worker.ts DIRECTORY STAGE TARGETS`, where TARGETS is JSON of the client's options, the table and the bucket.
 *
 * Lines `id customer` go into files one by one and into items by customer, from one commit an epoch.
 */
import { dynamodb } from '../../lib/adapters/dynamodb/sink.ts'
import { s3Files } from '../../lib/adapters/s3/files.ts'
import { text } from '../../lib/model/serde.ts'
import { openPlace } from '../../lib/places/embedded.ts'
import { runPipeline } from '../../lib/places/run.ts'
import { compile } from '../../lib/stream/compile.ts'
import { pipeline } from '../../lib/stream/pipeline.ts'
import { topic } from '../../lib/stream/topic.ts'
import type { EmulatorClientOptions } from './aws-emulator.ts'

/** Where the sinks are. */
export interface ObjectTargets {
  readonly client: EmulatorClientOptions
  readonly table: string
  readonly bucket: string
}

/** The pipeline into these; small epochs, so that a kill meets every step. */
export function objectPipeline({ client, table, bucket }: ObjectTargets) {
  const lines = pipeline('objects', {
    checkpoint: { intervalMs: 0 },
    epoch: { spanMax: 40 },
    promotionRetryMs: [50, 200],
  }).from(topic('lines', { value: text() }))
  const seen = lines.to(
    'seen',
    s3Files({
      ...client,
      forcePathStyle: true,
      bucket,
      prefix: 'seen',
      format: 'parquet',
      columns: { id: 'long' },
      partitionBy: (line: string) => ({ customer: line.split(' ')[1]! }),
      row: (line: string) => ({ id: line.split(' ')[0] }),
    }),
  )
  const totals = lines
    .keyBy((line) => line.split(' ')[1]!)
    .count('count')
    .to(
      'totals',
      dynamodb({ ...client, table, keys: { customer: 'S' }, lanes: 2, item: (count: number) => ({ count }) }),
    )
  return totals.also(seen)
}

const [directory, stage, targets] = process.argv.slice(2)
if (targets !== undefined && process.argv[1] === import.meta.filename) {
  const place = await openPlace({
    directory: directory!,
    cluster: null,
    stage: stage!,
    telemetry: { emit: () => undefined },
  })
  process.stdout.write('running\n')
  const outcome = await runPipeline(compile(objectPipeline(JSON.parse(targets))), { place, until: 'caught-up' })
  await place.close()
  process.stdout.write(`${JSON.stringify(outcome)}\n`)
}
