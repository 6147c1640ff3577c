/**
 * Precommit: gathers the results of a stage; after the last one, seals the manifest.
 *
 * Reads:  plan, task results, the names under the attempt. Writes: gathered results, or the manifest.
 * Safe to repeat because: it writes under a name of its own, and only what the commit names counts. Whatever would
 * make the commit unpromotable is refused here: a task missing or twice, a range not covered, a staged object that
 * is not there, a lane with more than promote can carry.
 */
import { assert } from '../model/assert.ts'
import { PawlError } from '../model/errors.ts'
import type { ObjectRef } from '../model/head.ts'
import type { Committable, Counts, LaneMarker, Manifest, Plan, RejectedRecord, StagedPart } from '../model/manifest.ts'
import { manifestVersion } from '../model/manifest.ts'
import { laneName } from '../model/names.ts'
import { type Gathered, resultVersion, type TaskResult, type Watermark } from '../model/results.ts'
import type { PrecommitInput, StepOutput } from '../model/steps.ts'
import { type Job, newInvocation, openSink, prefixOf, readManifest, readPlan } from './job.ts'
import { advance, rangesOf } from './operate.ts'
import { tasksOf } from './plan.ts'
import { renew } from './renew.ts'
import { seal, unseal } from './seal.ts'
import { paceAfter } from './split.ts'

export async function precommit(job: Job, input: PrecommitInput): Promise<StepOutput> {
  await renew(job, input.run, input.key.generation)
  const { store } = job.place
  const plan = await readPlan(job, input.key)
  const parent = await readManifest(job, plan.parent)
  const results = await Promise.all(input.results.map((output) => unseal<TaskResult>(store, output.result)))
  mustCover(plan, input.stage, results)
  const earlier = input.gathered === null ? null : await unseal<Gathered>(store, input.gathered)
  const all = [...(earlier?.results ?? []), ...results]
  const watermark = earlier?.watermark ?? watermarkOf(job, plan, parent, results)
  const prefix = newInvocation(job, input.key)
  if (input.stage + 1 < plan.stageTasks.length) {
    const gathered: Gathered = { version: resultVersion, results: all, watermark }
    const ref = await seal(store, `${prefix}gathered`, gathered)
    const stage = input.stage + 1
    return {
      next: 'operate',
      run: input.run,
      key: input.key,
      stage,
      gathered: ref,
      tasks: tasksOf(input.run, input.key, stage, plan.stageTasks[stage], ref),
    }
  }
  await mustExist(job, input, plan, all)
  const manifest = await manifestOf(job, plan, parent, all, watermark, prefix)
  return { next: 'commit', run: input.run, key: input.key, manifest: await seal(store, `${prefix}manifest`, manifest) }
}

/** Each task of the stage once, in order, with all of its ranges. Throws `TASK_COVERAGE_BROKEN`. */
function mustCover(plan: Plan, stage: number, results: readonly TaskResult[]): void {
  const fault = (why: string) =>
    new PawlError('TASK_COVERAGE_BROKEN', `epoch ${plan.epoch}, stage ${stage}: ${why}`, { epoch: plan.epoch })
  if (results.length !== plan.stageTasks[stage])
    throw fault(`${results.length} results for ${plan.stageTasks[stage]} tasks`)
  for (const [task, result] of results.entries()) {
    if (result.stage !== stage || result.task !== task)
      throw fault(`result ${task} is of task ${result.task} in stage ${result.stage}`)
    if (result.build !== plan.build) throw new PawlError('BUILD_CHANGED', `task ${task} ran build ${result.build}`)
    const wanted = rangesOf(plan, stage, task)
    const same = wanted.every((range, i) => {
      const read = result.ranges[i]
      return (
        read &&
        read.source === range.source &&
        read.partition === range.partition &&
        read.start === range.start &&
        read.end === range.end
      )
    })
    if (!same || wanted.length !== result.ranges.length) throw fault(`task ${task} did not read its ranges`)
  }
}

function watermarkOf(job: Job, plan: Plan, parent: Manifest, results: readonly TaskResult[]): Watermark {
  if (!plan.fused)
    return advance(
      job,
      plan,
      parent,
      results.flatMap((result) => result.eventTimes),
    )
  const { watermark } = results[0]
  assert(watermark !== null, 'a fused task moves the watermark')
  return watermark
}

/** Every object that the manifest will name lies in the store with its length. Throws `OBJECT_MISSING`. */
async function mustExist(
  job: Job,
  input: PrecommitInput,
  { refused }: Plan,
  results: readonly TaskResult[],
): Promise<void> {
  const prefix = prefixOf(job, input.key)
  const stored = new Map<string, number>()
  for await (const object of job.place.store.list(prefix)) stored.set(object.name, object.bytes)
  const staged = results.flatMap((result) =>
    result.staged.flatMap((sink) => sink.parts.flatMap((part) => part.objects)),
  )
  const states = results.flatMap((result) => result.snapshots.flatMap((snapshot) => snapshot.files))
  const carried = refused === undefined ? [] : [refused.object]
  for (const ref of [...staged, ...states, ...carried] as ObjectRef[]) {
    if (!ref.name.startsWith(prefix)) continue
    if (stored.get(ref.name) !== ref.bytes) throw new PawlError('OBJECT_MISSING', ref.name, { object: ref.name })
  }
}

