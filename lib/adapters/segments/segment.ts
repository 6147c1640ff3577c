/**
 * The file format of a segment, version 1, and the names of segments.
 *
 * A segment is a header of 56 bytes, then Kafka record batches (v2). All numbers are big-endian:
 *
 *     0  7 bytes "PAWLSEG"      8  16 bytes append id        32  int64 end offset            48  uint32 body bytes
 *     7  uint8 version         24  int64 base offset         40  int64 largest timestamp     52  uint32 CRC-32C of 0..51
 *
 * Its name holds the base offset alone: whoever creates the next segment must agree on the name for
 * create-if-absent to pick one winner, and two appenders with other numbers of records agree on nothing else. The
 * end stands in the header, so that it costs one small ranged read, whatever the size of the segment. The append
 * id is random: it tells an append whose answer was lost from a rival with the same records.
 */
import { crc32c } from '../../model/crc32c.ts'
import { PawlError } from '../../model/errors.ts'
import { offsetText } from '../../model/offsets.ts'

/** What the header of a segment says. */
export interface SegmentHeader {
  /** 32 hex digits. */
  readonly appendId: string
  readonly base: bigint
  readonly end: bigint
  readonly maxTimestampMs: number
  readonly bodyBytes: number
}

/** Where a segment belongs, for names and errors. */
export interface SegmentPlace {
  readonly topic: string
  readonly partition: number
  readonly base: bigint
  /** Of the object, where it is not `segmentName`. */
  readonly name?: string
}

/** Size of the header; the record batches follow. */
export const segmentHeaderBytes = 56
const magic = Buffer.from('PAWLSEG')
const version = 1
const crcAt = 52

/** All segments of a partition. */
export function segmentPrefix(topic: string, partition: number): string {
  return `logs/${topic}/${partition}/`
}

/** The object that holds the segment. */
export function segmentName({ topic, partition, base }: SegmentPlace): string {
  return `${segmentPrefix(topic, partition)}${base.toString().padStart(20, '0')}`
}

/** The base offset that a segment's name says; null for a name that is none. */
export function baseOfName(name: string): bigint | null {
  const last = name.slice(name.lastIndexOf('/') + 1)
  return /^\d{20}$/.test(last) ? BigInt(last) : null
}

/** The header's bytes, checksum included. */
export function encodeSegmentHeader(header: SegmentHeader): Buffer {
  const bytes = Buffer.alloc(segmentHeaderBytes)
  magic.copy(bytes)
  bytes[7] = version
  bytes.write(header.appendId, 8, 'hex')
  bytes.writeBigInt64BE(header.base, 24)
  bytes.writeBigInt64BE(header.end, 32)
  bytes.writeBigInt64BE(BigInt(header.maxTimestampMs), 40)
  bytes.writeUInt32BE(header.bodyBytes, 48)
  bytes.writeUInt32BE(crc32c(bytes, 0, crcAt), crcAt)
  return bytes
}

/** Reads a header. Throws `LOG_SEGMENT_DAMAGED`, and `LOG_TOO_NEW` for a later version. */
export function decodeSegmentHeader(bytes: Buffer, place: SegmentPlace): SegmentHeader {
  if (bytes.length < segmentHeaderBytes) throw segmentDamaged('its header is cut short', place)
  if (!bytes.subarray(0, 7).equals(magic)) throw segmentDamaged('it does not begin as a segment does', place)
  if (crc32c(bytes, 0, crcAt) !== bytes.readUInt32BE(crcAt)) throw segmentDamaged('checksum of the header', place)
  if (bytes[7] !== version) {
    throw new PawlError(
      'LOG_TOO_NEW',
      `segment ${place.name ?? segmentName(place)} has version ${bytes[7]}`,
      detailsOf(place),
    )
  }
  const header = {
    appendId: bytes.toString('hex', 8, 24),
    base: bytes.readBigInt64BE(24),
    end: bytes.readBigInt64BE(32),
    maxTimestampMs: Number(bytes.readBigInt64BE(40)),
    bodyBytes: bytes.readUInt32BE(48),
  }
  if (header.base !== place.base) throw segmentDamaged(`it holds the segment of offset ${header.base}`, place)
  if (header.end <= header.base) throw segmentDamaged('it ends before it starts', place)
  return header
}

/** The refusal of a segment, naming topic, partition and offset. */
export function segmentDamaged(fault: string, place: SegmentPlace, cause?: unknown): PawlError {
  const where = `partition ${place.partition} of ${place.topic} at offset ${place.base}`
  const name = place.name ?? segmentName(place)
  return new PawlError('LOG_SEGMENT_DAMAGED', `${where} (${name}): ${fault}`, detailsOf(place), cause)
}

function detailsOf({ topic, partition, base }: SegmentPlace) {
  return { topic, partition, offset: offsetText(base) }
}
