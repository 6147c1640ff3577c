/**
 * Rows on their way through the store as lines of text: one object a lane and flush, in order.
 *
 * What a line says is the sink's own; here is only how lines are gathered by lane, handed over and read again.
 */
import type { Committable, StagedPart } from '../../model/manifest.ts'
import type { StageContext, StageWriter } from '../../ports/sink.ts'
import type { Store } from '../../ports/store.ts'
import { createStaged, partsOf, readStaged, stagedName } from './staged-objects.ts'

interface LaneLines {
  lines: string[]
  rows: number
  bytes: number
  readonly objects: StagedPart['objects'][number][]
}

/** Takes the line of one row, with its newline. */
export type PutLine = (lane: number, line: string) => void

/** What `StageWriter.add` does, given where its line goes. */
export type AddLine = (put: PutLine, ...row: Parameters<StageWriter['add']>) => void

/** A writer for one invocation; `handle` goes into each part. */
export function lineStageWriter(context: StageContext, handle: unknown, add: AddLine): StageWriter {
  const lanes = new Map<number, LaneLines>()
  let bufferedBytes = 0
  const put: PutLine = (lane, line) => {
    const buffer = lanes.get(lane) ?? { lines: [], rows: 0, bytes: 0, objects: [] }
    lanes.set(lane, buffer)
    buffer.lines.push(line)
    buffer.rows++
    bufferedBytes += Buffer.byteLength(line)
  }
  const flush = async () => {
    for (const [lane, buffer] of lanes) {
      if (buffer.lines.length === 0) continue
      const chunk = Buffer.from(buffer.lines.join(''))
      buffer.lines = []
      bufferedBytes -= chunk.length
      const name = stagedName(context, `${lane}-${buffer.objects.length}`)
      buffer.objects.push(await createStaged(context.store, name, [chunk]))
      buffer.bytes += chunk.length
    }
  }
  return {
    get bufferedBytes() {
      return bufferedBytes
    },
    add: (key, value, timestampMs, partition) => add(put, key, value, timestampMs, partition),
    flush,
    async seal() {
      await flush()
      return partsOf(lanes, handle)
    },
  }
}

/** Hands over each line of a committable, in order and without its newline. Throws `OBJECT_MISSING`, `OBJECT_DAMAGED`. */
export async function readLines(store: Store, { parts }: Committable, take: (line: string) => void): Promise<void> {
  for (const { objects } of parts) {
    for (const ref of objects) {
      const text = (await readStaged(store, ref)).toString()
      for (let start = 0; start < text.length; ) {
        const end = text.indexOf('\n', start)
        take(text.slice(start, end))
        start = end + 1
      }
    }
  }
}
