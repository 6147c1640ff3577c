/**
 * A process that keeps the pipeline of the crash test going, to be killed: `table-worker.ts DIRECTORY STAGE URL`.
 *
 * Lines `id customer` go into the table `seen` one by one and into the table `totals` by customer, from one commit.
 */
import { postgres } from '../../lib/adapters/postgres/sink.ts'
import { text } from '../../lib/model/serde.ts'
import { openPlace } from '../../lib/places/embedded.ts'
import { runPipeline } from '../../lib/places/run.ts'
import { compile } from '../../lib/stream/compile.ts'
import { pipeline } from '../../lib/stream/pipeline.ts'
import { topic } from '../../lib/stream/topic.ts'

/** The pipeline on a database; small epochs, so that a kill meets every step. */
export function crashPipeline(connection: string) {
  const lines = pipeline('crash', {
    checkpoint: { intervalMs: 0 },
    epoch: { spanMax: 40 },
    promotionRetryMs: [50, 200],
  }).from(topic('lines', { value: text() }))
  const seen = lines.to(
    'seen',
    postgres({ connection, table: 'seen', row: (line: string) => ({ id: Number(line.split(' ')[0]) }) }),
  )
  const totals = lines
    .keyBy((line) => line.split(' ')[1]!)
    .count('count')
    .to(
      'totals',
      postgres({
        connection,
        table: 'totals',
        lanes: 3,
        mode: 'upsert',
        key: ['customer'],
        row: (count: number, customer: string) => ({ customer, orders: count }),
      }),
    )
  return totals.also(seen)
}

const [directory, stage, url] = process.argv.slice(2)
if (directory !== undefined && stage !== undefined && url !== undefined && process.argv[1] === import.meta.filename) {
  const place = await openPlace({ directory, cluster: null, stage, telemetry: { emit: () => undefined } })
  process.stdout.write('running\n')
  const outcome = await runPipeline(compile(crashPipeline(url)), { place, until: 'caught-up' })
  await place.close()
  process.stdout.write(`${JSON.stringify(outcome)}\n`)
}
