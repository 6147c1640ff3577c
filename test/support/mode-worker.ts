/**
 * A process that keeps a pipeline in one of the weaker modes going, to be killed: `mode-worker.ts DIRECTORY MODE FILE`.
 *
 * Lines go to a function that appends them to a file, row by row: a target without marker or key.
 */
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { writeAhead } from '../../lib/adapters/writeahead/sink.ts'
import { nullable, text } from '../../lib/model/serde.ts'
import type { PipelineGuarantee } from '../../lib/model/settings.ts'
import { openPlace } from '../../lib/places/embedded.ts'
import { runPipeline } from '../../lib/places/run.ts'
import { compile } from '../../lib/stream/compile.ts'
import { pipeline } from '../../lib/stream/pipeline.ts'
import { topic } from '../../lib/stream/topic.ts'

/** Lines of one epoch, at most. */
export const epochLines = 20

/** The pipeline; slow to show, so that a kill meets it there. */
export function modePipeline(guarantee: PipelineGuarantee, file: string) {
  return pipeline('modes', {
    guarantee,
    checkpoint: { intervalMs: 0 },
    epoch: { spanMax: epochLines },
    promotionRetryMs: [20, 100],
  })
    .from(topic('lines', { key: nullable(text()), value: text() }))
    .to(
      'file',
      writeAhead<string, string | null>({
        key: nullable(text()),
        value: text(),
        async write(rows) {
          for (const { value } of rows) {
            appendFileSync(file, `${value}\n`)
            await sleep(1)
          }
        },
      }),
    )
}

const [directory, mode, file] = process.argv.slice(2)
if (directory !== undefined && mode !== undefined && file !== undefined && process.argv[1] === import.meta.filename) {
  const place = await openPlace({ directory, cluster: null, stage: 'modes', telemetry: { emit: () => undefined } })
  process.stdout.write('running\n')
  const compiled = compile(modePipeline(mode as PipelineGuarantee, file))
  const { reason } = await runPipeline(compiled, { place, until: 'caught-up' })
  const head = await place.ledger.read('modes')
  await place.close()
  process.stdout.write(`${JSON.stringify({ reason, unconfirmed: head?.unconfirmed?.rows ?? 0 })}\n`)
}
