/**
 * Every sink with a place in which an epoch of a million rows can be measured: a store in a directory, the server in
 * another process, and no control but a count of what is visible.
 *
 * For tests and measurements alike, so nothing of a test runner is used here.
 */
import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdtemp, open as openFile, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openFileSink } from '../../lib/adapters/file/sink.ts'
import { memorySink } from '../../lib/adapters/memory/sink.ts'
import { writeAhead } from '../../lib/adapters/writeahead/sink.ts'
import { delta } from '../../lib/delta.ts'
import type { Serde } from '../../lib/model/serde.ts'
import type { Sink } from '../../lib/ports/sink.ts'
import type { CustomSinkSpec } from '../../lib/ports/spec.ts'
import type { Store } from '../../lib/ports/store.ts'
import type { Implementation } from '../../lib/testing/contracts/contract.ts'
import {
  contractLanes,
  contractRowSpec,
  type SinkControls,
  type SinkSubject,
} from '../../lib/testing/contracts/sink-subject.ts'
import { diskTable, logEntries } from './delta-table.ts'

/** A sink over a store, and what a reader counts. */
export interface MeasuredSink {
  readonly sink: Sink
  count(): Promise<number>
  readonly heldBytesMax?: SinkSubject['heldBytesMax']
  close?(): Promise<void>
}

/** An implementation of which `sinkSizeContract` alone can ask something; its store is a directory. */
export function measured(name: string, open: (store: Store) => Promise<MeasuredSink>): Implementation<SinkSubject> {
  return {
    name,
    async fresh() {
      const directory = await mkdtemp(join(tmpdir(), 'pawl-size-'))
      const store = plainStore(directory)
      const { sink, count, heldBytesMax, close } = await open(store)
      const subject = { sink, store, controls: { ...uncontrolled, count } }
      return {
        open: async () => (heldBytesMax === undefined ? subject : { ...subject, heldBytesMax }),
        async dispose() {
          await sink.close()
          await close?.()
          await store.close()
          await rm(directory, { recursive: true })
        },
      }
    },
  }
}

/** Objects as files, not synced: what a store costs is not measured here, but it holds nothing in this process. */
function plainStore(directory: string): Store {
  const pathOf = (name: string) => join(directory, encodeURIComponent(name))
  const absent = (error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  }
  const isTaken = (error: NodeJS.ErrnoException) => {
    if (error.code === 'EEXIST') return 'exists' as const
    throw error
  }
  return {
    create: (name, chunks) =>
      writeFile(pathOf(name), chunks as Uint8Array[], { flag: 'wx' }).then(() => 'created' as const, isTaken),
    async read(name, { start, end } = { start: 0, end: Number.MAX_SAFE_INTEGER }) {
      const found = await openFile(pathOf(name)).catch(absent)
      if (found === null) return null
      const length = Math.max(0, Math.min((await found.stat()).size, end) - start)
      const { bytesRead, buffer } = await found.read(Buffer.alloc(length), 0, length, start)
      await found.close()
      return buffer.subarray(0, bytesRead)
    },
    async *list(prefix) {
      const names = (await readdir(directory)).map(decodeURIComponent).sort()
      for (const name of names.filter((one) => one.startsWith(prefix)))
        yield { name, bytes: (await stat(pathOf(name))).size }
    },
    async delete(names) {
      for (const name of names) await rm(pathOf(name), { force: true })
    },
    async close() {},
  }
}

const unasked = () => Promise.reject(new Error('sinkSizeContract asks for nothing but a count'))
const uncontrolled: SinkControls = {
  visible: unasked,
  backup: unasked,
  dropMarker: unasked,
  loseStaging: unasked,
  damageStaging: unasked,
}

/** An epoch of 100 MB that takes little time: as many bytes as a million rows of 100 bytes. */
export const largeRows = { rows: 100_000, rowBytes: 1000 }
/** One of 40 MB, for sinks that hold next to nothing and whose servers are slow. */
export const manyRows = { rows: 40_000, rowBytes: 1000 }
/** Next to nothing: a block or two. */
export const littleHeld = Object.freeze({ stage: 16 * 1024 * 1024, promote: 16 * 1024 * 1024 })

/** Opens a spec as a pipeline does. */
export function opened(spec: CustomSinkSpec<never, never>, store: Store): Promise<Sink> {
  const context = { pipeline: `p-${randomUUID().slice(0, 8)}`, incarnation: 'unused', stage: 'test', directory: null }
  return spec.open('rows', { ...context, store })
}

/** Serdes of the contract's rows, for options. */
export const contractSerdes = { key: contractRowSpec.key, value: contractRowSpec.value }

/** Holds what it shows in this process. */
export const memory = measured('memory', async (store) => {
  const shown = memorySink({ id: 'rows', spec: contractRowSpec })
  const sink = shown.open(store)
  return { sink, count: async () => shown.visible().length, heldBytesMax: { promote: 2 * sink.limits.laneBytesMax } }
})

export const file = measured('files on disk', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'pawl-files-'))
  return {
    sink: openFileSink({ sink: 'rows', directory, within: null, spec: contractRowSpec }),
    async count() {
      const names = (await readdir(join(directory, 'rows'))).filter((name) => name.endsWith('.jsonl'))
      let rows = 0
      for (const name of names) {
        for await (const piece of createReadStream(join(directory, 'rows', name))) rows += linesIn(piece as Buffer)
      }
      return rows
    },
    heldBytesMax: littleHeld,
    close: () => rm(directory, { recursive: true }),
  }
})

function linesIn(bytes: Buffer): number {
  let lines = 0
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) lines++
  return lines
}

export const deltaOnDisk = measured('Delta', async (store) => {
  const seen = diskTable()
  const spec = delta<unknown, unknown>({
    table: seen.table,
    columns: { k: 'string', v: 'string', ts: 'long' },
    row: (value, key, timestampMs) => ({ k: key, v: contractRowSpec.value.encode(value), ts: timestampMs }),
    lanes: contractLanes,
  })
  return {
    sink: await opened(spec, store),
    async count() {
      const adds = (await logEntries(seen)).flat().flatMap(({ add }) => (add === undefined ? [] : [add]))
      return adds.reduce((sum, { stats }) => sum + Number(JSON.parse(String(stats)).numRecords), 0)
    },
    heldBytesMax: littleHeld,
    close: seen.dispose,
  }
})

/** Calls a function that forgets what it gets. */
export const called = measured('a function (write-ahead)', async (store) => {
  let rows = 0
  const spec = writeAhead<unknown, unknown>({
    lanes: contractLanes,
    key: contractSerdes.key as Serde<unknown>,
    value: contractSerdes.value as Serde<unknown>,
    async write(batch) {
      rows += batch.length
    },
  })
  return { sink: await opened(spec, store), count: async () => rows, heldBytesMax: littleHeld }
})