async function manifestOf(
  job: Job,
  plan: Plan,
  parent: Manifest,
  results: readonly TaskResult[],
  watermark: Watermark,
  prefix: string,
): Promise<Manifest> {
  const markers = laneMarkersOf(plan, parent)
  return {
    version: manifestVersion,
    pipeline: plan.pipeline,
    incarnation: plan.incarnation,
    epoch: plan.epoch,
    attempt: plan.attempt,
    run: plan.run,
    generation: plan.generation,
    build: plan.build,
    parent: plan.parent,
    genesis: genesisOf(plan, parent),
    processingTimeMs: plan.processingTimeMs,
    progress: watermark.progress,
    watermarkMs: watermark.watermarkMs,
    snapshots: results.flatMap((result) => result.snapshots),
    committables: await committablesOf(job, plan, results, markers, prefix),
    laneMarkers: markers,
    counts: sumCounts(results.map((result) => result.counts)),
    ...paceAfter(job.compiled, plan, parent, results),
    rejected: await mergeRejected(job, results, prefix),
    convicted: plan.convicted,
    lost: plan.lost,
    guarantee: job.compiled.settings.guarantee,
    refused: plan.refused,
    unconfirmed: plan.unconfirmed,
  }
}

/** What the marker of each registered lane shows before this epoch is promoted. */
export function laneMarkersOf(plan: Plan, parent: Manifest): LaneMarker[] {
  const before = new Map(parent.laneMarkers.map((marker) => [laneName(marker.sink, marker.lane), marker]))
  const moved = new Set(parent.committables.map((committable) => laneName(committable.sink, committable.lane)))
  return plan.lanes.map(({ sink, lane }) => {
    const name = laneName(sink, lane)
    if (moved.has(name)) return { sink, lane, epoch: parent.epoch, hash: plan.parent.sha256 }
    return before.get(name) ?? { sink, lane, epoch: 0, hash: genesisOf(plan, parent) }
  })
}

function genesisOf(plan: Plan, parent: Manifest): string {
  const genesis = parent.epoch === 0 ? plan.parent.sha256 : parent.genesis
  assert(genesis !== null, 'the genesis hash travels with the chain')
  return genesis
}

async function committablesOf(
  job: Job,
  plan: Plan,
  results: readonly TaskResult[],
  markers: readonly LaneMarker[],
  prefix: string,
): Promise<Committable[]> {
  const committables: Committable[] = []
  for (const marker of markers) {
    const parts = results.flatMap((result) =>
      result.staged.filter((staged) => staged.sink === marker.sink).flatMap((staged) => staged.parts),
    )
    const mine = parts.filter((part) => part.lane === marker.lane && part.rows > 0)
    if (mine.length > 0) committables.push(await committableOf(job, plan, marker, mine, prefix))
  }
  return committables
}

async function committableOf(
  job: Job,
  plan: Plan,
  marker: LaneMarker,
  parts: readonly StagedPart[],
  prefix: string,
): Promise<Committable> {
  const sink = await openSink(job, marker.sink, plan.incarnation)
  const rows = parts.reduce((sum, part) => sum + part.rows, 0)
  const bytes = parts.reduce((sum, part) => sum + part.bytes, 0)
  if (rows > sink.limits.laneRowsMax || bytes > sink.limits.laneBytesMax) {
    const lane = laneName(marker.sink, marker.lane)
    throw new PawlError('EPOCH_TOO_LARGE', `lane ${lane} has ${rows} rows of ${bytes} bytes`, { lane, rows, bytes })
  }
  const context = {
    store: job.place.store,
    prefix: `${prefix}${marker.sink}/`,
    incarnation: plan.incarnation,
    epoch: plan.epoch,
    lanes: job.compiled.sinks[marker.sink].lanes,
  }
  return {
    sink: marker.sink,
    lane: marker.lane,
    target: sink.target,
    epoch: plan.epoch,
    prev: { incarnation: plan.incarnation, epoch: marker.epoch, hash: marker.hash },
    parts: sink.assemble ? await sink.assemble(parts, context) : parts,
    rows,
    bytes,
    tries: onceOnly(job, marker.sink) ? 'once' : undefined,
  }
}

/** At most once, on a sink whose promotion may show rows again when it is repeated. */
function onceOnly({ compiled }: Job, sink: string): boolean {
  const spec = compiled.sinks[sink]
  return compiled.settings.guarantee === 'at-most-once' && spec.kind === 'sink' && spec.guarantee !== 'exactly-once'
}

function sumCounts(all: readonly Counts[]): Counts {
  const out: Record<string, number> = {}
  for (const counts of all) for (const [sink, rows] of Object.entries(counts.out)) out[sink] = (out[sink] ?? 0) + rows
  const sum = (of: (counts: Counts) => number) => all.reduce((total, counts) => total + of(counts), 0)
  return { in: sum((c) => c.in), out, late: sum((c) => c.late), rejected: sum((c) => c.rejected) }
}

async function mergeRejected(job: Job, results: readonly TaskResult[], prefix: string): Promise<ObjectRef | null> {
  const refs = results.flatMap((result) => (result.rejected === null ? [] : [result.rejected]))
  if (refs.length < 2) return refs[0] ?? null
  const lists = await Promise.all(refs.map((ref) => unseal<RejectedRecord[]>(job.place.store, ref)))
  return seal(job.place.store, `${prefix}rejected`, lists.flat())
}
