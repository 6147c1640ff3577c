/**
 * A zip archive with one file, as a function's code is sent.
 *
 * Deflated, no directory entries; format of PKWARE's APPNOTE as far as one file needs it.
 */
import { crc32, deflateRawSync } from 'node:zlib'

/** The archive. */
export function zipOf(name: string, content: Uint8Array): Buffer {
  const packed = deflateRawSync(content)
  const fileName = Buffer.from(name)
  const shared = Buffer.alloc(26)
  shared.writeUInt16LE(20, 0)
  shared.writeUInt16LE(8, 4)
  shared.writeUInt32LE(crc32(content), 10)
  shared.writeUInt32LE(packed.length, 14)
  shared.writeUInt32LE(content.length, 18)
  shared.writeUInt16LE(fileName.length, 22)
  const local = Buffer.concat([Buffer.from('PK\x03\x04'), shared, fileName, packed])
  const rest = Buffer.alloc(14)
  // Permissions of a Unix file: rw-r--r--.
  rest.writeUInt32LE(0o100644 * 0x10000, 6)
  const central = Buffer.concat([Buffer.from('PK\x01\x02'), Buffer.from([20, 3]), shared, rest, fileName])
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 'latin1')
  end.writeUInt16LE(1, 8)
  end.writeUInt16LE(1, 10)
  end.writeUInt32LE(central.length, 12)
  end.writeUInt32LE(local.length, 16)
  return Buffer.concat([local, central, end])
}
