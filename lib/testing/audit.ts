/**
 * The audit: what must hold at the very moment at which a head is written or a sink moves.
 *
 * The checker looks at worlds that have come to rest; some breaches are healed by then, or never got the chance to
 * hurt. Here each write of the head is held against the one before it. The first breach is kept by the world and
 * thrown by the driver, since what is thrown inside a step only looks like one more failure.
 */
import { createHash } from 'node:crypto'
import type { MemoryLedger } from '../adapters/memory/ledger.ts'
import type { Head, HistoryItem, ObjectRef } from '../model/head.ts'
import type { Manifest, RefusedLane } from '../model/manifest.ts'

/** Manifests that were ever committed, by hash: old ones are collected. */
export type ChainMemory = Map<string, Manifest>

/** What the audit asks of the world. */
export interface Audited {
  readonly manifests: ChainMemory
  /** Refused rows that committed epochs carried, by the hash of their manifest. */
  readonly carried: Map<string, readonly RefusedLane[]>
  /** A sink was restored from a backup: its markers may be behind. */
  readonly restored: boolean
  readonly sinks: ReadonlyMap<
    string,
    { readonly marked: boolean; marker(lane: number): { readonly epoch: number } | null }
  >
  readonly store: { snapshot(): ReadonlyMap<string, Buffer> }
  report(invariant: string): void
}

/** The ledger with each successful write audited; `rewound` is called when a test restores it. */
export function auditedLedger(ledger: MemoryLedger, world: Audited): MemoryLedger & { readonly committed: number } {
  const heads = new Map<string, Head>()
  let committed = 0
  const wrote = (head: Head, item: HistoryItem | undefined) => {
    const before = heads.get(head.pipeline)
    if (item !== undefined) rememberManifest(world, item)
    const breach = before === undefined ? null : breachOf(world, before, head, item)
    if (breach !== null) world.report(breach)
    heads.set(head.pipeline, head)
    committed = head.committed.epoch
  }
  return {
    ...ledger,
    get committed() {
      return committed
    },
    async create(head, history) {
      const answer = await ledger.create(head, history)
      if (answer === 'created') wrote(head, history)
      return answer
    },
    async swap(expected, head, options) {
      const answer = await ledger.swap(expected, head, options)
      if (answer === 'swapped') wrote(head, options?.history)
      return answer
    },
    restore(snapshot) {
      ledger.restore(snapshot)
      heads.clear()
      for (const [pipeline, { text }] of snapshot.heads) heads.set(pipeline, JSON.parse(text))
      committed = Math.max(0, ...[...heads.values()].map((head) => head.committed.epoch))
    },
  }
}

/** The invariant that the write breaks, or null. */
function breachOf(world: Audited, before: Head, after: Head, item: HistoryItem | undefined): string | null {
  return (
    breachOfRun(before, after) ??
    breachOfCommit(before, after, item) ??
    breachOfEpochs(world, before, after) ??
    breachOfPause(world, before, after)
  )
}

/** Whoever paused sees no epoch open, and whoever drained sees all input up to the pinned ends and none beyond. */
function breachOfPause(world: Audited, before: Head, after: Head): string | null {
  const opens = before.open === null && after.open !== null
  if (opens && before.paused && !before.paused.drain?.ends) return 'no epoch opens while the pipeline is paused'
  const ends = before.paused?.drain?.ends ?? null
  const manifest = world.manifests.get(after.committed.manifest.sha256)
  if (ends === null || manifest === undefined) return null
  const drained = after.paused?.id === before.paused?.id && after.paused?.drain === null
  if (drained && (after.open !== null || after.promotedThrough < after.committed.epoch))
    return 'a drain ends when everything is promoted'
  for (const { source, partition, start, end } of manifest.progress) {
    const stop = BigInt(ends.find((at) => at.source === source && at.partition === partition)?.end ?? start)
    if (drained && BigInt(end) < stop) return `a drain ends when ${source}/${partition} is read up to ${stop}`
    const commits = after.committed.epoch > before.committed.epoch
    if (commits && BigInt(end) > stop && end !== start)
      return `a drain reads ${source}/${partition} no further than ${stop}`
  }
  return null
}

function breachOfRun(before: Head, after: Head): string | null {
  if (after.incarnation !== before.incarnation) return 'the incarnation of a head does not change'
  if (after.generation < before.generation) return 'the generation does not fall'
  if (after.generation === before.generation) return null
  if (after.open !== null) return 'a takeover clears what was open'
  const counted = after.failures.count > before.failures.count || after.parked !== null
  return before.open === null || counted ? null : 'a takeover counts as a failure of the attempt that was open'
}

