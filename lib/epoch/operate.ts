/**
 * Operate: one task of one attempt.
 *
 * Reads:  plan, log ranges or shuffle segments, the last committed snapshots. Writes: shuffle segments, snapshot
 * files, staged output and a result, all under a name of this invocation.
 * Safe to repeat because: nothing that it writes is visible, no name is shared with another invocation, and its
 * result counts only if precommit is told of it.
 */
import { isPawlError, PawlError } from '../model/errors.ts'
import type { ObjectRef } from '../model/head.ts'
import type { Manifest, Plan, Snapshot } from '../model/manifest.ts'
import type { RangeText } from '../model/offsets.ts'
import { type Gathered, resultVersion, type TaskResult, type Watermark } from '../model/results.ts'
import type { TaskInput, TaskOutput } from '../model/steps.ts'
import type { StageWriter } from '../ports/sink.ts'
import { shardRange } from '../state/key-groups.ts'
import { advanceWatermark } from '../stream/operators/watermark.ts'
import type { OperatorState, Program } from '../stream/program.ts'
import { lettersOf, refusedOf } from './gather-refused.ts'
import { type Job, newInvocation, openSink, openSource, readManifest, readPlan } from './job.ts'
import { watermarkSettings } from './plan.ts'
import { renew } from './renew.ts'
import { seal, sealBytes, unseal, unsealBytes } from './seal.ts'

const flushBytes = 4 * 1024 * 1024

interface Task {
  readonly job: Job
  readonly input: TaskInput
  readonly plan: Plan
  readonly parent: Manifest
  readonly prefix: string
  readonly stage: number | 'fused'
  readonly writers: Readonly<Record<string, StageWriter>>
  readonly states: readonly HeldState[]
  readonly program: Program
  readonly segments: (ObjectRef & { stage: number; shard: number })[]
}

interface HeldState {
  readonly state: OperatorState
  readonly parent: Snapshot | null
}

export async function operate(job: Job, input: TaskInput): Promise<TaskOutput> {
  const { clock } = job.place
  const begunAtMs = clock.nowMs()
  const task = await begin(job, input)
  const { program, plan } = task
  if (input.stage === 0 && input.task === 0) await carryRefused(task)
  const ranges = input.stage === 0 ? await consumeRanges(task) : await consumeSegments(task)
  const watermark = await watermarkOf(task)
  program.finish(watermark === null ? null : watermark.watermarkMs)
  await storeSegments(task)
  const staged = await sealWriters(task)
  const snapshots = await storeSnapshots(task)
  const result: TaskResult = {
    version: resultVersion,
    stage: input.stage,
    task: input.task,
    build: job.compiled.build,
    ranges,
    eventTimes: program.eventTimes(),
    staged,
    snapshots,
    segments: task.segments,
    counts: program.counts(),
    rejected: await storeRejected(task),
    watermark: plan.fused ? watermark : null,
    tookMs: Math.max(0, clock.nowMs() - begunAtMs),
  }
  return { stage: input.stage, task: input.task, result: await seal(job.place.store, `${task.prefix}result`, result) }
}

async function begin(job: Job, input: TaskInput): Promise<Task> {
  const head = await renew(job, input.run, input.key.generation)
  const plan = await readPlan(job, input.key)
  if (plan.build !== job.compiled.build) {
    throw new PawlError('BUILD_CHANGED', `epoch ${plan.epoch} was planned by build ${plan.build}`, {
      planned: plan.build,
      here: job.compiled.build,
    })
  }
  if (head.open?.attempt !== plan.attempt) throw new PawlError('FENCED', `attempt ${plan.attempt} is not open any more`)
  const parent = await readManifest(job, plan.parent)
  const prefix = newInvocation(job, input.key)
  const stage = plan.fused ? 'fused' : input.stage
  const states = await loadStates(job, plan, parent, input)
  const writers = await openWriters(job, plan, stage, prefix)
  const program = job.compiled.program({
    stage,
    shards: plan.shards,
    shard: input.task,
    processingTimeMs: plan.processingTimeMs,
    watermarkMs: parent.watermarkMs,
    writers,
    states: states.map((held) => held.state),
    convicted: plan.convicted,
  })
  return { job, input, plan, parent, prefix, stage, writers, states, program, segments: [] }
}

