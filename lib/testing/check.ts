/**
 * The checker: what must hold of a world, whatever happened in it.
 *
 * Reads the bare world, past all gates. Each breach is one sentence that names the invariant; the first one counts.
 */
import { createHash } from 'node:crypto'
import type { MemoryRow } from '../adapters/memory/table.ts'
import type { Head, HistoryItem, ObjectRef } from '../model/head.ts'
import type { Manifest } from '../model/manifest.ts'
import { incarnationPrefix } from '../model/names.ts'
import { replay } from './replay.ts'
import type { World } from './world.ts'

/** The head with all committed epochs, in order. */
export interface Chain {
  readonly head: Head
  readonly items: readonly HistoryItem[]
  readonly manifests: readonly Manifest[]
}

/** Thrown by checks; its message is the broken invariant. */
export class Broken extends Error {
  override readonly name = 'Broken'
}

/** Throws `Broken` with the invariant unless the condition holds. */
export function mustHoldThat(condition: boolean, invariant: string): asserts condition {
  if (!condition) throw new Broken(invariant)
}

/** Manifests that were ever committed, remembered as they appear: old ones are collected. */
export type ChainMemory = Map<string, Manifest>

/** Remembers the manifest of every epoch that is committed now. */
export async function remember(world: World, memory: ChainMemory): Promise<void> {
  const { pipeline } = world.compiled.topology
  const head = await world.ledger.read(pipeline)
  if (head === null) return
  for (const item of await world.ledger.histories(pipeline, 0, head.committed.epoch + 1)) {
    if (memory.has(item.manifest.sha256)) continue
    const bytes = await world.store.read(item.manifest.name)
    mustHoldThat(bytes !== null, `the manifest of committed epoch ${item.epoch} is in the store`)
    mustHoldThat(hashOf(bytes) === item.manifest.sha256, `the manifest of epoch ${item.epoch} has its hash`)
    memory.set(item.manifest.sha256, JSON.parse(bytes.toString()) as Manifest)
  }
}

/** The committed chain as the ledger has it, with the manifests that were seen. */
export async function chainOf(world: World, memory: ChainMemory): Promise<Chain> {
  const { pipeline } = world.compiled.topology
  const head = await world.ledger.read(pipeline)
  mustHoldThat(head !== null, 'the pipeline has a head')
  const items = await world.ledger.histories(pipeline, 0, head.committed.epoch + 2)
  mustHoldThat(items.length === head.committed.epoch + 1, 'there is one commit an epoch')
  const manifests = items.map((item) => memory.get(item.manifest.sha256))
  mustHoldThat(!manifests.includes(undefined), 'every committed manifest was seen')
  return { head, items, manifests: manifests as Manifest[] }
}

/** The chain of epochs: one commit each, parents by hash, plans contiguous, generations never fall. */
export function checkChain({ head, items, manifests }: Chain): void {
  for (const [epoch, manifest] of manifests.entries()) {
    mustHoldThat(manifest.epoch === epoch && items[epoch].epoch === epoch, `epoch ${epoch} stands in its place`)
    mustHoldThat(manifest.incarnation === head.incarnation, `epoch ${epoch} is of this incarnation`)
    mustHoldThat(manifest.attempt === items[epoch].attempt, `epoch ${epoch} was committed by the attempt that made it`)
    if (epoch === 0) continue
    mustHoldThat(
      manifest.parent?.sha256 === items[epoch - 1].manifest.sha256,
      `epoch ${epoch} names its parent by hash`,
    )
    mustHoldThat(
      items[epoch].generation >= items[epoch - 1].generation,
      `the generation does not fall at epoch ${epoch}`,
    )
    const before = manifests[epoch - 1].watermarkMs
    mustHoldThat(
      before === null || (manifest.watermarkMs ?? Number.NEGATIVE_INFINITY) >= before,
      `the watermark does not fall at epoch ${epoch}`,
    )
    checkContiguous(manifests[epoch - 1], manifest)
  }
  mustHoldThat(head.promotedThrough <= head.committed.epoch, 'nothing is promoted beyond the last commit')
}

function checkContiguous(parent: Manifest, manifest: Manifest): void {
  const ends = new Map(parent.progress.map((at) => [`${at.source}/${at.partition}`, at.end]))
  for (const at of manifest.progress) {
    const end = ends.get(`${at.source}/${at.partition}`)
    mustHoldThat(
      end === undefined || end === at.start,
      `epoch ${manifest.epoch} continues ${at.source}/${at.partition} at ${end}, not ${at.start}`,
    )
    ends.delete(`${at.source}/${at.partition}`)
  }
  mustHoldThat(ends.size === 0, `epoch ${manifest.epoch} drops no partition`)
}

/**
 * What sinks show is what the committed epochs say, once each, whole epochs only: all of it, or through what the
 * marker of each lane says when a sink was restored from a backup.
 */
