/**
 * A protocol in miniature around the files sink and a log of segments: enough of it to be killed at any instant.
 *
 * Creating `committed/<epoch>` in a store is the commit. Rows tell from which attempt they are, so that a reader
 * can tell what it should see.
 */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { openFileSink } from '../../../lib/adapters/file/sink.ts'
import { fileStore } from '../../../lib/adapters/file/store.ts'
import type { CommitPermit, Committable, Marker, StagedPart } from '../../../lib/model/manifest.ts'
import { nullable, type Serde, text } from '../../../lib/model/serde.ts'
import type { PromoteResult, Sink } from '../../../lib/ports/sink.ts'
import type { Store } from '../../../lib/ports/store.ts'

export const incarnation = 'a1b2c3d4e5f60718293a4b5c6d7e8f90'
export const lanes = 2
const serde = nullable(text()) as Serde<unknown>
const tasks = 2

/** What the commit of an epoch says. */
export interface CommittedEpoch {
  readonly epoch: number
  readonly attempt: string
  readonly committables: readonly Committable[]
}

export interface Epochs {
  readonly sink: Sink
  readonly store: Store
  /** The newest committed epoch; null before the first. */
  newest(): Promise<CommittedEpoch | null>
  all(): Promise<CommittedEpoch[]>
  /** Stages the epoch after `parent` and commits it; false when another was faster. */
  advance(parent: CommittedEpoch | null): Promise<boolean>
  promote(committed: CommittedEpoch): Promise<PromoteResult[]>
}

export const markerOf = (epoch: number, attempt: string): Marker => ({ incarnation, epoch, hash: `hash-${attempt}` })

/** Values of one lane of an attempt, in order. Lane 1 sleeps in every third epoch. */
export function valuesOf(epoch: number, attempt: string, lane: number): string[] {
  if (lane === 1 && epoch % 3 === 0) return []
  return Array.from({ length: tasks }, (_, task) => task).flatMap((task) =>
    Array.from({ length: 1 + ((epoch + task) % 4) }, (_, i) => `${attempt}/${lane}/${task}/${i}`),
  )
}

/** Opens store and sink below `directory`. */
export function openEpochs(directory: string): Epochs {
  const store = fileStore(join(directory, 'store'))
  const sink = openFileSink({
    sink: 'rows',
    directory,
    within: directory,
    spec: { topic: 'rows', key: serde, value: serde, route: null, headers: null },
  })
  const read = async (name: string) => JSON.parse((await store.read(name))!.toString()) as CommittedEpoch
  const names = async () => {
    const found: string[] = []
    for await (const { name } of store.list('committed/')) found.push(name)
    return found
  }
  return {
    sink,
    store,
    async newest() {
      const name = (await names()).at(-1)
      return name === undefined ? null : read(name)
    },
    all: async () => Promise.all((await names()).map(read)),
    async advance(parent) {
      const epoch = (parent?.epoch ?? 0) + 1
      const attempt = randomBytes(8).toString('hex')
      const parts = await stageTasks(sink, store, epoch, attempt)
      const committables = await committablesOf(sink, store, epoch, parts, await markersOf(await this.all()))
      const committed: CommittedEpoch = { epoch, attempt, committables }
      const name = `committed/${String(epoch).padStart(6, '0')}`
      if ((await store.create(name, [Buffer.from(JSON.stringify(committed))])) === 'created') return true
      await sink.discard?.(committables.flatMap(({ parts: assembled }) => assembled))
      return false
    },
    async promote({ epoch, attempt, committables }) {
      const manifest = { name: 'm', bytes: 1, sha256: markerOf(epoch, attempt).hash }
      const permit = { incarnation, epoch, manifest } as CommitPermit
      return Promise.all(committables.map((committable) => sink.promote(committable, permit)))
    },
  }
}

async function stageTasks(sink: Sink, store: Store, epoch: number, attempt: string): Promise<StagedPart[]> {
  const staged: StagedPart[] = []
  for (let task = 0; task < tasks; task++) {
    const context = { store, prefix: `${attempt}/${task}/`, incarnation, epoch, lanes }
    const writer = await sink.stage(context)
    for (let lane = 0; lane < lanes; lane++) {
      const mine = valuesOf(epoch, attempt, lane).filter((value) => value.split('/')[2] === String(task))
      for (const value of mine) writer.add(null, value, 1, lane)
      if (task === 0) await writer.flush()
    }
    staged.push(...(await writer.seal()))
  }
  return staged
}

/** What each lane's marker must be after these epochs. */
async function markersOf(committed: readonly CommittedEpoch[]): Promise<Map<number, Marker>> {
  const markers = new Map<number, Marker>()
  for (let lane = 0; lane < lanes; lane++) markers.set(lane, markerOf(0, 'base'))
  for (const { epoch, attempt, committables } of committed) {
    for (const { lane } of committables) markers.set(lane, markerOf(epoch, attempt))
  }
  return markers
}

async function committablesOf(
  sink: Sink,
  store: Store,
  epoch: number,
  staged: readonly StagedPart[],
  markers: ReadonlyMap<number, Marker>,
): Promise<Committable[]> {
  const committables: Committable[] = []
  for (const [lane, prev] of markers) {
    const mine = staged.filter((part) => part.lane === lane)
    if (mine.length === 0) continue
    const parts = await sink.assemble!(mine, { store, prefix: 'assembled/', incarnation, epoch, lanes })
    committables.push({ sink: 'rows', lane, target: sink.target, epoch, prev, parts, rows: mine.length, bytes: 0 })
  }
  return committables
}