async function openWriters(
  job: Job,
  plan: Plan,
  stage: number | 'fused',
  prefix: string,
): Promise<Record<string, StageWriter>> {
  const writers: Record<string, StageWriter> = {}
  for (const id of job.compiled.sinksOf(stage)) {
    const sink = await openSink(job, id, plan.incarnation)
    writers[id] = await sink.stage({
      store: job.place.store,
      prefix: `${prefix}${id}/`,
      incarnation: plan.incarnation,
      epoch: plan.epoch,
      lanes: job.compiled.sinks[id].lanes,
    })
  }
  return writers
}

async function loadStates(job: Job, plan: Plan, parent: Manifest, input: TaskInput): Promise<HeldState[]> {
  const held: HeldState[] = []
  for (const { operator, stage } of job.compiled.stateful) {
    if (!plan.fused && stage !== input.stage) continue
    const shards = plan.fused ? Array.from({ length: plan.shards }, (_, shard) => shard) : [input.task]
    for (const shard of shards) {
      const keyGroups = shardRange(shard, plan.shards, job.compiled.settings.keyGroups)
      const snapshot = snapshotOf(parent, operator, keyGroups)
      held.push({
        parent: snapshot,
        state: job.states.take(operator, keyGroups, snapshot) ?? (await loadState(job, operator, keyGroups, snapshot)),
      })
    }
  }
  return held
}

function snapshotOf(parent: Manifest, operator: string, keyGroups: readonly [number, number]): Snapshot | null {
  const same = (snapshot: Snapshot) =>
    snapshot.operator === operator && snapshot.keyGroups[0] === keyGroups[0] && snapshot.keyGroups[1] === keyGroups[1]
  return parent.snapshots.find(same) ?? null
}

async function loadState(
  job: Job,
  operator: string,
  keyGroups: readonly [number, number],
  snapshot: Snapshot | null,
): Promise<OperatorState> {
  const files: Buffer[] = []
  for (const file of snapshot?.files ?? [])
    files.push(await unsealBytes(job.place.store, file, 'OBJECT_MISSING', 'SNAPSHOT_DAMAGED'))
  return job.compiled.state(operator, keyGroups, snapshot, files)
}

/** The ranges of this task: all of them when fused, else a contiguous share. */
export function rangesOf(plan: Plan, stage: number, task: number): Plan['ranges'] {
  if (stage !== 0) return []
  const count = plan.stageTasks[0]
  const from = Math.floor((task * plan.ranges.length) / count)
  return plan.ranges.slice(from, Math.floor(((task + 1) * plan.ranges.length) / count))
}

async function consumeRanges(task: Task): Promise<RangeText[]> {
  const { job, plan, input, program } = task
  const ranges = rangesOf(plan, input.stage, input.task)
  for (const range of ranges) {
    if (range.start === range.end) continue
    const source = await openSource(job, range.source, plan.incarnation)
    const wanted = {
      partition: range.partition,
      start: BigInt(range.start),
      end: BigInt(range.end),
      topicId: range.topicId,
    }
    try {
      for await (const batch of source.read(wanted)) {
        program.consume(range.source, batch)
        await between(task)
      }
    } catch (error) {
      throw mayLose(job, range.source, error)
        ? new PawlError('LOG_UNAVAILABLE', `source ${range.source} is planned again`, {}, error)
        : error
    }
  }
  return ranges.map(({ source, partition, start, end }) => ({ source, partition, start, end }))
}

/** The log lost what the plan had found: where that is let go, the next plan names it. */
function mayLose({ compiled }: Job, source: string, error: unknown): boolean {
  return isPawlError(error) && error.code === 'LOG_OFFSET_LOST' && compiled.sources[source].onLostOffsets === 'skip'
}

