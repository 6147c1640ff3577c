/**
 * Verify: walks the committed chain and says everything that does not hold.
 *
 * Reads:  head, history, manifests, every object that a retained epoch names, markers of sinks. Writes: nothing.
 * Safe to repeat because: it only reads, and may do so while the pipeline runs. As in `collect`, names are listed
 * before the head is read; markers are judged by a head that is read after them; and what a newer head has let go
 * in the meantime is no fault.
 */
import { type ErrorCode, errorRegistry, isPawlError, PawlError } from '../model/errors.ts'
import type { Head, HistoryItem, ObjectRef, RegisteredLane } from '../model/head.ts'
import { type Committable, type Manifest, type Marker, manifestVersion } from '../model/manifest.ts'
import { attemptPrefix, incarnationPrefix, laneName } from '../model/names.ts'
import type { Ledger } from '../ports/ledger.ts'
import type { Store } from '../ports/store.ts'
import { judgeMarker } from './judge-marker.ts'
import { unsealBytes } from './seal.ts'
import { innerContradictions, linkContradictions, markersAfter } from './verify-manifest.ts'

/** One thing that does not hold. */
export interface ChainFault {
  readonly code: ErrorCode
  /** The newest epoch at fault; null when it is none of them. */
  readonly epoch: number | null
  /** Names the thing at fault. */
  readonly fault: string
}

/** What to verify, and how to look into sinks. */
export interface VerifyOptions {
  readonly ledger: Ledger
  readonly store: Store
  readonly pipeline: string
  /** The marker of a lane; `unreadable` where the sink cannot be asked from here, `unmarked` where it keeps none. */
  readonly readMarker: (lane: RegisteredLane) => Promise<Marker | null | 'unreadable' | 'unmarked'>
  /** What is wrong with the output of one lane and epoch, where that can be looked at. */
  readonly readOutput?: (output: CommittedOutput) => Promise<readonly ChainFault[]>
}

/** Output of one lane in one retained epoch. */
export interface CommittedOutput {
  readonly committable: Committable
  readonly incarnation: string
  /** Whether it must be visible by now. */
  readonly promoted: boolean
}

/** What was looked at and what was found. */
export interface Verified {
  readonly head: Head
  /** Epochs whose manifests were read. */
  readonly epochs: number
  readonly objects: number
  readonly bytes: number
  readonly lanes: number
  /** Lanes whose sink could not be asked. */
  readonly unreadable: readonly string[]
  /** Objects that no root reaches: harmless, `collect` deletes them. */
  readonly orphans: { readonly objects: number; readonly bytes: number }
  readonly faults: readonly ChainFault[]
}

interface Walk {
  readonly options: VerifyOptions
  readonly head: Head
  readonly history: ReadonlyMap<number, HistoryItem>
  readonly manifests: Map<number, Manifest>
  /** Names that were checked, with their bytes. */
  readonly reached: Map<string, number>
  readonly faults: ChainFault[]
}

const historyPage = 1000

/** Throws `PIPELINE_NOT_FOUND`, and what ledger and store throw when they do not answer; faults are returned. */
export async function verify(options: VerifyOptions): Promise<Verified> {
  const first = await headOf(options)
  const listed = new Map<string, number>()
  const prefix = incarnationPrefix(first.pipeline, first.incarnation)
  for await (const { name, bytes } of options.store.list(prefix)) listed.set(name, bytes)
  const head = await headOf(options)
  const faults: ChainFault[] = []
  const history = await walkHistory(options.ledger, head, faults)
  const walk: Walk = { options, head, history, manifests: new Map(), reached: new Map(), faults }
  await walkEpochs(walk)
  await walkSavepoints(walk)
  const unreadable = await walkLanes(walk)
  const orphans = [...listed].filter(([name]) => !walk.reached.has(name) && !isOpen(head, name))
  await refuseRewound(walk, orphans)
  const last = await headOf(options)
  const gone = (fault: ChainFault) => fault.epoch !== null && fault.epoch < last.retainedFrom
  return {
    head,
    epochs: walk.manifests.size,
    objects: walk.reached.size,
    bytes: sum(walk.reached.values()),
    lanes: head.lanes.length,
    unreadable,
    orphans: { objects: orphans.length, bytes: sum(orphans.map(([, bytes]) => bytes)) },
    faults: last.incarnation === head.incarnation ? faults.filter((fault) => !gone(fault)) : [],
  }
}

