/**
 * The checker: what must hold of a world, whatever happened in it.
 *
 * Reads the bare world, past all gates. Each breach is one sentence that names the invariant; the first one counts.
 */
import type { MemoryRow } from '../adapters/memory/table.ts'
import type { Head, ObjectRef } from '../model/head.ts'
import type { Manifest } from '../model/manifest.ts'
import { incarnationPrefix } from '../model/names.ts'
import { hashOf, objectsOf } from './audit.ts'
import { type Chain, mustHoldThat } from './broken.ts'
import { checkRefused, checkUnmarked, type LaneFound } from './check-modes.ts'
import { replay } from './replay.ts'
import type { World } from './world.ts'

/** The committed chain as the ledger has it, with the manifests that were seen. */
export async function chainOf(world: World): Promise<Chain> {
  const { pipeline } = world.compiled.topology
  const head = await world.ledger.read(pipeline)
  mustHoldThat(head !== null, 'the pipeline has a head')
  const items = await world.ledger.histories(pipeline, 0, head.committed.epoch + 2)
  mustHoldThat(items.length === head.committed.epoch + 1, 'there is one commit an epoch')
  const manifests = items.map((item) => world.manifests.get(item.manifest.sha256))
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
  const carried = chain.items.map((item) => world.carried.get(item.manifest.sha256) ?? [])
  const { rows, entries } = await replay(world, { manifests: chain.manifests, carried })
  for (const { sink: id, lane } of chain.head.lanes) {
    const sink = world.sinks.get(id)!
    const wanted = rows.get(id)!.filter((row) => row.lane === lane)
    const until = through === 'all' ? chain.head.committed.epoch : (sink.marker(lane)?.epoch ?? 0)
    const found: LaneFound = { id, lane, sink, wanted, until, chain, carried: carried.flat() }
    if (!sink.marked) checkUnmarked(found)
    else {
      const welcome = wanted.filter((row) => sink.refuses(row) === null)
      checkLane(`${id}/${lane}`, byEpoch(sink.visible(lane)), byEpoch(welcome), chain.head, until)
      checkRefused(found, through === 'all')
    }
  }
  for (const [id, sink] of world.sinks) {
    const strays = sink
      .visible()
      .filter((row) => !chain.head.lanes.some((at) => at.sink === id && at.lane === row.lane))
    mustHoldThat(strays.length === 0, `sink ${id} shows rows in registered lanes only`)
  }
  await checkStates(world, chain, entries)
}

function checkLane(
  lane: string,
  shown: Map<number, ShownRow[]>,
  wanted: Map<number, ShownRow[]>,
  head: Head,
  until: number,
): void {
  let before = 0
  for (const [epoch, rows] of shown) {
    mustHoldThat(epoch > before, `lane ${lane} shows epoch ${epoch} after ${before}`)
    mustHoldThat(epoch <= head.committed.epoch, `lane ${lane} shows epoch ${epoch}, which is not committed`)
    const expected = wanted.get(epoch) ?? []
    mustHoldThat(
      sameRows(rows, expected),
      `lane ${lane} shows epoch ${epoch} once and whole: ${rows.length} rows, ${expected.length} expected${firstStray(rows, expected)}`,
    )
    before = epoch
  }
  for (const epoch of wanted.keys()) {
    mustHoldThat(epoch > until || shown.has(epoch), `lane ${lane} shows epoch ${epoch}, which is promoted`)
  }
}

/** The same rows, those of one key in the same order. */
function sameRows(shown: readonly ShownRow[], expected: readonly ShownRow[]): boolean {
  if (shown.length !== expected.length) return false
  const [a, b] = [byKey(shown), byKey(expected)]
  return a.size === b.size && [...a].every(([key, rows]) => rows.join('\n') === b.get(key)?.join('\n'))
}

/** A row that is not expected, or not there as often. */
function firstStray(shown: readonly ShownRow[], expected: readonly ShownRow[]): string {
  const left = expected.map((row) => row.text)
  for (const { text } of shown) {
    const at = left.indexOf(text)
    if (at < 0) return `, not ${text}`
    left.splice(at, 1)
  }
  return left.length === 0 ? ', in another order' : ''
}

/** Rows without a key have no order of their own. */
function byKey(rows: readonly ShownRow[]): Map<string, string[]> {
  const keys = new Map<string, string[]>()
  for (const { key, text } of rows) keys.set(key ?? '', [...(keys.get(key ?? '') ?? []), text])
  for (const [key, texts] of keys) if (key === '') texts.sort()
  return keys
}

interface ShownRow {
  readonly key: string | null
  readonly text: string
}

/** Rows as text by epoch, in the order shown: an epoch that comes twice shows as one that is too large. */
function byEpoch(rows: readonly MemoryRow[]): Map<number, ShownRow[]> {
  const epochs = new Map<number, ShownRow[]>()
  for (const row of rows) {
    const key = row.key?.toString('base64') ?? null
    const text = JSON.stringify([row.target, key, row.value?.toString('base64') ?? null, row.timestampMs])
    const found = epochs.get(row.epoch)
    if (found) found.push({ key, text })
    else epochs.set(row.epoch, [{ key, text }])
  }
  return epochs
}

/** The snapshots of the last epoch restore to as many entries as the fold has. */
async function checkStates(world: World, { manifests }: Chain, entries: ReadonlyMap<string, number>): Promise<void> {
  const last = manifests.at(-1)!
  const compiled = world.compiledOf(last.build)
  const held = new Map<string, number>()
  for (const snapshot of last.snapshots) {
    const files = await Promise.all(snapshot.files.map(async (file) => (await world.store.read(file.name))!))
    const state = compiled.state(snapshot.operator, snapshot.keyGroups, snapshot, files)
    held.set(snapshot.operator, (held.get(snapshot.operator) ?? 0) + state.entries)
  }
  for (const [operator, count] of entries) {
    const found = held.get(operator) ?? 0
    mustHoldThat(found === count, `the snapshots of ${operator} hold its ${count} entries, not ${found}`)
  }
}

/** Everything retained is there with its hash; with `collected`, nothing else is. */
export async function checkStore(world: World, { head, manifests }: Chain, collected: boolean): Promise<void> {
  const reachable = new Map<string, ObjectRef>()
  const keep = (ref: ObjectRef) => reachable.set(ref.name, ref)
  for (const manifest of manifests.slice(head.retainedFrom)) for (const ref of objectsOf(manifest)) keep(ref)
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
