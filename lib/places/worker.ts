/**
 * The body of a worker thread: opens the place again and runs tasks that it is told.
 *
 * Composition root. Nothing is shared with the main thread but the directory and the cluster; the pipeline is loaded
 * from its file, and the build in the plan makes sure that it is the same one.
 */
import { parentPort, workerData } from 'node:worker_threads'
import type { ThreadAnswer, ThreadCall } from '../adapters/threads/invoker.ts'
import type { Job } from '../epoch/job.ts'
import { operate } from '../epoch/operate.ts'
import { isPawlError } from '../model/errors.ts'
import { StateCache } from '../state/cache.ts'
import { openPlace } from './embedded.ts'
import { loadPipeline } from './load.ts'
import type { ThreadSetup } from './threads.ts'

const { directory, stage, file, exportName, kafka: kafkaOptions } = workerData as ThreadSetup

async function openJob(): Promise<Job> {
  const compiled = await loadPipeline(file, exportName)
  const cluster = kafkaOptions === null ? null : (await import('../adapters/kafka/cluster.ts')).kafka(kafkaOptions)
  const place = await openPlace({ directory, cluster, stage, telemetry: { emit: () => {} } })
  return { compiled, place, states: new StateCache(), warm: new Map() }
}

const job = openJob()

parentPort?.on('message', async ({ call, input }: ThreadCall) => {
  const answer = await operate(await job, input).then(
    (output): ThreadAnswer => ({ call, output }),
    (error: unknown): ThreadAnswer => ({ call, error: plain(error) }),
  )
  parentPort?.postMessage(answer)
})

function plain(error: unknown) {
  if (isPawlError(error)) return { code: error.code, message: error.message, details: { ...error.details } }
  return {
    code: null,
    message: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
    details: {},
  }
}
