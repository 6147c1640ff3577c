/**
 * Rows of a table on their way through the store: blocks of lines, written once, in the database's own text form.
 *
 * An object is a sequence of blocks. A block is a line of JSON (`{"columns": […], "rows": n, "bytes": n}`), then
 * `rows` lines of `bytes` bytes together. All rows of a block have the same columns, so that a block is one
 * statement; a dialect says how long a block may get. Cells are separated by tabs; cell and line are text of the
 * dialect, in which no raw tab or newline can stand.
 */
import type { Committable, StagedPart } from '../../model/manifest.ts'
import type { StageContext, StageWriter } from '../../ports/sink.ts'
import type { Store } from '../../ports/store.ts'
import { createStaged, partsOf, readStaged, stagedName } from './staged-objects.ts'

/** Rows with the same columns. */
export interface RowBlock {
  readonly columns: readonly string[]
  readonly rows: number
  /** Whole lines, the last newline included. */
  readonly lines: Buffer
}

/** One row, encoded. */
export interface EncodedRow {
  readonly lane: number
  /** The same array for rows of the same columns. */
  readonly columns: readonly string[]
  /** With its newline. */
  readonly line: string
}

/** How long a block may get; a row that is larger is a block of its own. */
export interface BlockLimits {
  readonly rowsMax: number
  readonly bytesMax: number
}

/** Encodes one row, or throws without having kept anything of it. */
export type RowEncoder = (key: unknown, value: unknown, timestampMs: number, partition: number) => EncodedRow

interface OpenBlock {
  readonly columns: readonly string[]
  readonly lines: string[]
  bytes: number
}

interface LaneBlocks {
  open: OpenBlock | null
  closed: Buffer[]
  rows: number
  bytes: number
  readonly objects: StagedPart['objects'][number][]
}

/** A writer for one invocation; `handle` goes into each part. */
export function blockWriter(
  context: StageContext,
  encode: RowEncoder,
  limits: BlockLimits,
  handle: unknown,
): StageWriter {
  const lanes = new Map<number, LaneBlocks>()
  let bufferedBytes = 0
  const laneBlocks = (lane: number): LaneBlocks => {
    const found = lanes.get(lane)
    if (found !== undefined) return found
    const made: LaneBlocks = { open: null, closed: [], rows: 0, bytes: 0, objects: [] }
    lanes.set(lane, made)
    return made
  }
  const flushLane = async (lane: number, blocks: LaneBlocks) => {
    closeBlock(blocks)
    const chunks = blocks.closed
    if (chunks.length === 0) return
    blocks.closed = []
    const ref = await createStaged(context.store, stagedName(context, `${lane}-${blocks.objects.length}`), chunks)
    blocks.objects.push(ref)
    blocks.bytes += ref.bytes
  }
  const flush = async () => {
    for (const [lane, blocks] of lanes) await flushLane(lane, blocks)
    bufferedBytes = 0
  }
  return {
    get bufferedBytes() {
      return bufferedBytes
    },
    add(key, value, timestampMs, partition) {
      const { lane, columns, line } = encode(key, value, timestampMs, partition)
      const blocks = laneBlocks(lane)
      const bytes = Buffer.byteLength(line)
      let { open } = blocks
      if (open !== null && (open.columns !== columns || isFull(open, bytes, limits))) {
        closeBlock(blocks)
        open = null
      }
      if (open === null) {
        open = { columns, lines: [], bytes: 0 }
        blocks.open = open
      }
      open.lines.push(line)
      open.bytes += bytes
      blocks.rows++
      bufferedBytes += bytes
    },
    flush,
    async seal() {
      await flush()
      return partsOf(lanes, handle)
    },
  }
}

function isFull(open: OpenBlock, bytes: number, { rowsMax, bytesMax }: BlockLimits): boolean {
  return open.lines.length >= rowsMax || open.bytes + bytes > bytesMax
}

function closeBlock(blocks: LaneBlocks): void {
  const { open } = blocks
  if (open === null) return
  const { columns, lines, bytes } = open
  const header = JSON.stringify({ columns, rows: lines.length, bytes })
  blocks.closed.push(Buffer.from(`${header}\n${lines.join('')}`))
  blocks.open = null
}

/** The blocks of a part, in order; the next object is read meanwhile. Throws `OBJECT_MISSING`, `OBJECT_DAMAGED`. */
export async function* blocksOf(store: Store, part: Committable['parts'][number]): AsyncIterable<RowBlock> {
  let next = part.objects.length > 0 ? readStaged(store, part.objects[0]) : null
  for (let index = 0; next !== null; index++) {
    const bytes = await next
    next = index + 1 < part.objects.length ? readStaged(store, part.objects[index + 1]) : null
    // It is awaited in the next turn, unless this one fails.
    next?.catch(() => undefined)
    yield* blocksIn(bytes)
  }
}

interface BlockHeader {
  readonly columns: readonly string[]
  readonly rows: number
  readonly bytes: number
}

function* blocksIn(bytes: Buffer): Iterable<RowBlock> {
  for (let at = 0; at < bytes.length; ) {
    const start = bytes.indexOf(10, at) + 1
    const header = JSON.parse(bytes.toString('utf8', at, start)) as BlockHeader
    at = start + header.bytes
    yield { columns: header.columns, rows: header.rows, lines: bytes.subarray(start, at) }
  }
}

/** The first `rows` rows of a block. */
export function firstRows(block: RowBlock, rows: number): RowBlock {
  return { columns: block.columns, rows, lines: block.lines.subarray(0, lineStart(block, rows)) }
}

/** A block without its first `rows` rows. */
export function rowsFrom(block: RowBlock, rows: number): RowBlock {
  return { columns: block.columns, rows: block.rows - rows, lines: block.lines.subarray(lineStart(block, rows)) }
}

/** The cells of one row of a block. */
export function cellsAt(block: RowBlock, row: number): string[] {
  const start = lineStart(block, row)
  return block.lines.toString('utf8', start, block.lines.indexOf(10, start)).split('\t')
}

function lineStart({ lines }: RowBlock, row: number): number {
  let at = 0
  for (let i = 0; i < row; i++) at = lines.indexOf(10, at) + 1
  return at
}
