/**
 * Rows as JSON on their way through the store, for sinks that need no form of their own.
 *
 * What `row-blocks.ts` does, with one JSON value a row: written in bounded pieces, read back in order and with their
 * checksums. Rows of one key take one lane.
 */
import type { Committable } from '../../model/manifest.ts'
import type { StageContext, StageWriter } from '../../ports/sink.ts'
import type { Store } from '../../ports/store.ts'
import { laneOf } from './lanes.ts'
import { blocksOf, blockWriter } from './row-blocks.ts'

/** What becomes of a row. */
export interface JsonRow {
  /** Decides the lane; null: the source partition does. */
  readonly key: string | Uint8Array | null
  /** Anything that JSON holds. */
  readonly row: unknown
}

const noColumns: readonly string[] = Object.freeze([])
const blocks = Object.freeze({ rowsMax: 10_000, bytesMax: 1024 * 1024 })

/** A writer for one invocation. Whatever `encode` throws rejects the row alone. */
export function jsonWriter<V = unknown, K = unknown>(
  context: StageContext,
  encode: (value: V, key: K, timestampMs: number) => JsonRow,
): StageWriter {
  const line = (key: unknown, value: unknown, timestampMs: number, partition: number) => {
    const { key: laneKey, row } = encode(value as V, key as K, timestampMs)
    return { lane: laneOf(laneKey, partition, context.lanes), columns: noColumns, line: `${JSON.stringify(row)}\n` }
  }
  return blockWriter(context, line, blocks, null)
}

/** The rows of a committable, in order, a bounded number at a time. Throws `OBJECT_MISSING`, `OBJECT_DAMAGED`. */
export async function* jsonRows<T>(store: Store, { parts }: Committable): AsyncIterable<T[]> {
  for (const part of parts) {
    for await (const { lines, rows } of blocksOf(store, part)) {
      const batch: T[] = []
      for (let at = 0; batch.length < rows; ) {
        const end = lines.indexOf(10, at)
        batch.push(JSON.parse(lines.toString('utf8', at, end)) as T)
        at = end + 1
      }
      yield batch
    }
  }
}
