/**
 * Reads Kafka record batches, format version 2, into columns.
 *
 * What a broker sends for a fetch goes in; the visible records of `[start, end)` come out, in offset order. Not
 * visible are control batches (known by their attributes, never by their keys) and, when the list of aborted
 * transactions is given, the records of those; transactions of several producers may overlap. Each batch is
 * checked against its CRC-32C and each record against its length before anything of it is delivered. Runs of
 * small batches share one `LogBatch`. Columns are used again for the next batch.
 */
import { crc32c } from './crc32c.ts'
import { PawlError } from './errors.ts'
import { batchAttributes, batchLayout as layout } from './record-batch.ts'
import { Columns, decodeRecords, readControlType } from './record-columns.ts'
import type { LogBatch } from './records.ts'

/** A producer's transaction that was aborted, from `firstOffset` to its abort marker. */
export interface AbortedTransaction {
  readonly producerId: bigint
  readonly firstOffset: bigint
}

/** Which records of what was fetched to deliver, and how. */
export interface DecodeOptions {
  /** Names the topic in errors. */
  readonly topic?: string
  readonly partition: number
  readonly start: bigint
  readonly end: bigint
  /** Transactions to leave out; absent: deliver everything (read_uncommitted). */
  readonly aborted?: readonly AbortedTransaction[]
  /** Expands a compressed batch; may throw `CODEC_MISSING`. */
  readonly decompress?: (codec: CodecName, bytes: Buffer) => Buffer
  /** False skips the checksums, for bytes that were just checked. */
  readonly verify?: boolean
  /** Columns to use, for callers that decode one fetch after the other. */
  readonly columns?: Columns
}

/** Records, and where the next fetch goes on. */
export interface Decoded {
  /** Lazily decoded; each is valid until the next is asked for. Throws `BATCH_DAMAGED` and the codec errors. */
  readonly batches: Iterable<LogBatch>
  /** Where the next fetch begins: behind the last whole batch, or `start` when there is none. */
  readonly next: bigint
}

/** The codecs of Kafka, numbered from 1 in this order. */
export type CodecName = 'gzip' | 'snappy' | 'lz4' | 'zstd'

const codecs: readonly (CodecName | null)[] = [null, 'gzip', 'snappy', 'lz4', 'zstd']
const abortMarker = 0
/** Rows at which a shared `LogBatch` is handed over. */
const sharedRows = 4096
/** Smallest batch: its length field counts from the leader epoch. */
const lengthMin = layout.records - layout.leaderEpoch

/** Decodes whole batches; a partial one at the end is left for the next fetch. */
export function decodeBatches(bytes: Buffer, options: DecodeOptions): Decoded {
  const next = nextOffset(bytes)
  return { batches: logBatches(bytes, options), next: next !== null && next > options.start ? next : options.start }
}

/** The offset behind the last whole batch, from the headers alone; null when there is no whole batch. */
export function nextOffset(bytes: Buffer): bigint | null {
  let last = -1
  for (let at = 0; at + layout.records <= bytes.length; ) {
    const end = at + layout.leaderEpoch + bytes.readInt32BE(at + layout.length)
    if (end > bytes.length || end < at + layout.records) break
    last = at
    at = end
  }
  if (last < 0) return null
  return bytes.readBigInt64BE(last) + BigInt(bytes.readInt32BE(last + layout.lastOffsetDelta)) + 1n
}

function* logBatches(bytes: Buffer, options: DecodeOptions): Generator<LogBatch, void, undefined> {
  const columns = options.columns ?? new Columns()
  const visible = abortFilter(options.aborted)
  let expected = -1n
  columns.begin(bytes)
  for (let at = 0; at + layout.records <= bytes.length; ) {
    const batchEnd = at + layout.leaderEpoch + bytes.readInt32BE(at + layout.length)
    if (batchEnd > bytes.length) break
    const header = checkedHeader(bytes, at, batchEnd, expected, options)
    expected = header.lastOffset + 1n
    if (visible(bytes, at, header) && header.lastOffset >= options.start && header.baseOffset < options.end) {
      const codec = codecs[header.attributes & batchAttributes.codec]
      if (codec !== null || !columns.accepts(header.baseOffset, header.lastOffset, sharedRows)) {
        if (columns.count > 0) yield columns.take(options.partition)
        columns.begin(bytes)
      }
      if (codec === null) decodeInto(columns, bytes, at + layout.records, batchEnd, header, options)
      else {
        const expanded = expand(codec, bytes.subarray(at + layout.records, batchEnd), header, options)
        columns.begin(expanded)
        decodeInto(columns, expanded, 0, expanded.length, header, options)
        if (columns.count > 0) yield columns.take(options.partition)
        columns.begin(bytes)
      }
    }
    at = batchEnd
  }
  if (columns.count > 0) yield columns.take(options.partition)
}

/** What the header of a batch says. */
interface BatchHeader {
  readonly baseOffset: bigint
  readonly lastOffset: bigint
  readonly attributes: number
  readonly baseTimestamp: bigint
  readonly maxTimestamp: bigint
  readonly producerId: bigint
  readonly count: number
}

