/**
 * Rows of a memory sink on their way through the store: JSON lines, one object a lane and flush.
 *
 * Real bytes in the real store, so that lost, damaged and repeated objects hurt here as they do elsewhere. A line
 * is `[target, key, value, timestampMs, headers]` with contents in base64 or null.
 */
import type { Committable } from '../../model/manifest.ts'
import type { Header } from '../../model/records.ts'
import type { StageContext, StageWriter } from '../../ports/sink.ts'
import type { Store } from '../../ports/store.ts'
import { lineStageWriter, readLines } from '../shared/lane-lines.ts'
import { laneOf } from '../shared/lanes.ts'
import { type Content, encodeKey, encodeValue, type RowSpec, routeOf, rowHeaders } from '../shared/row-encoding.ts'
import type { MemoryRow } from './table.ts'

type Line = readonly [
  target: string,
  key: string | null,
  value: string | null,
  timestampMs: number,
  headers: readonly (readonly [name: string, value: string | null])[],
]

/** A writer for one invocation. */
export function memoryStageWriter(context: StageContext, spec: RowSpec): StageWriter {
  return lineStageWriter(context, null, (put, key, value, timestampMs, partition) => {
    const keyContent = encodeKey(spec.key, key)
    const line = lineOf(spec, keyContent, key, value, timestampMs)
    put(laneOf(keyContent, partition, context.lanes), line)
  })
}

/** The rows of a committable, in order. Throws `OBJECT_MISSING`, `OBJECT_DAMAGED`. */
export async function readStagedRows(store: Store, committable: Committable): Promise<MemoryRow[]> {
  const rows: MemoryRow[] = []
  await readLines(store, committable, (line) => rows.push(rowOf(JSON.parse(line) as Line, committable)))
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
