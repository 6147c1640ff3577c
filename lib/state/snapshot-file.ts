/**
 * The format of snapshot files: immutable, checksummed, and complete or refused.
 * Version 1, integers little-endian:
 *
 *     file    = "PWLS" · version u8 · frame(header) · frame(block)* · frame(footer)
 *     frame   = kind u8 · entries u32 · length u32 · payload · CRC-32C u32 of everything in the frame before it
 *     header  = kind 1, JSON; its checksum also covers magic and version: both stay as they are in every version
 *     blocks  = JSON, applied in file order: kind 2 set [[group, keys, values]…], 3 set in tagged form (values.ts),
 *               4 remove [[group, keys]…], 5 drop [group…], 6 fired [group…]
 *     footer  = kind 7, entries of all blocks, payload: CRC-32C u32 of the checksums of header and blocks
 *
 * A group is a window's start, or 0 without windows; entries are its keys and groups. The footer shows what is cut off,
 * lost, doubled or exchanged.
 */
import { crc32c } from '../model/crc32c.ts'
import { PawlError } from '../model/errors.ts'
import type { Key } from './key-groups.ts'

/** Version of the format, which all files carry. */
export const snapshotVersion = 1

const magic = Buffer.from('PWLS')
const headBytes = 9
const crcBytes = 4

/** Kinds of frames. */
export const frameKind = Object.freeze({ header: 1, set: 2, setTagged: 3, remove: 4, drop: 5, fired: 6, footer: 7 })

/** What a file says about itself. */
export interface SnapshotHeader {
  readonly operator: string
  readonly stateKind: string
  readonly stateVersion: number
  readonly file: 'base' | 'delta'
  readonly keyGroups: readonly [from: number, to: number]
  readonly totalKeyGroups: number
  readonly entries: number
}

/** A block as read: payloads in the shape that the format names, still tagged where `setTagged`. */
export type SnapshotBlock =
  | { readonly kind: 2 | 3; readonly runs: readonly (readonly [group: number, keys: Key[], values: unknown[]])[] }
  | { readonly kind: 4; readonly runs: readonly (readonly [group: number, keys: Key[]])[] }
  | { readonly kind: 5 | 6; readonly groups: readonly number[] }

/** A frame around a JSON payload. Throws `RangeError` when the JSON is longer than `lengthMax`, or than a string can be. */
export function frame(kind: number, entries: number, payload: unknown, lengthMax = Infinity): Buffer {
  const json = JSON.stringify(payload)
  if (json.length > lengthMax) throw new RangeError(`${json.length} characters of JSON`)
  const length = Buffer.byteLength(json)
  const bytes = Buffer.allocUnsafe(headBytes + length + crcBytes)
  bytes.write(json, headBytes)
  return sealFrame(bytes, kind, entries, 0)
}

function sealFrame(bytes: Buffer, kind: number, entries: number, start: number): Buffer {
  bytes.writeUInt8(kind, start)
  bytes.writeUInt32LE(entries, start + 1)
  bytes.writeUInt32LE(bytes.length - start - headBytes - crcBytes, start + 5)
  bytes.writeUInt32LE(crc32c(bytes, 0, bytes.length - crcBytes), bytes.length - crcBytes)
  return bytes
}

/** A whole file of block frames: its chunks, in order. */
export function assembleSnapshotFile(header: SnapshotHeader, blocks: readonly Buffer[]): Buffer[] {
  const json = Buffer.from(JSON.stringify(header))
  const start = magic.length + 1
  const head = Buffer.concat([magic, Buffer.alloc(1 + headBytes), json, Buffer.alloc(crcBytes)])
  head.writeUInt8(snapshotVersion, magic.length)
  sealFrame(head, frameKind.header, 0, start)
  const foot = Buffer.alloc(headBytes + 4 + crcBytes)
  foot.writeUInt32LE(
    crcOfChecksums([head, ...blocks].map((bytes) => bytes.readUInt32LE(bytes.length - crcBytes))),
    headBytes,
  )
  sealFrame(foot, frameKind.footer, header.entries, 0)
  return [head, ...blocks, foot]
}

