/**
 * Segments of the intake: what is laid down of one partition at once, and the names by which everything is known.
 *
 * Several may lay down the same offsets, so a name is made of what is inside: range, origin, number of runs, and a
 * hash. What comes twice gets the same name and is created once. Runs are the ranges of offsets for which the segment
 * answers in full: of an event, offsets without a gap; of a read from the broker, the whole range, holes included.
 * The bytes: the header of every segment (its append id is the hash), the runs as pairs of int64, record batches.
 */
import { createHash } from 'node:crypto'
import type { PlacedRecord } from '../../model/mapping-event.ts'
import { RecordBatchEncoder } from '../../model/record-batch.ts'
import { decodeSegmentHeader, encodeSegmentHeader, segmentDamaged, segmentHeaderBytes } from './segment.ts'

/** Offsets `[start, end)`. */
export interface Run {
  readonly start: bigint
  readonly end: bigint
}

/** Where a partition's segments lie. */
export interface IntakePlace {
  /** `intake/<pipeline>/<topic>/`. */
  readonly prefix: string
  readonly topic: string
  readonly partition: number
}

/** A segment as its name tells. */
export interface IntakeSegment extends Run {
  readonly name: string
  readonly partition: number
  readonly origin: 'event' | 'broker'
  /** How many runs it has; one covers `[start, end)`. */
  readonly runs: number
  readonly hash: string
}

const runBytes = 16
const batchBytes = 256 * 1024
const batchRecordsMax = 4096
const nameForm = /segments\/(\d{6})\/(\d{20})-(\d{20})-([eb])(\d+)-([0-9a-f]{32})$/

/** Everything of one topic of one pipeline. */
export function intakePrefix(pipeline: string, topic: string): string {
  return `intake/${pipeline}/${topic}/`
}

/** A partition as it stands in names, so that they sort. */
export const partitionText = (partition: number) => partition.toString().padStart(6, '0')
/** An offset as it stands in names, so that they sort. */
export const offsetName = (offset: bigint) => offset.toString().padStart(20, '0')

/** What the name of an object says; null for one that is no segment. */
export function intakeSegmentOf(name: string): IntakeSegment | null {
  const [found, partition, start, end, origin, runs, hash] = nameForm.exec(name) ?? []
  if (found === undefined) return null
  return {
    name,
    partition: Number(partition),
    start: BigInt(start!),
    end: BigInt(end!),
    origin: origin === 'e' ? 'event' : 'broker',
    runs: Number(runs),
    hash: hash!,
  }
}

/** A segment of what an event brought; `records` are ascending and at least one. */
export function eventSegment(place: IntakePlace, records: readonly PlacedRecord[]): EncodedIntake {
  return encode(place, 'event', runsOf(records), records)
}

/** A segment that answers for all of `range`, as it was read from the broker. */
export function brokerSegment(place: IntakePlace, range: Run, records: readonly PlacedRecord[]): EncodedIntake {
  return encode(place, 'broker', [range], records)
}

/** A segment to be created. */
export interface EncodedIntake {
  readonly name: string
  readonly chunks: readonly Buffer[]
}

function encode(
  { prefix, partition }: IntakePlace,
  origin: IntakeSegment['origin'],
  runs: readonly Run[],
  records: readonly PlacedRecord[],
): EncodedIntake {
  const [{ start }] = runs
  const { end } = runs.at(-1)!
  const body = [encodeRuns(runs), ...encodeBatches(records)]
  const sha = createHash('sha256')
  for (const chunk of body) sha.update(chunk)
  const hash = sha.digest('hex').slice(0, 32)
  const bodyBytes = body.reduce((sum, { length }) => sum + length, 0)
  const maxTimestampMs = records.reduce((max, { timestampMs }) => Math.max(max, timestampMs), Number.MIN_SAFE_INTEGER)
  const header = encodeSegmentHeader({ appendId: hash, base: start, end, maxTimestampMs, bodyBytes })
  const range = `${offsetName(start)}-${offsetName(end)}-${origin[0]}${runs.length}-${hash}`
  return { name: `${prefix}segments/${partitionText(partition)}/${range}`, chunks: [header, ...body] }
}

/** Ranges of offsets that follow each other without a gap. */
export function runsOf(records: readonly { readonly offset: bigint }[]): Run[] {
  const runs: { start: bigint; end: bigint }[] = []
  for (const { offset } of records) {
    const last = runs.at(-1)
    if (last !== undefined && last.end === offset) last.end++
    else runs.push({ start: offset, end: offset + 1n })
  }
  return runs
}

function encodeRuns(runs: readonly Run[]): Buffer {
  const bytes = Buffer.alloc(runs.length * runBytes)
  for (const [i, { start, end }] of runs.entries()) {
    bytes.writeBigInt64BE(start, i * runBytes)
    bytes.writeBigInt64BE(end, i * runBytes + 8)
  }
  return bytes
}

/** Offsets in a batch are dense, so that each run has batches of its own. */
function encodeBatches(records: readonly PlacedRecord[]): Buffer[] {
  const batches: Buffer[] = []
  const encoder = new RecordBatchEncoder()
  let baseOffset = 0n
  const close = () => {
    if (encoder.count > 0) batches.push(encoder.seal({ baseOffset }))
    encoder.reset()
  }
  for (const { offset, timestampMs, key, value, headers } of records) {
    const isFull = encoder.bytes >= batchBytes || encoder.count >= batchRecordsMax
    if (isFull || offset !== baseOffset + BigInt(encoder.count)) close()
    if (encoder.count === 0) baseOffset = offset
    encoder.add(timestampMs, key, value, headers)
  }
  close()
  return batches
}

/** Bytes of a segment that tell its runs. */
export function runsWithin({ runs }: IntakeSegment): { readonly start: number; readonly end: number } {
  return { start: segmentHeaderBytes, end: segmentHeaderBytes + runs * runBytes }
}

/** Runs from their table. */
export function decodeRuns(bytes: Buffer): Run[] {
  return Array.from({ length: bytes.length / runBytes }, (_, i) => ({
    start: bytes.readBigInt64BE(i * runBytes),
    end: bytes.readBigInt64BE(i * runBytes + 8),
  }))
}

/** The record batches of a segment. Throws `LOG_SEGMENT_DAMAGED` unless the bytes are what the name says. */
export function batchesWithin(bytes: Buffer, topic: string, segment: IntakeSegment): Buffer {
  const place = { topic, partition: segment.partition, base: segment.start, name: segment.name }
  const { appendId, end, bodyBytes } = decodeSegmentHeader(bytes, place)
  const body = bytes.subarray(segmentHeaderBytes)
  if (body.length !== bodyBytes) throw segmentDamaged(`${body.length} bytes, not ${bodyBytes}`, place)
  const hash = createHash('sha256').update(body).digest('hex').slice(0, 32)
  if (hash !== segment.hash || appendId !== hash || end !== segment.end) throw segmentDamaged('its hash', place)
  return body.subarray(segment.runs * runBytes)
}
