/**
 * `pawl collect FILE`: deletes what no root reaches, as the pipeline does by itself every few epochs.
 *
 * The pipeline file says how many epochs to retain. Safe beside a running pipeline.
 */
import type { Job } from '../epoch/job.ts'
import { StateCache } from '../state/cache.ts'
import { clusterNotes, clusterOf, clusterOptions, defaultStage, kafkaOptionsOf } from './load-cluster.ts'
import { directoryOf, withPipeline } from './open-directory.ts'
import { type Call, type Command, directoryOption } from './parse-arguments.ts'
import { count } from './print-values.ts'
import { exitCodes } from './report-error.ts'

/** `pawl collect FILE`. */
export const collectCommand: Command = {
  name: 'collect',
  summary: 'delete objects that nothing reaches any more',
  positionals: ['FILE'],
  options: {
    ...directoryOption,
    export: { value: 'NAME', help: 'export of the file; default by default' },
    ...clusterOptions,
  },
  notes: clusterNotes,
  examples: ['pawl collect totals.ts', 'pawl collect totals.ts --json'],
  run: collectGarbage,
}

async function collectGarbage(call: Call): Promise<number> {
  const { options, output, positionals } = call
  const [{ loadPipeline }, { openPlace }, { collect }] = await Promise.all([
    import('../places/load.ts'),
    import('../places/embedded.ts'),
    import('../epoch/collect.ts'),
  ])
  const compiled = await loadPipeline(positionals[0], options.text('export'))
  const { pipeline } = compiled.topology
  await withPipeline(options, pipeline, async () => undefined)
  const place = await openPlace({
    directory: directoryOf(options),
    cluster: await clusterOf(kafkaOptionsOf(call)),
    stage: options.text('stage') ?? defaultStage,
    telemetry: { emit: () => undefined },
  })
  try {
    const job: Job = { compiled, place, states: new StateCache(), warm: new Map() }
    const { deleted, kept, retainedFrom } = await collect(job)
    output.record({ pipeline, deleted, kept, retainedFrom })
    const style = output.style()
    output.print([
      `deleted ${count(style, deleted)} objects, kept ${count(style, kept)}; retained from epoch ${count(style, retainedFrom)}`,
    ])
    return exitCodes.success
  } finally {
    await place.close()
  }
}