function checkedHeader(
  bytes: Buffer,
  at: number,
  batchEnd: number,
  expected: bigint,
  options: DecodeOptions,
): BatchHeader {
  const baseOffset = bytes.readBigInt64BE(at)
  if (batchEnd < at + layout.leaderEpoch + lengthMin) throw damaged('its length is too small', baseOffset, options)
  const magic = bytes[at + layout.magic]
  if (magic !== 2)
    throw new PawlError(
      'BATCH_FORMAT_UNKNOWN',
      `${placeOf(options)} at offset ${baseOffset} has format ${magic}`,
      detailsOf(baseOffset, options),
    )
  if (
    options.verify !== false &&
    crc32c(bytes, at + layout.attributes, batchEnd) !== bytes.readUInt32BE(at + layout.crc)
  )
    throw damaged('checksum', baseOffset, options)
  if (baseOffset < expected || baseOffset < 0n) throw damaged(`offset ${expected} was expected`, baseOffset, options)
  const lastOffsetDelta = bytes.readInt32BE(at + layout.lastOffsetDelta)
  const attributes = bytes.readInt16BE(at + layout.attributes)
  const codec = attributes & batchAttributes.codec
  if (codec >= codecs.length)
    throw new PawlError(
      'CODEC_UNKNOWN',
      `codec ${codec} of ${placeOf(options)} at offset ${baseOffset}`,
      detailsOf(baseOffset, options),
    )
  const count = bytes.readInt32BE(at + layout.count)
  if (count < 0 || lastOffsetDelta < 0) throw damaged('its counts are negative', baseOffset, options)
  return {
    baseOffset,
    lastOffset: baseOffset + BigInt(lastOffsetDelta),
    attributes,
    baseTimestamp: bytes.readBigInt64BE(at + layout.baseTimestamp),
    maxTimestamp: bytes.readBigInt64BE(at + layout.maxTimestamp),
    producerId: bytes.readBigInt64BE(at + layout.producerId),
    count,
  }
}

/**
 * Tells batch by batch, in order, whether its records are to be delivered. A producer's records are hidden from
 * the first offset of an aborted transaction to its abort marker (as in the Java client's CompletedFetch).
 */
function abortFilter(aborted: readonly AbortedTransaction[] | undefined) {
  const waiting = [...(aborted ?? [])].sort((a, b) => (a.firstOffset < b.firstOffset ? -1 : 1))
  const open = new Set<bigint>()
  let position = 0
  return (bytes: Buffer, at: number, header: BatchHeader): boolean => {
    while (position < waiting.length && waiting[position].firstOffset <= header.lastOffset)
      open.add(waiting[position++].producerId)
    if (header.attributes & batchAttributes.control) {
      if (open.size > 0 && header.count > 0 && readControlType(bytes, at + layout.records) === abortMarker)
        open.delete(header.producerId)
      return false
    }
    return !(header.attributes & batchAttributes.transactional) || !open.has(header.producerId)
  }
}

function decodeInto(
  columns: Columns,
  bytes: Buffer,
  from: number,
  to: number,
  header: BatchHeader,
  options: DecodeOptions,
): void {
  const { start, end } = options
  const fault = decodeRecords(columns, bytes, from, to, {
    baseOffset: header.baseOffset,
    count: header.count,
    baseTimestamp: header.baseTimestamp,
    appendTimestamp: header.attributes & batchAttributes.logAppendTime ? header.maxTimestamp : null,
    deltaMin: start > header.baseOffset ? Number(start - header.baseOffset) : 0,
    deltaMax:
      end <= header.lastOffset ? Number(end - header.baseOffset) - 1 : Number(header.lastOffset - header.baseOffset),
    lastDelta: Number(header.lastOffset - header.baseOffset),
  })
  if (fault !== null) throw damaged(fault, header.baseOffset, options)
}

function expand(codec: CodecName, bytes: Buffer, header: BatchHeader, options: DecodeOptions): Buffer {
  const { decompress } = options
  if (decompress === undefined)
    throw new PawlError(
      'CODEC_MISSING',
      `${codec} for ${placeOf(options)} at offset ${header.baseOffset}`,
      detailsOf(header.baseOffset, options),
    )
  try {
    return decompress(codec, bytes)
  } catch (error) {
    if (error instanceof PawlError) throw error
    throw damaged(`it is no ${codec}`, header.baseOffset, options, error)
  }
}

function damaged(fault: string, offset: bigint, options: DecodeOptions, cause?: unknown): PawlError {
  return new PawlError(
    'BATCH_DAMAGED',
    `${placeOf(options)} at offset ${offset} (${fault})`,
    detailsOf(offset, options),
    cause,
  )
}

function placeOf(options: DecodeOptions): string {
  return options.topic === undefined ? `partition ${options.partition}` : `${options.topic}/${options.partition}`
}

function detailsOf(offset: bigint, options: DecodeOptions) {
  return { topic: options.topic ?? null, partition: options.partition, offset: offset.toString() }
}