async function headOf({ ledger, pipeline }: VerifyOptions): Promise<Head> {
  const head = await ledger.read(pipeline)
  if (head === null) throw new PawlError('PIPELINE_NOT_FOUND', pipeline, { pipeline })
  return head
}

function isOpen(head: Head, name: string): boolean {
  return head.open !== null && name.startsWith(attemptPrefix(head.pipeline, head.incarnation, head.open.attempt))
}

/** Every epoch since the genesis has its item, generations never fall, and the head names the last one. */
async function walkHistory(ledger: Ledger, head: Head, faults: ChainFault[]): Promise<Map<number, HistoryItem>> {
  const retained = new Map<number, HistoryItem>()
  let expected = 0
  let generation = 0
  for (let from = 0; from <= head.committed.epoch; from += historyPage) {
    const to = Math.min(from + historyPage, head.committed.epoch + 1)
    for (const item of await ledger.histories(head.pipeline, from, to)) {
      if (item.epoch > expected) faults.push(missingItems(head, expected, item.epoch))
      if (item.generation < generation)
        faults.push(broken(item.epoch, `its generation ${item.generation} follows ${generation}`))
      expected = item.epoch + 1
      generation = item.generation
      if (item.epoch >= head.retainedFrom - 1) retained.set(item.epoch, item)
    }
  }
  if (expected <= head.committed.epoch) faults.push(missingItems(head, expected, head.committed.epoch + 1))
  const newest = retained.get(head.committed.epoch)
  if (newest !== undefined && newest.manifest.sha256 !== head.committed.manifest.sha256) {
    faults.push(broken(head.committed.epoch, 'head and history name different manifests'))
  }
  if (head.promotedThrough > head.committed.epoch || head.committed.epoch > head.promotedThrough + 1) {
    faults.push(broken(head.committed.epoch, `the head is promoted through ${head.promotedThrough}`))
  }
  return retained
}

/** From the newest to the oldest, so that an object's fault names the newest epoch that needs it. */
async function walkEpochs(walk: Walk): Promise<void> {
  const { head, history, manifests, faults } = walk
  for (let epoch = head.committed.epoch; epoch >= head.retainedFrom; epoch--) {
    const item = history.get(epoch)
    const manifest = item && (await readManifest(walk, item.manifest, epoch))
    if (!item || !manifest) continue
    manifests.set(epoch, manifest)
    for (const why of innerContradictions(manifest, item, head.pipeline)) faults.push(broken(epoch, why))
    const next = manifests.get(epoch + 1)
    if (next) for (const why of linkContradictions(next, manifest, item)) faults.push(broken(epoch + 1, why))
    await walkObjects(walk, manifest)
    await walkOutput(walk, manifest)
  }
}

async function walkSavepoints(walk: Walk): Promise<void> {
  for (const { name, epoch, manifest: ref } of walk.head.savepoints) {
    const manifest = await readManifest(walk, ref, null)
    if (!manifest) continue
    if (manifest.epoch !== epoch)
      walk.faults.push(broken(null, `savepoint ${name} names the manifest of epoch ${manifest.epoch}`))
    await walkObjects(walk, manifest)
  }
}

async function readManifest(walk: Walk, ref: ObjectRef, epoch: number | null): Promise<Manifest | null> {
  const bytes = await readObject(walk, ref, epoch, 'MANIFEST_DAMAGED')
  if (bytes === null) return null
  const manifest = JSON.parse(bytes.toString()) as Manifest
  if (manifest.version <= manifestVersion) return manifest
  walk.faults.push(broken(epoch, `${ref.name} has version ${manifest.version}, this Pawl knows ${manifestVersion}`))
  return null
}

async function walkObjects(walk: Walk, manifest: Manifest): Promise<void> {
  const { epoch, snapshots, committables, rejected, refused, counts } = manifest
  if (refused !== undefined) await readObject(walk, refused.object, epoch, 'OBJECT_DAMAGED')
  for (const { files } of snapshots) for (const file of files) await readObject(walk, file, epoch, 'SNAPSHOT_DAMAGED')
  for (const { parts } of committables) {
    for (const { objects } of parts)
      for (const object of objects) await readObject(walk, object, epoch, 'OBJECT_DAMAGED')
  }
  if (rejected === null) return
  const bytes = await readObject(walk, rejected, epoch, 'OBJECT_DAMAGED')
  const kept = bytes === null ? counts.rejected : (JSON.parse(bytes.toString()) as unknown[]).length
  if (kept !== counts.rejected)
    walk.faults.push(broken(epoch, `it counts ${counts.rejected} rejected records, ${kept} are kept`))
}