/** What sinks have refused in earlier epochs goes to the dead letters of this one. */
async function carryRefused({ job, plan, program }: Task): Promise<void> {
  const lanes = await refusedOf(job, plan.refused)
  for (const letter of lettersOf(lanes, plan.processingTimeMs)) program.carry(letter)
}

async function consumeSegments(task: Task): Promise<RangeText[]> {
  const { job, input, program } = task
  const gathered = await gatheredOf(task)
  for (const result of gathered.results) {
    for (const segment of result.segments) {
      if (segment.stage !== input.stage || segment.shard !== input.task) continue
      program.consumeSegment(await unsealBytes(job.place.store, segment, 'SHUFFLE_DAMAGED', 'SHUFFLE_DAMAGED'))
      await between(task)
    }
  }
  return []
}

async function gatheredOf(task: Task): Promise<Gathered> {
  if (task.input.gathered === null)
    throw new PawlError('STEP_INPUT_INVALID', `stage ${task.input.stage} without earlier results`)
  return unseal<Gathered>(task.job.place.store, task.input.gathered)
}

/** Between batches: keep the deadline, and hand large buffers to the store. */
async function between(task: Task): Promise<void> {
  const { plan, program, job } = task
  if (job.place.clock.nowMs() > plan.deadlineMs) {
    throw new PawlError('EPOCH_TIMEOUT', `epoch ${plan.epoch} after ${plan.deadlineMs - plan.processingTimeMs} ms`, {
      epoch: plan.epoch,
    })
  }
  if (program.bufferedShuffleBytes > flushBytes) await storeSegments(task)
  for (const id in task.writers) if (task.writers[id].bufferedBytes > flushBytes) await task.writers[id].flush()
}

async function watermarkOf(task: Task): Promise<Watermark | null> {
  const { plan, parent, job, program, input } = task
  if (input.stage > 0) return (await gatheredOf(task)).watermark
  if (!plan.fused) return null
  return advance(job, plan, parent, program.eventTimes())
}

/** The watermark after the epoch, from the event times that its tasks have seen. */
export function advance(job: Job, plan: Plan, parent: Manifest, eventTimes: TaskResult['eventTimes']): Watermark {
  return advanceWatermark({
    previous: parent.progress,
    ranges: plan.ranges,
    eventTimes,
    processingTimeMs: plan.processingTimeMs,
    previousWatermarkMs: parent.watermarkMs,
    sources: watermarkSettings(job),
  })
}

async function storeSegments(task: Task): Promise<void> {
  for (const { stage, shard, chunks } of task.program.takeSegments()) {
    const name = `${task.prefix}segment-${task.segments.length}`
    task.segments.push({ ...(await sealBytes(task.job.place.store, name, chunks)), stage, shard })
  }
}

async function sealWriters(task: Task): Promise<TaskResult['staged']> {
  const staged: { sink: string; parts: Awaited<ReturnType<StageWriter['seal']>> }[] = []
  for (const sink in task.writers) {
    const parts = await task.writers[sink].seal()
    if (parts.length > 0) staged.push({ sink, parts })
  }
  return staged
}

/** Deltas of what was touched; untouched state keeps the files of the parent. */
async function storeSnapshots(task: Task): Promise<Snapshot[]> {
  const snapshots: Snapshot[] = []
  for (const [index, { state, parent }] of task.states.entries()) {
    const { operator, stateKind, stateVersion, keyGroups } = state
    const encoded = state.encode(parent)
    let files = parent?.files ?? []
    if (encoded !== null) {
      const ref = await sealBytes(task.job.place.store, `${task.prefix}state-${index}`, encoded.chunks)
      const file = { ...ref, file: encoded.file, entries: encoded.entries }
      files = [...files.slice(0, encoded.keep), file]
    }
    const snapshot: Snapshot = { operator, stateVersion, stateKind, keyGroups, files }
    state.settle()
    task.job.states.put(state, snapshot)
    snapshots.push(snapshot)
  }
  return snapshots
}

async function storeRejected(task: Task): Promise<ObjectRef | null> {
  const rejected = task.program.rejected()
  return rejected.length === 0 ? null : seal(task.job.place.store, `${task.prefix}rejected`, rejected)
}