function breachOfCommit(before: Head, after: Head, item: HistoryItem | undefined): string | null {
  const { epoch } = after.committed
  if (epoch < before.committed.epoch)
    return `the committed epoch does not fall from ${before.committed.epoch} to ${epoch}`
  if (epoch === before.committed.epoch) {
    const same = after.committed.manifest.sha256 === before.committed.manifest.sha256
    return same ? null : `committed epoch ${epoch} does not change`
  }
  if (epoch !== before.committed.epoch + 1) return `epoch ${epoch} follows epoch ${epoch - 1}`
  if (item?.epoch !== epoch) return `epoch ${epoch} is committed with its history item`
  if (item.generation !== before.generation) return `epoch ${epoch} is committed in the generation of the head`
  if (before.open?.attempt !== after.committed.attempt) return `epoch ${epoch} is committed by the attempt that is open`
  if (before.promotedThrough !== epoch - 1) return `epoch ${epoch} is committed after epoch ${epoch - 1} is promoted`
  return null
}

function breachOfEpochs(world: Audited, before: Head, after: Head): string | null {
  const opens = before.open === null && after.open !== null
  if (opens && before.promotedThrough !== before.committed.epoch)
    return 'an epoch opens when all before it are promoted'
  if (opens && after.open?.epoch !== before.committed.epoch + 1) return 'the epoch that opens follows the committed one'
  if (after.retainedFrom < before.retainedFrom) return 'retained-from does not fall'
  if (after.retainedFrom > after.promotedThrough) return 'whatever is unpromoted is retained'
  if (after.promotedThrough < before.promotedThrough) return 'promoted-through does not fall'
  if (after.promotedThrough > after.committed.epoch) return 'nothing is promoted beyond the last commit'
  if (after.promotedThrough > before.promotedThrough) return breachOfPromotion(world, after)
  return breachOfLanes(world, before, after)
}

/** Every lane that has output in the epoch shows it by now. */
function breachOfPromotion(world: Audited, { promotedThrough, committed }: Head): string | null {
  const manifest = promotedThrough === committed.epoch ? world.manifests.get(committed.manifest.sha256) : undefined
  if (manifest === undefined || world.restored) return null
  for (const { sink, lane } of manifest.committables) {
    if (world.sinks.get(sink)?.marked === false) continue
    const shown = world.sinks.get(sink)?.marker(lane)?.epoch ?? 0
    if (shown < promotedThrough) return `epoch ${promotedThrough} is finalized when lane ${sink}/${lane} shows it`
  }
  return null
}

function breachOfLanes(world: Audited, before: Head, after: Head): string | null {
  for (const { sink, lane } of before.lanes) {
    if (!after.lanes.some((known) => known.sink === sink && known.lane === lane))
      return `lane ${sink}/${lane} stays registered`
  }
  if (after.lanes.length === before.lanes.length || world.restored) return null
  const isBare = ({ sink, lane }: { sink: string; lane: number }) =>
    world.sinks.get(sink)?.marked !== false && (world.sinks.get(sink)?.marker(lane) ?? null) === null
  const bare = after.lanes.find(isBare)
  return bare === undefined ? null : `lane ${bare.sink}/${bare.lane} has a base marker before it is registered`
}

function rememberManifest(world: Audited, { epoch, manifest: ref }: HistoryItem): void {
  const objects = world.store.snapshot()
  const bytes = objects.get(ref.name)
  if (bytes === undefined || hashOf(bytes) !== ref.sha256) {
    world.report(`the manifest of committed epoch ${epoch} is in the store, with its hash`)
    return
  }
  const manifest = JSON.parse(bytes.toString()) as Manifest
  world.manifests.set(ref.sha256, manifest)
  const refused = manifest.refused && objects.get(manifest.refused.object.name)
  if (refused) world.carried.set(ref.sha256, JSON.parse(refused.toString()) as RefusedLane[])
  const missing = objectsOf(manifest).find(({ name, bytes: size }) => objects.get(name)?.length !== size)
  if (missing !== undefined) world.report(`epoch ${epoch} is committed with its object ${missing.name}`)
}

/** Everything that a manifest names, without the manifests before it. */
export function objectsOf(manifest: Manifest): ObjectRef[] {
  const staged = manifest.committables.flatMap((committable) => committable.parts.flatMap((part) => part.objects))
  const files = manifest.snapshots.flatMap((snapshot) => snapshot.files)
  const rejected = manifest.rejected === null ? [] : [manifest.rejected]
  const refused = manifest.refused === undefined ? [] : [manifest.refused.object]
  return [...staged, ...files, ...rejected, ...refused]
}

/** SHA-256 in hex. */
export function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
