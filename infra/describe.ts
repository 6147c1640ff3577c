/**
 * Compiles a pipeline file and prints what synthesis must know of it, as JSON. A process of its own.
 *
 * Usage: node describe.ts FILE. The file is loaded by Node as it is, so nothing of it stays in the process that
 * synthesises; `pawl` is found from where the file lies, so that file and compiler are of one copy. A pipeline with
 * mistakes is an answer too.
 */
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import type { ErrorCode } from '../lib/model/errors.ts'
import type { Compiled } from '../lib/stream/compiled.ts'
import type { Answer } from './topology.ts'

const file = process.argv[2]
const answer = await describe(file).catch((error: unknown): Answer => {
  const { code = null, message = String(error) } = error as { code?: ErrorCode; message?: string }
  return { code, message }
})
process.stdout.write(`\n${JSON.stringify(answer)}\n`)

async function describe(path: string): Promise<Answer> {
  const found = createRequire(path).resolve('pawl')
  const { compile } = (await import(pathToFileURL(found).href)) as { compile(pipeline: unknown): Compiled }
  const { default: pipeline } = (await import(pathToFileURL(path).href)) as { default: unknown }
  const { topology, settings, sources, sinks } = compile(pipeline)
  return {
    description: {
      topology,
      settings,
      sources: Object.entries(sources).map(([id, { topic, group, cluster, start, isolation, onLostOffsets }]) => {
        return { id, topic, group, ownCluster: cluster !== null, start: start.at, isolation, onLostOffsets }
      }),
      sinks: Object.entries(sinks).map(([id, spec]) =>
        spec.kind === 'topic'
          ? { id, type: 'topic', topics: spec.route?.topics ?? [spec.topic], ownCluster: spec.cluster !== null }
          : {
              id,
              type: spec.type,
              topics: [],
              ownCluster: false,
              ...(spec.resources && { resources: spec.resources }),
            },
      ),
    },
  }
}
