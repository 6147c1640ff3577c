/**
 * Plan: everything between two epochs, until there is one to run.
 *
 * Reads:  facts; bounds of the logs; the last manifest. Writes: whatever `decide` asks for; then head.open and the
 * plan object.
 * Safe to repeat because: each act applies only to the head on which it was decided, and then the facts are gathered
 * again. `open` is written before the plan object, so that no plan lies in the store that no root reaches.
 */
import { PawlError } from '../model/errors.ts'
import type { Head, OpenAttempt } from '../model/head.ts'
import { limits } from '../model/limits.ts'
import { type Manifest, type Plan, planVersion } from '../model/manifest.ts'
import { planName } from '../model/names.ts'
import { rangeSpan } from '../model/offsets.ts'
import type { AttemptKey, PlanInput, RunKey, StepOutput, TaskInput } from '../model/steps.ts'
import { advanceWatermark } from '../stream/operators/watermark.ts'
import { amend } from './amend.ts'
import { claim, clear } from './claim.ts'
import { create } from './create.ts'
import { type Decision, decide } from './decide.ts'
import { finishDrain, pinEnds } from './drain.ts'
import { gatherFacts } from './facts.ts'
import { type Gathered, gatherRefused, sealRefused, settleRefusing } from './gather-refused.ts'
import { holds, type Job, readManifest } from './job.ts'
import { refuseLineage } from './judge-lineage.ts'
import { handOver, leave, left } from './leave.ts'
import { epochEvents, mapEvents, planEvents, spend } from './machine.ts'
import { lanesToPromote } from './promote.ts'
import { register } from './register.ts'
import { renew } from './renew.ts'
import { unparked } from './restart.ts'
import { ring } from './ring.ts'
import { seal } from './seal.ts'
import { isFused, spanBound } from './split.ts'
import { type Survey, survey } from './survey.ts'

const decisionsMax = 50

export async function plan(job: Job, seen: PlanInput): Promise<StepOutput> {
  const input = { ...seen, run: spend(seen.run, planEvents) }
  for (let decisions = 0; decisions < decisionsMax; decisions++) {
    const output = await act(job, input, decide(await gatherFacts(job, input)))
    if (output !== null) return output
  }
  throw new PawlError('LEDGER_BUSY', `the head of ${input.run.pipeline} keeps moving`)
}

/** Does what was decided; null to gather the facts again. */
async function act(job: Job, input: PlanInput, decided: Decision): Promise<StepOutput | null> {
  const { run } = input
  switch (decided.decision) {
    case 'create':
      await create(job, run)
      return null
    case 'claim':
      await claim(job, run, decided.head, decided.reason)
      return null
    case 'clear':
      await clear(job, run, decided.head)
      return null
    case 'unpark':
      await amend(job, (head) => (holds(head, run, decided.head.generation) ? unparked(head) : null))
      return null
    case 'register':
      await register(job, run, decided.head, decided.missing)
      return null
    case 'watch':
      return wait(run, decided.waitMs, watching(job, input, decided.head))
    case 'wait':
      await renew(job, run, decided.head.generation)
      return wait(run, decided.waitMs, null)
    case 'promote':
      return lanesToPromote(job, spend(run, mapEvents(decided.head.lanes.length) + 7), decided.head, decided.epoch)
    case 'hand-over':
      return (await handOver(job, run, decided.head)) ? left(job, run, 'handed over to a fresh run', null) : null
    case 'start-next':
      await ring(job.place, decided.head.pipeline)
      return left(job, run, 'handed over to a fresh run', null)
    case 'rest':
      return (await leave(job, run, decided.head)) ? left(job, run, decided.reason, decided.code) : null
    case 'retire':
      return left(job, run, decided.reason, null)
    case 'survey':
      return planOrRest(job, run, decided.head)
  }
}

function wait(run: RunKey, waitMs: number, watch: PlanInput['watch']): StepOutput {
  return { next: 'wait', run, waitMs, waitSeconds: Math.ceil(waitMs / 1000), watch: watch ?? null }
}

function watching(job: Job, input: PlanInput, head: Head): PlanInput['watch'] {
  if (input.watch && input.watch.revision === head.revision) return input.watch
  return { revision: head.revision, sinceMs: job.place.clock.nowMs() }
}

async function planOrRest(job: Job, run: RunKey, head: Head): Promise<StepOutput | null> {
  await renew(job, run, head.generation)
  // Looked at before the logs: a ring that comes later must find the run open, or open it again.
  const wakes = await job.place.ledger.wakes(head.pipeline)
  const parent = await readManifest(job, head.committed.manifest)
  refuseLineage(job.compiled, parent)
  const spanMax = spanBound(job.compiled, parent)
  const bound = Math.min(spanMax, head.failures.spanMax ?? spanMax, limits.epochSpanMax)
  const drain = head.paused?.drain ?? null
  if (drain !== null && drain.ends === null) return pinEnds(job, run, head)
  const found = await survey(job, parent, bound, head.failures.spanMax !== null, drain?.ends ?? null)
  job.place.telemetry.emit({ event: 'lag', pipeline: head.pipeline, lag: found.lag })
  const refused = await gatherRefused(job, head)
  const hasInput = found.span > 0 || found.lost.length > 0 || (refused?.lanes.length ?? 0) > 0
  if (drain !== null && !hasInput) return finishDrain(job, run, head)
  if (hasInput || timePasses(job, parent, found)) {
    return open(job, run, head, { ...found, fused: isFused(job.compiled, parent, found.span), refused })
  }
  if (refused !== null) await settleRefusing(job, head, refused)
  const lingersMs = head.hurry ? 0 : head.committed.atMs + run.lingerMs - job.place.clock.nowMs()
  if (lingersMs > 0)
    return wait(run, Math.min(lingersMs, Math.max(job.compiled.settings.checkpoint.intervalMs, 10)), null)
  return (await leave(job, run, head, wakes)) ? left(job, run, 'nothing to do', null) : null
}

