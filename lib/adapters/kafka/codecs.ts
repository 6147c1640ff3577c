/**
 * Expands compressed record batches.
 *
 * gzip and zstd are in Node; snappy and lz4 are packages beside pawl, loaded when the first such batch comes.
 * Kafka's snappy is either one raw block or, from Java producers, the framing of snappy-java; its lz4 is the LZ4
 * frame format. The expanded size is bounded, so that a damaged or hostile batch cannot take all memory.
 */
import { createRequire } from 'node:module'
import * as zlib from 'node:zlib'
import { PawlError } from '../../model/errors.ts'
import type { CodecName } from '../../model/record-decode.ts'

/** Kafka itself cannot hold a larger batch uncompressed. */
const expandedBytesMax = 2 ** 31 - 1

interface Snappy {
  uncompressSync(bytes: Buffer, options: { readonly asBuffer: true }): Buffer
}
interface Lz4 {
  decompressFrameSync(bytes: Buffer): Buffer
}

/** The records of a batch. Throws `CODEC_MISSING` naming the package, or what the library throws on damage. */
export function decompress(codec: CodecName, bytes: Buffer): Buffer {
  switch (codec) {
    case 'gzip':
      return zlib.gunzipSync(bytes, { maxOutputLength: expandedBytesMax })
    case 'zstd':
      if (zlib.zstdDecompressSync === undefined) throw new PawlError('CODEC_MISSING', 'zstd needs Node 22.15 or newer')
      return zlib.zstdDecompressSync(bytes, { maxOutputLength: expandedBytesMax })
    case 'snappy':
      return unsnap(library<Snappy>('snappy'), bytes)
    case 'lz4':
      return library<Lz4>('lz4-napi').decompressFrameSync(bytes)
  }
}

const loaded = new Map<string, unknown>()

function library<T>(name: string): T {
  if (!loaded.has(name)) {
    try {
      loaded.set(name, createRequire(import.meta.url)(name))
    } catch (error) {
      throw new PawlError('CODEC_MISSING', `package ${name}`, { package: name }, error)
    }
  }
  return loaded.get(name) as T
}

/** snappy-java's SnappyOutputStream: this magic, two versions of 4 bytes, then blocks by length. */
const snappyJavaMagic = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0])
const snappyJavaHeaderBytes = 16

function unsnap(snappy: Snappy, bytes: Buffer): Buffer {
  const asBuffer = { asBuffer: true } as const
  if (!bytes.subarray(0, snappyJavaMagic.length).equals(snappyJavaMagic)) return snappy.uncompressSync(bytes, asBuffer)
  const blocks: Buffer[] = []
  for (let at = snappyJavaHeaderBytes; at < bytes.length; ) {
    const length = bytes.readInt32BE(at)
    at += 4
    if (length < 0 || length > bytes.length - at) throw new RangeError('a snappy block exceeds its batch')
    blocks.push(snappy.uncompressSync(bytes.subarray(at, at + length), asBuffer))
    at += length
  }
  return Buffer.concat(blocks)
}