export async function checkVisible(world: World, chain: Chain, through: 'all' | 'by marker'): Promise<void> {
  const { rows, entries } = await replay(world, chain.manifests)
  for (const [id, sink] of world.sinks) {
    const lanes = world.compiled.sinks[id].lanes
    for (let lane = 0; lane < lanes; lane++) {
      const wanted = rows.get(id)!.filter((row) => row.lane === lane)
      const until = through === 'all' ? chain.head.committed.epoch : (sink.marker(lane)?.epoch ?? 0)
      checkLane(`${id}/${lane}`, byEpoch(sink.visible(lane)), byEpoch(wanted), chain.head, until)
    }
  }
  checkEntries(chain, entries)
  const last = chain.manifests.at(-1)!
  mustHoldThat(last.counts.in >= 0, 'counts are counts')
}

function checkLane(
  lane: string,
  shown: Map<number, string[]>,
  wanted: Map<number, string[]>,
  head: Head,
  until: number,
): void {
  let before = 0
  for (const [epoch, rows] of shown) {
    mustHoldThat(epoch > before, `lane ${lane} shows epoch ${epoch} after ${before}`)
    mustHoldThat(epoch <= head.committed.epoch, `lane ${lane} shows epoch ${epoch}, which is not committed`)
    const expected = wanted.get(epoch) ?? []
    const same = rows.length === expected.length && [...rows].sort().every((row, i) => row === [...expected].sort()[i])
    mustHoldThat(
      same,
      `lane ${lane} shows epoch ${epoch} once and whole: ${rows.length} rows, ${expected.length} expected`,
    )
    before = epoch
  }
  for (const epoch of wanted.keys()) {
    mustHoldThat(epoch > until || shown.has(epoch), `lane ${lane} shows epoch ${epoch}, which is promoted`)
  }
}

/** Rows as text by epoch, in the order shown: an epoch that comes twice shows as one that is too large. */
function byEpoch(rows: readonly MemoryRow[]): Map<number, string[]> {
  const epochs = new Map<number, string[]>()
  for (const row of rows) {
    const text = JSON.stringify([
      row.target,
      row.key?.toString('base64') ?? null,
      row.value?.toString('base64') ?? null,
      row.timestampMs,
    ])
    const found = epochs.get(row.epoch)
    if (found) found.push(text)
    else epochs.set(row.epoch, [text])
  }
  return epochs
}

/** The snapshots of the last epoch hold as many entries as the fold. */
function checkEntries({ manifests }: Chain, entries: ReadonlyMap<string, number>): void {
  const last = manifests.at(-1)!
  if (last.snapshots.length === 0) return
  for (const [operator, count] of entries) {
    const held = last.snapshots.filter((snapshot) => snapshot.operator === operator)
    const atMost = held.flatMap((snapshot) => snapshot.files).reduce((sum, file) => sum + file.entries, 0)
    mustHoldThat(atMost >= count || count === 0, `the snapshots of ${operator} hold its ${count} entries`)
  }
}

/** Everything retained is there with its hash; with `collected`, nothing else is. */
export async function checkStore(world: World, { head, manifests }: Chain, collected: boolean): Promise<void> {
  const reachable = new Map<string, ObjectRef>()
  const keep = (ref: ObjectRef) => reachable.set(ref.name, ref)
  for (const manifest of manifests.slice(head.retainedFrom)) {
    for (const snapshot of manifest.snapshots) snapshot.files.forEach(keep)
    for (const committable of manifest.committables) for (const part of committable.parts) part.objects.forEach(keep)
    if (manifest.rejected !== null) keep(manifest.rejected)
  }
  for (const item of await world.ledger.histories(head.pipeline, head.retainedFrom, head.committed.epoch + 1))
    keep(item.manifest)
  for (const ref of reachable.values()) {
    const bytes = await world.store.read(ref.name)
    mustHoldThat(bytes !== null && hashOf(bytes) === ref.sha256, `the retained object ${ref.name} is in the store`)
  }
  if (!collected) return
  for await (const { name } of world.store.list(incarnationPrefix(head.pipeline, head.incarnation))) {
    mustHoldThat(reachable.has(name), `collect leaves no orphan: ${name}`)
  }
}

/** Nothing is visible that is not committed; cheap enough for every call. */
export async function checkNothingUncommitted(world: World): Promise<void> {
  const head = await world.ledger.read(world.compiled.topology.pipeline)
  for (const [id, sink] of world.sinks) {
    for (let lane = 0; lane < world.compiled.sinks[id].lanes; lane++) {
      const marker = sink.marker(lane)
      if (marker === null || marker.epoch === 0) continue
      mustHoldThat(
        head !== null && marker.epoch <= head.committed.epoch,
        `lane ${id}/${lane} shows epoch ${marker.epoch}, which is not committed`,
      )
    }
  }
}

function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