function crcOfChecksums(checksums: readonly number[]): number {
  const bytes = Buffer.allocUnsafe(checksums.length * 4)
  for (let i = 0; i < checksums.length; i++) bytes.writeUInt32LE(checksums[i], i * 4)
  return crc32c(bytes)
}

/** A file under inspection; `operator` and `name` are what errors speak of. */
export interface SnapshotFileRead {
  readonly header: SnapshotHeader
  /** The blocks in order; whatever is damaged throws by the end at the latest. */
  blocks(): Generator<SnapshotBlock>
}

/**
 * Opens a file and checks its header. Throws `SNAPSHOT_DAMAGED`, and `STATE_VERSION_NEWER` for a format that this
 * version does not know; so do the blocks when they are read.
 */
export function readSnapshotFile(bytes: Buffer, operator: string, name: string): SnapshotFileRead {
  const damaged = (fault: string, cause?: unknown): PawlError =>
    new PawlError('SNAPSHOT_DAMAGED', `operator "${operator}", file ${name}: ${fault}`, { operator, file: name }, cause)
  const start = magic.length + 1
  if (bytes.length < start || !bytes.subarray(0, magic.length).equals(magic)) throw damaged('not a snapshot file')
  const head = frameAt(bytes, start, 0, damaged)
  if (head.kind !== frameKind.header) throw damaged('no header')
  const version = bytes[magic.length]
  if (version > snapshotVersion) {
    const details = { operator, file: name, version }
    throw new PawlError('STATE_VERSION_NEWER', `operator "${operator}", file ${name}: format ${version}`, details)
  }
  const header = parse(bytes, head, damaged) as SnapshotHeader
  return { header, blocks: () => readBlocks(bytes, head, header, damaged) }
}

type Damaged = (fault: string, cause?: unknown) => PawlError

interface FrameRead {
  readonly kind: number
  readonly entries: number
  readonly start: number
  readonly end: number
  readonly crc: number
}

function frameAt(bytes: Buffer, at: number, crcFrom: number, damaged: Damaged): FrameRead {
  const start = at + headBytes
  if (start + crcBytes > bytes.length) throw damaged(`cut off at byte ${bytes.length}`)
  const end = start + bytes.readUInt32LE(at + 5)
  if (end + crcBytes > bytes.length) throw damaged(`cut off at byte ${bytes.length}, or damaged at byte ${at}`)
  const crc = bytes.readUInt32LE(end)
  if (crc !== crc32c(bytes, crcFrom, end)) throw damaged(`damaged between bytes ${at} and ${end}`)
  return { kind: bytes[at], entries: bytes.readUInt32LE(at + 1), start, end, crc }
}

function parse(bytes: Buffer, { start, end }: FrameRead, damaged: Damaged): unknown {
  try {
    return JSON.parse(bytes.toString('utf8', start, end))
  } catch (cause) {
    throw damaged(`unreadable between bytes ${start} and ${end}`, cause)
  }
}

function* readBlocks(
  bytes: Buffer,
  head: FrameRead,
  header: SnapshotHeader,
  damaged: Damaged,
): Generator<SnapshotBlock> {
  const checksums = [head.crc]
  let entries = 0
  let at = head.end + crcBytes
  for (;;) {
    const read = frameAt(bytes, at, at, damaged)
    at = read.end + crcBytes
    if (read.kind === frameKind.footer) {
      if (at !== bytes.length) throw damaged(`goes on after its end at byte ${at}`)
      if (read.end - read.start !== 4 || bytes.readUInt32LE(read.start) !== crcOfChecksums(checksums))
        throw damaged('its blocks are not those that were written')
      if (read.entries !== entries || header.entries !== entries)
        throw damaged(`${entries} entries, not ${read.entries}`)
      return
    }
    checksums.push(read.crc)
    entries += read.entries
    yield block(read.kind, parse(bytes, read, damaged), damaged)
  }
}

function block(kind: number, payload: unknown, damaged: Damaged): SnapshotBlock {
  switch (kind) {
    case frameKind.set:
    case frameKind.setTagged:
    case frameKind.remove:
      return { kind, runs: payload } as SnapshotBlock
    case frameKind.drop:
    case frameKind.fired:
      return { kind, groups: payload } as SnapshotBlock
    default:
      throw damaged(`unknown block ${kind}`)
  }
}