/** True when an epoch without records would move the watermark, because partitions have become idle. */
export function timePasses(job: Job, parent: Manifest, found: Survey): boolean {
  if (!job.compiled.stateful.some((operator) => operator.stateKind === 'window')) return false
  const { watermarkMs } = advanceWatermark({
    previous: parent.progress,
    ranges: found.ranges,
    eventTimes: [],
    processingTimeMs: job.place.clock.nowMs(),
    previousWatermarkMs: parent.watermarkMs,
    sources: watermarkSettings(job),
  })
  return watermarkMs !== parent.watermarkMs
}

/** How each source makes watermarks, from the topology. */
export function watermarkSettings(
  job: Job,
): Record<string, { maxOutOfOrdernessMs: number; idleAfterMs: number | null }> {
  const sources = job.compiled.topology.nodes.filter((node) => node.kind === 'source')
  return Object.fromEntries(
    sources.map(({ id, maxOutOfOrdernessMs, idleAfterMs }) => [id, { maxOutOfOrdernessMs, idleAfterMs }]),
  )
}

/** What an epoch is to be made of. */
interface Wanted extends Survey {
  readonly fused: boolean
  readonly refused: Gathered | null
}

async function open(job: Job, run: RunKey, head: Head, found: Wanted): Promise<StepOutput | null> {
  const nowMs = job.place.clock.nowMs()
  const epoch = head.committed.epoch + 1
  const suspects = found.ranges.filter((range) => rangeSpan(range) > 0n)
  const attempt: OpenAttempt = {
    attempt: job.place.random.id(),
    epoch,
    build: job.compiled.build,
    openedAtMs: nowMs,
    span: found.span,
    suspect:
      found.span === 1
        ? { source: suspects[0].source, partition: suspects[0].partition, offset: suspects[0].start }
        : null,
  }
  const amended = await amend(job, (now) =>
    holds(now, run, head.generation) && mayOpen(now, head) ? opened(now, head, attempt) : null,
  )
  if (amended.result !== 'applied') return null
  const key = { attempt: attempt.attempt, epoch, generation: head.generation, incarnation: head.incarnation }
  const carried = await sealRefused(job, amended.head, attempt.attempt, found.refused)
  const planned = { ...planOf(job, run, amended.head, key, found, nowMs), refused: carried }
  await seal(job.place.store, planName(head.pipeline, head.incarnation, attempt.attempt), planned)
  const behind = found.ranges.some((range) => !range.caughtUp)
  const spent = { ...spend(run, epochEvents(planned.stageTasks, planned.lanes.length)), behind }
  const tasks = tasksOf(spent, key, 0, planned.stageTasks[0], null)
  job.place.telemetry.emit({
    event: 'opened',
    pipeline: head.pipeline,
    epoch,
    attempt: attempt.attempt,
    span: found.span,
    tasks: tasks.length,
  })
  return { next: 'operate', run: spent, key, stage: 0, gathered: null, tasks }
}

/** The head with the attempt; a person who hurried after the logs were looked at waits for the epoch after it. */
function opened(now: Head, surveyed: Head, attempt: OpenAttempt): Head {
  const { hurry } = now
  const granted = hurry && hurry.id === surveyed.hurry?.id ? { hurry: { ...hurry, epoch: attempt.epoch } } : {}
  return { ...now, open: attempt, parked: null, ...granted }
}

/** Epoch e opens only on the head that was surveyed: e − 1 committed and promoted, nothing open, nobody paused. */
function mayOpen(now: Head, surveyed: Head): boolean {
  const same =
    now.committed.manifest.sha256 === surveyed.committed.manifest.sha256 && now.paused?.id === surveyed.paused?.id
  return now.open === null && same && now.promotedThrough === now.committed.epoch
}

function planOf(
  job: Job,
  run: RunKey,
  head: Head,
  key: AttemptKey,
  found: Survey & { readonly fused: boolean },
  nowMs: number,
): Plan {
  const { settings, topology } = job.compiled
  const { fused } = found
  const readers = Math.max(1, Math.min(settings.shards, found.ranges.length))
  return {
    version: planVersion,
    pipeline: head.pipeline,
    incarnation: head.incarnation,
    epoch: key.epoch,
    attempt: key.attempt,
    run: run.id,
    generation: key.generation,
    build: job.compiled.build,
    parent: head.committed.manifest,
    processingTimeMs: nowMs,
    deadlineMs: nowMs + settings.checkpoint.timeoutMs,
    ranges: found.ranges,
    fused,
    shards: settings.shards,
    stageTasks: fused ? [1] : [readers, ...Array.from({ length: topology.stages - 1 }, () => settings.shards)],
    convicted: head.failures.convicted,
    lanes: head.lanes,
    lost: found.lost,
    unconfirmed: head.unconfirmed?.recent,
  }
}

/** The inputs of all tasks of one stage. */
export function tasksOf(
  run: RunKey,
  key: AttemptKey,
  stage: number,
  count: number,
  gathered: TaskInput['gathered'],
): TaskInput[] {
  return Array.from({ length: count }, (_, task) => ({ run, key, stage, task, of: count, gathered }))
}
