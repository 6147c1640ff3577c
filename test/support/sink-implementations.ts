/**
 * The sinks that need nothing but Node, as the contracts see them.
 */
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openFileSink } from '../../lib/adapters/file/sink.ts'
import { type MemorySinkOptions, memorySink } from '../../lib/adapters/memory/sink.ts'
import { memoryStore } from '../../lib/adapters/memory/store.ts'
import { type WriteAheadAnswer, writeAhead } from '../../lib/adapters/writeahead/sink.ts'
import type { Committable } from '../../lib/model/manifest.ts'
import type { Serde } from '../../lib/model/serde.ts'
import type { RejectPolicy } from '../../lib/ports/sink.ts'
import type { Store } from '../../lib/ports/store.ts'
import type { Implementation } from '../../lib/testing/contracts/contract.ts'
import { refusedValue } from '../../lib/testing/contracts/sink-refusals.ts'
import {
  contractLanes,
  contractRowSpec,
  type SinkControls,
  type SinkSubject,
  type VisibleRow,
} from '../../lib/testing/contracts/sink-subject.ts'
import { disturbDisk } from './failing-disk.ts'

const textOf = (bytes: Buffer | null) => bytes?.toString() ?? null
const objectsOf = (committable: Committable) => committable.parts.flatMap(({ objects }) => objects)

/** A sink in memory, made with what a case needs. */
export async function memoryPlace(more: Partial<MemorySinkOptions> = {}) {
  const store = memoryStore()
  const sink = memorySink({ id: 'rows', spec: contractRowSpec, ...more })
  const controls: SinkControls = {
    async visible() {
      return sink
        .visible()
        .map(({ key, value, timestampMs }) => ({ key: textOf(key), value: textOf(value), timestampMs }))
    },
    async backup() {
      const snapshot = sink.snapshot()
      return async () => sink.restore(snapshot)
    },
    dropMarker: async (lane) => sink.dropMarker(lane),
    loseStaging: async (committable) => store.delete(objectsOf(committable).map(({ name }) => name)),
    damageStaging: async (committable) => store.damage(objectsOf(committable)[0]!.name),
  }
  const over = async (other: Store) => sink.open(other)
  return { open: async () => ({ sink: await over(store), store, controls, over }) }
}

/** Rows in an array. */
export const memory: Implementation<SinkSubject> = { name: 'memory', fresh: () => memoryPlace() }

function fileControls(directory: string): SinkControls {
  const root = join(directory, 'rows')
  const stagedFiles = (committable: Committable) =>
    committable.parts.map(({ handle }) => join(root, '.staged', (handle as { file: string }).file))
  return {
    async visible() {
      const names = (await readdir(root).catch(() => [])).filter((name) => name.endsWith('.jsonl'))
      const texts = await Promise.all(names.sort().map((name) => readFile(join(root, name), 'utf8')))
      return texts.flatMap((text) => text.split('\n').slice(0, -1).map(visibleRow))
    },
    async backup() {
      const copy = await mkdtemp(join(tmpdir(), 'pawl-backup-'))
      await cp(root, copy, { recursive: true })
      return async () => {
        await rm(root, { recursive: true })
        await cp(copy, root, { recursive: true })
        await rm(copy, { recursive: true })
      }
    },
    dropMarker: (lane) => rm(join(root, '.marker', `${lane}`), { recursive: true }),
    async loseStaging(committable) {
      for (const path of stagedFiles(committable)) await rm(path, { force: true })
    },
    async damageStaging(committable) {
      const [path] = stagedFiles(committable)
      const bytes = await readFile(path!)
      bytes[bytes.length >> 1]! ^= 1
      await writeFile(path!, bytes)
    },
    disturb: disturbDisk,
  }
}

function visibleRow(line: string): VisibleRow {
  const { key, value, timestamp } = JSON.parse(line)
  return { key, value, timestampMs: timestamp }
}

/** Files on disk. */
export const file: Implementation<SinkSubject> = {
  name: 'files',
  async fresh() {
    const directory = await mkdtemp(join(tmpdir(), 'pawl-files-'))
    const controls = fileControls(directory)
    const store = memoryStore()
    const over = async () => openFileSink({ sink: 'rows', directory, within: null, spec: contractRowSpec })
    return {
      open: async () => ({ sink: await over(), store, controls, over }),
      dispose: () => rm(directory, { recursive: true }),
    }
  },
  differences: {
    'heals when the missing epochs are promoted again in order':
      'a staged file becomes the visible one, so nothing is left to promote again',
    'heals when it lost one epoch alone, in one lane of several':
      'a staged file becomes the visible one, so nothing is left to promote again',
  },
}

/** A target of a function: an array, which may remember the idempotency keys that it has seen, with its answers. */
export const writtenAhead = (idempotent: boolean, onReject: RejectPolicy = 'park'): Implementation<SinkSubject> => ({
  name: idempotent ? 'write-ahead to a target that remembers keys' : 'write-ahead',
  async fresh() {
    const store = memoryStore()
    let shown: VisibleRow[] = []
    const seen = new Map<string, WriteAheadAnswer>()
    const spec = writeAhead<string | null, string | null>({
      lanes: contractLanes,
      idempotent,
      onReject,
      key: contractRowSpec.key as Serde<string | null>,
      value: contractRowSpec.value as Serde<string | null>,
      async write(rows, { idempotencyKey }) {
        const known = idempotent ? seen.get(idempotencyKey) : undefined
        if (known !== undefined) return known
        const isRefused = ({ value }: VisibleRow) => onReject === 'dead-letter' && value === refusedValue
        const refused = rows.flatMap((row, index) => (isRefused(row) ? [{ row: index, reason: 'a constraint' }] : []))
        const answer = refused.length > 0 ? { refused } : {}
        seen.set(idempotencyKey, answer)
        shown.push(...rows.filter((row) => !isRefused(row)))
        return answer
      },
    })
    const context = { pipeline: 'p', incarnation: 'unused', stage: 'test', directory: null, store }
    const controls: SinkControls = {
      visible: async () => shown,
      async backup() {
        const copy = [...shown]
        return async () => {
          shown = copy
        }
      },
      async dropMarker(lane) {
        for await (const { name } of store.list(`markers/p/rows/${lane}/`)) await store.delete([name])
      },
      loseStaging: async (committable) => store.delete(objectsOf(committable).map(({ name }) => name)),
      damageStaging: async (committable) => store.damage(objectsOf(committable)[0]!.name),
    }
    const over = (other: Store) => spec.open('rows', { ...context, store: other })
    return { open: async () => ({ sink: await over(store), store, controls, over }) }
  },
  differences: {
    ...(idempotent
      ? {}
      : { 'has one effect when several promote at once': 'the marker is not in the transaction of the rows' }),
    ...Object.fromEntries(
      [
        'refuses when it was restored to an earlier epoch',
        'heals when the missing epochs are promoted again in order',
        'heals when it lost one epoch alone, in one lane of several',
        'never takes absent staging for success when it lost epochs',
      ].map((name) => [name, 'the marker lies in the store, so a restored target is not noticed']),
    ),
  },
})
