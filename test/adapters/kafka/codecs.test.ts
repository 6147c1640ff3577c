import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import fc from 'fast-check'
import { compressFrameSync } from 'lz4-napi'
import { compressSync } from 'snappy'
import { expect, test } from 'vitest'
import { decompress } from '../../../lib/adapters/kafka/codecs.ts'
import { decodeBatches } from '../../../lib/model/record-decode.ts'
import { compressed, encoded, rowsOf } from '../../model/record-batches.ts'

/** As snappy-java frames it: magic, two versions, blocks by length. */
function snappyJava(bytes: Buffer, blockBytes: number): Buffer {
  const parts: Buffer[] = [Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0, 0, 0, 0, 1, 0, 0, 0, 1])]
  for (let at = 0; at < bytes.length; at += blockBytes) {
    const block = compressSync(bytes.subarray(at, at + blockBytes))
    const length = Buffer.alloc(4)
    length.writeInt32BE(block.length)
    parts.push(length, block)
  }
  return Buffer.concat(parts)
}

const ways = [
  ['gzip', gzipSync],
  ['snappy', compressSync],
  ['snappy', (bytes: Buffer) => snappyJava(bytes, 7)],
  ['lz4', compressFrameSync],
  ['zstd', zstdCompressSync],
] as const

test.each(ways)('expands %s (%#) to what went in', (codec, compress) => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 500 }), (bytes) => {
      expect(decompress(codec, compress(Buffer.from(bytes)) as Buffer)).toEqual(Buffer.from(bytes))
    }),
    { numRuns: 50 },
  )
})

test('calls bytes that no codec made a damaged batch', () => {
  const batch = encoded([{ timestampMs: 0, key: null, value: 'x' }], { baseOffset: 5n })
  const cut = (bytes: Buffer) => snappyJava(bytes, 4).subarray(0, -3)
  for (const [codec, compress] of [
    ...[1, 2, 3, 4].map((codec) => [codec, (b: Buffer) => b] as const),
    [2, cut] as const,
  ]) {
    const bytes = compressed(batch, codec, compress)
    const read = () => rowsOf(decodeBatches(bytes, { partition: 3, start: 0n, end: 9n, decompress }))
    expect(read).toThrow(/BATCH_DAMAGED.*partition 3 at offset 5/)
  }
})

test('names the package that is missing', () => {
  const program = fileURLToPath(new URL('../../../lib/adapters/kafka/codecs.ts', import.meta.url))
  const script = `
    import { registerHooks } from 'node:module'
    registerHooks({ resolve(name, context, next) {
      if (name === 'snappy' || name === 'lz4-napi') throw new Error('not found')
      return next(name, context)
    } })
    const { decompress } = await import(${JSON.stringify(program)})
    for (const codec of ['snappy', 'lz4']) try { decompress(codec, Buffer.alloc(1)) } catch (e) { console.log(e.code, e.details.package) }`
  const out = execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
  expect(out).toBe('CODEC_MISSING snappy\nCODEC_MISSING lz4-napi\n')
})

test('importing pawl/kafka loads no library', () => {
  const program = fileURLToPath(new URL('../../../lib/kafka.ts', import.meta.url))
  const script = `
    import { Module } from 'node:module'
    const { kafka } = await import(${JSON.stringify(program)})
    kafka({ brokers: 'a:1', sasl: { mechanism: 'aws-iam', region: 'r' } })
    console.log(Object.keys(Module._cache).filter((name) => name.includes('node_modules')).length)`
  expect(execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })).toBe('0\n')
})
