/**
 * Promote: makes one lane of a committed epoch visible in its sink, repeatably.
 *
 * Reads:  head, history, the manifest of the epoch (never the running configuration). Writes: the sink and its
 * marker, in one atomic step of the sink.
 * Safe to repeat because: the sink writes only while its marker is the one before this epoch. What else it may show
 * is judged along the committed chain: this epoch or a later one of ours is done; an earlier one of ours means that
 * the sink lost data, and the missing epochs are promoted again in order; anything else is corruption. A sink without
 * a marker shows rows again when it is tried again; what must come at most once is tried once.
 */
import { faultOf, isPawlError, PawlError } from '../model/errors.ts'
import type { Head } from '../model/head.ts'
import { laneName } from '../model/names.ts'
import type { LaneInput, LaneOutput, RunKey, StepOutput } from '../model/steps.ts'
import { readHead } from './amend.ts'
import { type Job, mustHold, openSink, readManifest } from './job.ts'
import { judge, type Lane } from './judge.ts'
import { committableOf, permitOf } from './permit.ts'
import { promoteOnce } from './promote-once.ts'
import { renew } from './renew.ts'

const judgementsMax = 10

/** The lanes that have output in the epoch, from its manifest alone. */
export async function lanesToPromote(job: Job, run: RunKey, head: Head, epoch: number): Promise<StepOutput> {
  const permit = await permitOf(job, head, epoch)
  const manifest = await readManifest(job, permit.manifest)
  const { generation } = head
  const { attempt } = manifest
  const lanes = manifest.committables.map(({ sink, lane }) => ({ run, generation, epoch, sink, lane, attempt }))
  return { next: 'promote', run, epoch, hash: permit.manifest.sha256, generation, attempt, lanes }
}

export async function promote(job: Job, input: LaneInput): Promise<LaneOutput> {
  const head = await renew(job, input.run, input.generation)
  const permit = await permitOf(job, head, input.epoch)
  const committable = await committableOf(job, permit.manifest, input)
  const sink = await openSink(job, input.sink, head.incarnation)
  const lane: Lane = { job, input, permit, committable, sink }
  const { refused: carried } = await readManifest(job, permit.manifest)
  const answer: LaneOutput = {
    promoted: laneName(input.sink, input.lane),
    ...(carried === undefined ? {} : { carries: true }),
  }
  const once = committable.tries === 'once'
  const refused = await named(lane, () => (once ? promotedOnce(lane) : promoteUntilDone(lane)))
  if (refused === null) return answer
  report(lane)
  return refused ? { ...answer, refusing: { sink: input.sink, lane: input.lane } } : answer
}

/** Adds whose output waits to what does not say so by itself; sinks that name more than that are left as they are. */
async function named<T>({ input }: Lane, deed: () => Promise<T>): Promise<T> {
  try {
    return await deed()
  } catch (error) {
    if (!isPawlError(error) || error.kind === 'Fenced' || error.details.lane !== undefined) throw error
    const { sink, lane, epoch } = input
    const fault = `sink ${sink}, lane ${lane}, epoch ${epoch}: ${faultOf(error)}`
    throw new PawlError(error.code, fault, { ...error.details, sink, lane, epoch }, error)
  }
}

/** True when the sink holds rows of the lane that it refused. */
async function promoteUntilDone(lane: Lane): Promise<boolean> {
  const { job, input, permit, committable, sink } = lane
  for (let judgements = 0; judgements < judgementsMax; judgements++) {
    const answer = await asHolder(job, input, () => sink.promote(committable, permit))
    if (answer.result === 'promoted' && judgements === 0) return (answer.refused ?? 0) > 0
    // What another try refused, or what was refused again after a restore, only the sink knows.
    if (answer.result === 'promoted' || (await judge(lane, answer.found)) === 'done') return holdsRefused(lane)
  }
  throw new PawlError('SINK_UNAVAILABLE', `the marker of lane ${laneName(input.sink, input.lane)} keeps moving`)
}

/** As above; null when it is not known whether anything is shown. */
async function promotedOnce(lane: Lane): Promise<boolean | null> {
  const once = await promoteOnce(lane)
  if (!once.shown) return null
  return once.refused === null ? holdsRefused(lane) : once.refused > 0
}

async function holdsRefused({ input, sink }: Lane): Promise<boolean> {
  return ((await sink.refused?.(input.lane, { rows: 1, bytes: 1 })) ?? []).length > 0
}

function report({ job, input, committable }: Lane): void {
  const { run, epoch, sink, lane } = input
  const { rows } = committable
  job.place.telemetry.emit({ event: 'promoted', pipeline: run.pipeline, epoch, sink, lane, rows })
}

/**
 * A sink that says `Fenced` may only have been disturbed: whether another run holds the pipeline, the head knows. If
 * none does, the promotion is tried again, from its marker.
 */
async function asHolder<T>(job: Job, input: LaneInput, deed: () => Promise<T>): Promise<T> {
  try {
    return await deed()
  } catch (error) {
    if (!isPawlError(error) || error.kind !== 'Fenced') throw error
    mustHold(await readHead(job), input.run, input.generation)
    throw new PawlError('SINK_UNAVAILABLE', `lane ${laneName(input.sink, input.lane)}: ${error.message}`, {}, error)
  }
}
