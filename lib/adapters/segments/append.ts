/**
 * Appending to a partition: encode once, then create the segment that comes next, if absent.
 *
 * Appenders race for the name of the end offset; the loser looks where the end is now and tries again with the
 * same bytes (base offsets lie outside the checksums of batches), so nothing is lost or doubled. An answer that
 * was lost is read back by the append id. An append that fits one segment is atomic; a larger one lands segment by
 * segment, others may land between.
 */
import { isPawlError, PawlError } from '../../model/errors.ts'
import { batchLayout, RecordBatchEncoder } from '../../model/record-batch.ts'
import type { LogRecord } from '../../model/records.ts'
import type { Store } from '../../ports/store.ts'
import type { Random } from '../../ports/system.ts'
import type { PartitionIndex } from './partition-index.ts'
import { encodeSegmentHeader, segmentName } from './segment.ts'

/** Bytes at which a batch, and a segment, is closed. */
const batchBytes = 256 * 1024
const segmentBytes = 8 * 1024 * 1024
const batchRecordsMax = 4096
const triesMax = 5

interface EncodedSegment {
  readonly batches: Buffer[]
  count: number
  bytes: number
  maxTimestampMs: number
}

/** Appends records to a refreshed partition; returns the offset of the first. Throws `UNKNOWN_RESULT`. */
export async function appendRecords(
  store: Store,
  random: Random,
  index: PartitionIndex,
  records: readonly LogRecord[],
): Promise<bigint> {
  let first: bigint | null = null
  for (const segment of encodeSegments(records)) {
    const base = await appendSegment(store, index, segment, random.id())
    first ??= base
  }
  return first ?? index.end
}

async function appendSegment(
  store: Store,
  index: PartitionIndex,
  segment: EncodedSegment,
  appendId: string,
): Promise<bigint> {
  for (;;) {
    const base = index.end
    const end = base + BigInt(segment.count)
    const { maxTimestampMs, bytes: bodyBytes } = segment
    const header = encodeSegmentHeader({ appendId, base, end, maxTimestampMs, bodyBytes })
    rebase(segment.batches, base)
    if (await createSegment(store, index, base, [header, ...segment.batches], appendId)) {
      index.extend(base, end)
      return base
    }
    await index.refresh()
  }
}

/** True when the segment is ours, false when a rival's is there. */
async function createSegment(
  store: Store,
  index: PartitionIndex,
  base: bigint,
  chunks: readonly Buffer[],
  appendId: string,
): Promise<boolean> {
  const name = segmentName(index.placeOf(base))
  for (let tries = 1; ; tries++) {
    try {
      if ((await store.create(name, chunks)) === 'created') return true
    } catch (error) {
      if (!isPawlError(error) || error.code !== 'UNKNOWN_RESULT') throw error
    }
    const found = await index.header(base)
    if (found !== null) return found.appendId === appendId
    if (tries >= triesMax) throw new PawlError('UNKNOWN_RESULT', `append of ${name}`, { object: name })
  }
}

function encodeSegments(records: readonly LogRecord[]): EncodedSegment[] {
  const encoder = new RecordBatchEncoder()
  const segments: EncodedSegment[] = []
  const closeBatch = () => {
    if (encoder.count === 0) return
    const open = segments.at(-1)
    const segment = open !== undefined && open.bytes + encoder.bytes <= segmentBytes ? open : newSegment()
    if (segment !== open) segments.push(segment)
    const batch = encoder.seal()
    segment.batches.push(batch)
    segment.count += encoder.count
    segment.bytes += batch.length
    const maxTimestampMs = Number(batch.readBigInt64BE(batchLayout.maxTimestamp))
    segment.maxTimestampMs = Math.max(segment.maxTimestampMs, maxTimestampMs)
    encoder.reset()
  }
  for (const { key, value, timestampMs, headers } of records) {
    encoder.add(timestampMs, key, value, headers)
    if (encoder.bytes >= batchBytes || encoder.count >= batchRecordsMax) closeBatch()
  }
  closeBatch()
  return segments
}

const newSegment = (): EncodedSegment => ({
  batches: [],
  count: 0,
  bytes: 0,
  maxTimestampMs: Number.MIN_SAFE_INTEGER,
})

function rebase(batches: readonly Buffer[], base: bigint): void {
  let offset = base
  for (const batch of batches) {
    batch.writeBigInt64BE(offset, batchLayout.baseOffset)
    offset += BigInt(batch.readInt32BE(batchLayout.count))
  }
}
