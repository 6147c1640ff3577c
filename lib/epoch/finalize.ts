/**
 * Finalize: closes a promoted epoch, or parks its promotion until the sink is back.
 *
 * Reads:  head, manifest. Writes: promoted-through; group offsets for monitoring; the time of the next try.
 * Safe to repeat because: it moves promoted-through only from epoch − 1 to the epoch, only as the holder. Group
 * offsets are written after the fact and never read back as truth, so their failure changes nothing.
 */
import { kindOf } from '../model/errors.ts'
import type { Head, Parked, SinkLane } from '../model/head.ts'
import { laneName } from '../model/names.ts'
import type { FinalizeInput, LaneOutput, StepOutput } from '../model/steps.ts'
import { amend, readHead } from './amend.ts'
import { tallied, unconfirmedOf } from './begin.ts'
import { causeOf } from './cause.ts'
import { collect } from './collect.ts'
import { forgetRefused } from './gather-refused.ts'
import { holds, type Job, mustHold, openSource, readManifest } from './job.ts'
import { permitOf } from './permit.ts'

/** Epochs between two collections. */
const collectEvery = 10

export async function finalize(job: Job, input: FinalizeInput): Promise<StepOutput> {
  const { run, epoch, generation, error } = input
  if (error) return parkPromotion(job, input, error)
  try {
    await forget(job, input)
  } catch (caught) {
    if (kindOf(caught) === 'Fenced') throw caught
    return parkPromotion(job, input, caught)
  }
  const amended = await amend(job, (head) =>
    holds(head, run, generation) && mayFinalize(head, input) ? finalized(head, input) : null,
  )
  mustHold(amended.head, run, generation)
  if (amended.result === 'applied') {
    reportLosses(job, amended.head, input)
    job.place.telemetry.emit({ event: 'finalized', pipeline: run.pipeline, epoch, atMs: job.place.clock.nowMs() })
    await publishOffsets(job, amended.head, epoch)
    if (epoch % collectEvery === 0) await collect(job)
  }
  return { next: 'plan', run }
}

/** The epoch that was promoted is the one that is committed: a ledger may have been rewound in between. */
function mayFinalize({ promotedThrough, committed }: Head, { epoch, hash }: FinalizeInput): boolean {
  return promotedThrough === epoch - 1 && committed.epoch === epoch && committed.manifest.sha256 === hash
}

function finalized(head: Head, { epoch, promoted = [] }: FinalizeInput): Head {
  return {
    ...head,
    promotedThrough: epoch,
    parked: null,
    run: { ...head.run, epochs: head.run.epochs + 1 },
    begun: undefined,
    unconfirmed: tallied(head.unconfirmed, unconfirmedOf(head, epoch)),
    refusing: withLanes(head.refusing ?? [], promoted),
  }
}

function withLanes(known: readonly SinkLane[], promoted: readonly LaneOutput[]): readonly SinkLane[] | undefined {
  const all = new Map(known.map((lane) => [laneName(lane.sink, lane.lane), lane]))
  for (const { refusing } of promoted) if (refusing) all.set(laneName(refusing.sink, refusing.lane), refusing)
  return all.size === 0 ? undefined : [...all.values()]
}

/** Before the epoch is closed: the next plan must not find again in a sink what this epoch has carried. */
async function forget(job: Job, { run, epoch, generation, promoted = [] }: FinalizeInput): Promise<void> {
  if (!promoted.some(({ carries }) => carries)) return
  const head = await readHead(job)
  mustHold(head, run, generation)
  if (epoch > head.committed.epoch) return
  const manifest = await readManifest(job, (await permitOf(job, head, epoch)).manifest)
  await forgetRefused(job, head, manifest.refused)
}

function reportLosses(job: Job, { pipeline, unconfirmed }: Head, { epoch, promoted = [] }: FinalizeInput): void {
  for (const output of unconfirmed?.recent ?? [])
    if (output.epoch === epoch) job.place.telemetry.emit({ event: 'unconfirmed', pipeline, ...output })
  for (const { refusing } of promoted)
    if (refusing) job.place.telemetry.emit({ event: 'refused', pipeline, epoch, ...refusing })
}

async function publishOffsets(job: Job, head: Head, epoch: number): Promise<void> {
  const manifest = await readManifest(job, (await permitOf(job, head, epoch)).manifest)
  for (const [id, spec] of Object.entries(job.compiled.sources)) {
    if (spec.group === null) continue
    const source = await openSource(job, id, head.incarnation)
    const offsets = manifest.progress
      .filter((at) => at.source === id)
      .map((at) => [at.partition, BigInt(at.end)] as const)
    try {
      await source.publish?.(spec.group, new Map(offsets))
    } catch (error) {
      const { code, message } = causeOf(error)
      job.place.telemetry.emit({
        event: 'offsets-unpublished',
        pipeline: head.pipeline,
        epoch,
        source: id,
        code,
        message,
      })
    }
  }
}

/** A sink that does not answer is tried again by itself; one that contradicts the chain waits for a person. */
async function parkPromotion(job: Job, { run, generation }: FinalizeInput, error: unknown): Promise<StepOutput> {
  const cause = causeOf(error)
  const nowMs = job.place.clock.nowMs()
  const amended = await amend(job, (head) =>
    holds(head, run, generation) ? { ...head, parked: parked(job, head, cause, nowMs) } : null,
  )
  mustHold(amended.head, run, generation)
  job.place.telemetry.emit({
    event: 'parked',
    pipeline: run.pipeline,
    kind: amended.head.parked?.kind ?? 'promotion',
    code: cause.code,
    message: cause.message,
  })
  return { next: 'plan', run }
}

function parked(job: Job, head: Head, cause: ReturnType<typeof causeOf>, nowMs: number): Parked {
  const before = head.parked?.kind === 'promotion' ? head.parked : null
  const retries = (before?.retries ?? 0) + 1
  const [first, max] = job.compiled.settings.promotionRetryMs
  const again = cause.kind !== 'Corrupt' && cause.kind !== 'Invalid'
  return {
    kind: again ? 'promotion' : 'failure',
    code: cause.code,
    message: cause.message,
    sinceMs: again ? (before?.sinceMs ?? nowMs) : nowMs,
    retryAtMs: again ? nowMs + Math.min(max, first * 2 ** Math.min(retries - 1, 30)) : null,
    retries,
    build: job.compiled.build,
  }
}
