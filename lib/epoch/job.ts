/**
 * A job: one compiled pipeline at one place, as every step gets it.
 *
 * Holds what stays warm between steps: loaded state, read manifests. All of it may be lost at any time.
 */

import { PawlError } from '../model/errors.ts'
import type { Head, ObjectRef } from '../model/head.ts'
import type { Manifest, Plan } from '../model/manifest.ts'
import { attemptPrefix, invocationPrefix, planName } from '../model/names.ts'
import type { AttemptKey, RunKey } from '../model/steps.ts'
import type { LogSource } from '../ports/log.ts'
import type { Place } from '../ports/place.ts'
import type { Sink } from '../ports/sink.ts'
import type { StateCache } from '../state/cache.ts'
import type { Compiled } from '../stream/compiled.ts'
import { unseal } from './seal.ts'

export interface Job {
  readonly compiled: Compiled
  readonly place: Place
  readonly states: StateCache
  /** True when the run is to end after what is under way. */
  readonly stopping?: () => boolean
  /** Manifests and plans by hash or name; small and bounded. */
  readonly warm: Map<string, unknown>
}

const warmMax = 16

function keepWarm<T>(job: Job, key: string, value: T): T {
  if (job.warm.size >= warmMax) job.warm.delete(job.warm.keys().next().value as string)
  job.warm.set(key, value)
  return value
}

/** A manifest by its reference. Throws `OBJECT_MISSING`, `MANIFEST_DAMAGED`. */
export async function readManifest(job: Job, ref: ObjectRef): Promise<Manifest> {
  const warm = job.warm.get(ref.sha256) as Manifest | undefined
  return warm ?? keepWarm(job, ref.sha256, await unseal<Manifest>(job.place.store, ref))
}

/** The plan of an attempt. Throws `STEP_INPUT_INVALID` when there is none. */
export async function readPlan(job: Job, key: AttemptKey): Promise<Plan> {
  const name = planName(job.compiled.topology.pipeline, key.incarnation, key.attempt)
  const warm = job.warm.get(name) as Plan | undefined
  if (warm) return warm
  const bytes = await job.place.store.read(name)
  // An aborted attempt has no plan any more: whoever asks for it is late.
  if (bytes === null) throw new PawlError('FENCED', `attempt ${key.attempt} has no plan`, { attempt: key.attempt })
  return keepWarm(job, name, JSON.parse(bytes.toString()) as Plan)
}

/** A prefix of names that only this invocation of a step uses. */
export function newInvocation(job: Job, key: AttemptKey): string {
  return invocationPrefix(job.compiled.topology.pipeline, key.incarnation, key.attempt, job.place.random.id())
}

/** Under which everything of the attempt lies. */
export function prefixOf(job: Job, key: AttemptKey): string {
  return attemptPrefix(job.compiled.topology.pipeline, key.incarnation, key.attempt)
}

/** True when the run holds the pipeline, under this generation if one is named. */
export function holds(head: Head, run: RunKey, generation = head.generation): boolean {
  return head.run.open && head.run.id === run.id && head.generation === generation
}

/** Throws `FENCED` unless the run holds the pipeline. */
export function mustHold(head: Head, run: RunKey, generation: number): void {
  if (holds(head, run, generation)) return
  throw new PawlError('FENCED', `run ${head.run.id} holds ${head.pipeline} in generation ${head.generation}`, {
    run: run.id,
    holder: head.run.id,
  })
}

/** The log of the source with this id. */
export function openSource(job: Job, id: string, incarnation: string): Promise<LogSource> {
  return job.place.source(job.compiled.topology.pipeline, id, job.compiled.sources[id], incarnation)
}

/** The sink with this id. Throws `SINK_MISSING` when the pipeline file lacks it. */
export function openSink(job: Job, id: string, incarnation: string): Promise<Sink> {
  const spec = job.compiled.sinks[id]
  if (!spec) throw new PawlError('SINK_MISSING', `sink ${id} of ${job.compiled.topology.pipeline}`, { sink: id })
  return job.place.sink(job.compiled.topology.pipeline, id, spec, incarnation)
}
