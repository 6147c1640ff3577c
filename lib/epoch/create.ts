/**
 * Create: the genesis of a pipeline.
 *
 * Reads:  start positions of every source. Writes: the genesis manifest (epoch 0), then the head, if absent.
 * Safe to repeat because: each try makes an incarnation of its own, and only the first head is created; what a
 * lost try wrote is reachable by nothing. Start positions are resolved here, once, and pinned.
 */
import { isPawlError } from '../model/errors.ts'
import { type Head, type HistoryItem, headVersion, type ObjectRef } from '../model/head.ts'
import { type Manifest, manifestVersion, type PartitionProgress } from '../model/manifest.ts'
import type { RunKey } from '../model/steps.ts'
import { type Job, newInvocation, openSource } from './job.ts'
import { noFailures } from './restart.ts'
import { seal } from './seal.ts'

export async function create(job: Job, run: RunKey): Promise<void> {
  const { ledger, clock, random, telemetry, store } = job.place
  const pipeline = job.compiled.topology.pipeline
  const incarnation = random.id()
  const attempt = random.id()
  const nowMs = clock.nowMs()
  const manifest = await genesisOf(job, run, incarnation, attempt, nowMs)
  const prefix = newInvocation(job, { incarnation, attempt, epoch: 0, generation: 0 })
  const ref = await seal(store, `${prefix}manifest`, manifest)
  const history: HistoryItem = { epoch: 0, attempt, generation: 0, manifest: ref, atMs: nowMs }
  try {
    const answer = await ledger.create(genesisHead(job, run, incarnation, random.id(), history, ref, nowMs), history)
    if (answer === 'created') telemetry.emit({ event: 'created', pipeline, incarnation })
  } catch (error) {
    // Whether it was created shows when the head is read next.
    if (!isPawlError(error) || error.code !== 'UNKNOWN_RESULT') throw error
  }
}

async function genesisOf(
  job: Job,
  run: RunKey,
  incarnation: string,
  attempt: string,
  nowMs: number,
): Promise<Manifest> {
  const progress: PartitionProgress[] = []
  for (const source of Object.keys(job.compiled.sources).sort()) {
    const log = await openSource(job, source, incarnation)
    const { topicId } = await log.bounds()
    const starts = [...(await log.resolve(job.compiled.sources[source].start))].sort(([a], [b]) => a - b)
    for (const [partition, offset] of starts) {
      const at = offset.toString()
      progress.push({ source, partition, topicId, start: at, end: at, maxTimestampMs: null, activeAtMs: nowMs })
    }
  }
  return {
    version: manifestVersion,
    pipeline: job.compiled.topology.pipeline,
    incarnation,
    epoch: 0,
    attempt,
    run: run.id,
    generation: 0,
    build: job.compiled.build,
    parent: null,
    genesis: null,
    processingTimeMs: nowMs,
    progress,
    watermarkMs: null,
    snapshots: [],
    committables: [],
    laneMarkers: [],
    counts: { in: 0, out: {}, late: 0, rejected: 0 },
    rejected: null,
    convicted: [],
    lost: [],
  }
}

function genesisHead(
  job: Job,
  run: RunKey,
  incarnation: string,
  write: string,
  at: HistoryItem,
  manifest: ObjectRef,
  nowMs: number,
): Head {
  return {
    version: headVersion,
    pipeline: job.compiled.topology.pipeline,
    incarnation,
    revision: 1,
    write,
    generation: 0,
    run: {
      sequence: 0,
      id: 'genesis',
      open: false,
      place: run.place,
      leaseMs: job.compiled.settings.leaseMs,
      renewedAtMs: nowMs,
      epochs: 0,
    },
    open: null,
    committed: { epoch: 0, attempt: at.attempt, manifest, openedAtMs: nowMs, atMs: nowMs },
    promotedThrough: 0,
    lanes: [],
    retainedFrom: 0,
    savepoints: [],
    failures: noFailures,
    parked: null,
  }
}
