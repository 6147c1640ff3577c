/**
 * Worker threads for a pipeline file at the embedded place.
 *
 * Composition root for `adapters/threads`: which module the threads run, and what they need to open the same place.
 */
import { availableParallelism } from 'node:os'
import type { KafkaOptions } from '../adapters/kafka/cluster.ts'
import { threadInvoker } from '../adapters/threads/invoker.ts'
import type { Invoker } from '../ports/system.ts'

/** What a thread needs to open the same place; cloned into it. */
export interface ThreadSetup {
  readonly directory: string
  readonly stage: string
  /** Path of the pipeline file. */
  readonly file: string
  readonly exportName: string
  /** Options of the place's cluster, without functions. */
  readonly kafka: KafkaOptions | null
}

/** One thread a shard, up to the number of cores. */
export function pipelineThreads(setup: ThreadSetup, shards: number): Invoker {
  const body = import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js'
  return threadInvoker({
    threads: Math.max(1, Math.min(shards, availableParallelism())),
    module: new URL(body, import.meta.url),
    setup,
  })
}
