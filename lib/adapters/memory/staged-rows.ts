/**
 * Rows of a memory sink on their way through the store: JSON lines, one object a lane and flush.
 *
 * Real bytes in the real store, so that lost, damaged and repeated objects hurt here as they do elsewhere. A line
 * is `[target, key, value, timestampMs, headers]` with contents in base64 or null.
 */
import type { Committable, StagedPart } from '../../model/manifest.ts'
import type { Header } from '../../model/records.ts'
import type { StageContext, StageWriter } from '../../ports/sink.ts'
import type { Store } from '../../ports/store.ts'
import { laneOf } from '../shared/lanes.ts'
import { type Content, encodeKey, encodeValue, type RowSpec, routeOf, rowHeaders } from '../shared/row-encoding.ts'
import { createStaged, readStaged, stagedName } from '../shared/staged-objects.ts'
import type { MemoryRow } from './table.ts'

type Line = readonly [
  target: string,
  key: string | null,
  value: string | null,
  timestampMs: number,
  headers: readonly (readonly [name: string, value: string | null])[],
]

interface LaneBuffer {
  lines: string[]
  rows: number
  bytes: number
  readonly objects: StagedPart['objects'][number][]
}

/** A writer for one invocation. */
export function memoryStageWriter(context: StageContext, spec: RowSpec): StageWriter {
  const lanes = new Map<number, LaneBuffer>()
  let bufferedBytes = 0

  const bufferOf = (lane: number): LaneBuffer => {
    const found = lanes.get(lane)
    if (found !== undefined) return found
    const made = { lines: [], rows: 0, bytes: 0, objects: [] }
    lanes.set(lane, made)
    return made
  }
  const flushLane = async (lane: number, buffer: LaneBuffer) => {
    if (buffer.lines.length === 0) return
    const chunk = Buffer.from(buffer.lines.join(''))
    buffer.lines = []
    bufferedBytes -= chunk.length
    const name = stagedName(context, `${lane}-${buffer.objects.length}`)
    buffer.objects.push(await createStaged(context.store, name, [chunk]))
    buffer.bytes += chunk.length
  }
  const flush = async () => {
    for (const [lane, buffer] of lanes) await flushLane(lane, buffer)
  }

  return {
    get bufferedBytes() {
      return bufferedBytes
    },
    add(key, value, timestampMs, partition) {
      const keyContent = encodeKey(spec.key, key)
      const line = lineOf(spec, keyContent, key, value, timestampMs)
      const buffer = bufferOf(laneOf(keyContent, partition, context.lanes))
      buffer.lines.push(line)
      buffer.rows++
      bufferedBytes += Buffer.byteLength(line)
    },
    flush,
    async seal() {
      await flush()
      return [...lanes]
        .sort(([a], [b]) => a - b)
        .map(([lane, { rows, bytes, objects }]) => ({ lane, rows, bytes, objects, handle: null }))
    },
  }
}

/** The rows of a committable, in order. Throws `OBJECT_MISSING`, `OBJECT_DAMAGED`. */
export async function readStagedRows(store: Store, committable: Committable): Promise<MemoryRow[]> {
  const rows: MemoryRow[] = []
  for (const { objects } of committable.parts) {
    for (const ref of objects) {
      const lines = (await readStaged(store, ref)).toString().split('\n').slice(0, -1)
      for (const line of lines) rows.push(rowOf(JSON.parse(line) as Line, committable))
    }
  }
  return rows
}

function lineOf(spec: RowSpec, keyContent: Content, key: unknown, value: unknown, timestampMs: number): string {
  const headers = (rowHeaders(spec, key, value) ?? []).map(([name, header]) => [name, base64(header)] as const)
  const content = encodeValue(spec.value, value)
  const line: Line = [routeOf(spec, key, value), base64(keyContent), base64(content), timestampMs, headers]
  return `${JSON.stringify(line)}\n`
}

function rowOf([target, key, value, timestampMs, headers]: Line, { epoch, lane }: Committable): MemoryRow {
  const decoded = headers.map(([name, header]): Header => [name, unbase64(header)])
  return { epoch, lane, target, key: unbase64(key), value: unbase64(value), timestampMs, headers: decoded }
}

const base64 = (content: Content) => (content === null ? null : Buffer.from(content as Uint8Array).toString('base64'))

const unbase64 = (content: string | null) => (content === null ? null : Buffer.from(content, 'base64'))