async function walkOutput({ options, head, faults }: Walk, manifest: Manifest): Promise<void> {
  if (options.readOutput === undefined) return
  const promoted = manifest.epoch <= head.promotedThrough
  for (const committable of manifest.committables) {
    faults.push(...(await options.readOutput({ committable, incarnation: manifest.incarnation, promoted })))
  }
}

/** The object's bytes; null when it was read before, or is at fault. */
async function readObject(
  walk: Walk,
  ref: ObjectRef,
  epoch: number | null,
  damaged: ErrorCode,
): Promise<Buffer | null> {
  if (walk.reached.has(ref.name)) return null
  walk.reached.set(ref.name, ref.bytes)
  try {
    return await unsealBytes(walk.options.store, ref, 'OBJECT_MISSING', damaged)
  } catch (error) {
    if (!isPawlError(error) || (error.code !== 'OBJECT_MISSING' && error.code !== damaged)) throw error
    walk.faults.push({ code: error.code, epoch, fault: ref.name })
    return null
  }
}

/** Judges what each registered lane shows; returns the lanes that could not be asked. */
async function walkLanes(walk: Walk): Promise<string[]> {
  const unreadable: string[] = []
  const found: { readonly lane: RegisteredLane; readonly marker: Marker | null }[] = []
  for (const lane of walk.head.lanes) {
    const marker = await walk.options.readMarker(lane)
    if (marker === 'unreadable') unreadable.push(laneName(lane.sink, lane.lane))
    else if (marker !== 'unmarked') found.push({ lane, marker })
  }
  const head = await headOf(walk.options)
  for (const { lane, marker } of found) {
    const item = marker === null ? null : await walk.options.ledger.history(head.pipeline, marker.epoch)
    const fault = judgeMarker({ lane, marker, head, item, expected: expectedEpoch(walk, lane) })
    if (fault !== null) walk.faults.push({ ...fault, epoch: null })
  }
  return unreadable
}

/** The epoch that a lane's marker must have reached when the walk began. */
function expectedEpoch({ head, manifests, history }: Walk, lane: RegisteredLane): number {
  const manifest = manifests.get(head.promotedThrough)
  const item = history.get(head.promotedThrough)
  if (!manifest || !item) return 0
  return markersAfter(manifest, item.manifest.sha256).get(laneName(lane.sink, lane.lane))?.epoch ?? 0
}

/** A manifest two epochs past the head can only have been made after an epoch that the ledger has forgotten. */
async function refuseRewound(walk: Walk, orphans: readonly (readonly [name: string, bytes: number])[]): Promise<void> {
  const { store } = walk.options
  const suspects = orphans.map(([name]) => name).filter((name) => name.endsWith('/manifest'))
  if (suspects.length === 0) return
  const epochs = await Promise.all(suspects.map(async (name) => epochOf(await store.read(name))))
  const newest = Math.max(...epochs)
  const { committed } = await headOf(walk.options)
  if (newest <= committed.epoch + 1) return
  walk.faults.push({
    code: 'LEDGER_REWOUND',
    epoch: null,
    fault: `the store holds a manifest of epoch ${newest}, the head ${committed.epoch}`,
  })
}

function epochOf(bytes: Buffer | null): number {
  try {
    const { epoch } = JSON.parse(bytes?.toString() ?? '{}') as { epoch?: number }
    return Number.isSafeInteger(epoch) ? (epoch as number) : 0
  } catch {
    return 0
  }
}

function missingItems(head: Head, from: number, to: number): ChainFault {
  const which = to - from === 1 ? `epoch ${from}` : `epochs ${from} to ${to - 1}`
  return { code: 'HISTORY_MISSING', epoch: null, fault: `${which} of ${head.pipeline}` }
}

function broken(epoch: number | null, why: string): ChainFault {
  return { code: 'CHAIN_BROKEN', epoch, fault: epoch === null ? why : `epoch ${epoch}: ${why}` }
}

/** A fault as a person reads it: code, what happened, the thing at fault, and the next step. */
export function faultText({ code, fault }: ChainFault): string {
  const { message, action } = errorRegistry[code]
  return `${code}: ${message}: ${fault}. Next: ${action}.`
}

function sum(numbers: Iterable<number>): number {
  let total = 0
  for (const number of numbers) total += number
  return total
}
