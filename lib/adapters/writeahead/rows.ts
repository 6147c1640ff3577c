/**
 * Rows on their way to a user's function: encoded when they are staged, decoded again when their block is written.
 *
 * A line is JSON: key, value and time, text as text and bytes in base64.
 */
import type { Serde } from '../../model/serde.ts'
import { type Cell, cellOf, contentOf } from '../shared/content-cells.ts'
import { laneOf } from '../shared/lanes.ts'
import type { RowBlock, RowEncoder } from '../shared/row-blocks.ts'
import { encodeKey, encodeValue } from '../shared/row-encoding.ts'

/** One row as the function gets it. A null value is a tombstone. */
export interface WriteAheadRow<K, V> {
  readonly key: K | null
  readonly value: V | null
  readonly timestampMs: number
}

/** A row as it was encoded. */
export interface EncodedContents {
  readonly key: Buffer | null
  readonly value: Buffer | null
}

interface RowSerdes {
  readonly key: Serde<unknown>
  readonly value: Serde<unknown>
}

type Line = readonly [key: Cell, value: Cell, timestampMs: number]

const noColumns: readonly string[] = Object.freeze([])

/** Encodes the rows of one invocation of a sink with `lanes` lanes. */
export function rowEncoder({ key: keySerde, value: valueSerde }: RowSerdes, lanes: number): RowEncoder {
  return (key, value, timestampMs, partition) => {
    const content = encodeKey(keySerde, key)
    const line: Line = [cellOf(content), cellOf(encodeValue(valueSerde, value)), timestampMs]
    return { lane: laneOf(content, partition, lanes), columns: noColumns, line: `${JSON.stringify(line)}\n` }
  }
}

/** The rows of a block. */
export function rowsOf(block: RowBlock, { key, value }: RowSerdes): WriteAheadRow<unknown, unknown>[] {
  const rows: WriteAheadRow<unknown, unknown>[] = []
  for (const [keyCell, valueCell, timestampMs] of linesOf(block))
    rows.push({ key: decoded(key, keyCell), value: decoded(value, valueCell), timestampMs })
  return rows
}

/** What the rows of a block were encoded to. */
export function contentsOf(block: RowBlock): EncodedContents[] {
  const contents: EncodedContents[] = []
  for (const [key, value] of linesOf(block)) contents.push({ key: bytesOf(key), value: bytesOf(value) })
  return contents
}

function* linesOf({ lines, rows }: RowBlock): Iterable<Line> {
  for (let at = 0, row = 0; row < rows; row++) {
    const end = lines.indexOf(10, at)
    yield JSON.parse(lines.toString('utf8', at, end)) as Line
    at = end + 1
  }
}

function decoded(serde: Serde<unknown>, cell: Cell): unknown {
  const bytes = bytesOf(cell)
  return bytes === null ? null : serde.decode(bytes, 0, bytes.length)
}

function bytesOf(cell: Cell): Buffer | null {
  const content = contentOf(cell)
  return typeof content === 'string' ? Buffer.from(content) : content
}
