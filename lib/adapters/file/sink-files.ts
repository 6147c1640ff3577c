/**
 * The small deeds on files that the files sink is made of, each durable before it returns.
 *
 * Errors of the file system become `DISK_FULL` or `SINK_UNAVAILABLE` here; only an absent file is an answer.
 */
import { createHash } from 'node:crypto'
import {
  closeSync,
  fsyncSync,
  linkSync,
  openSync,
  readdirSync,
  readSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { diskError, errnoOf } from '../shared/disk-errors.ts'

const pieceBytes = 1024 * 1024

/** Runs `deed`, translating what the file system throws. */
export function onDisk<T>(what: string, path: string, deed: () => T): T {
  try {
    return deed()
  } catch (error) {
    throw diskError(error, what, path, 'SINK_UNAVAILABLE')
  }
}

/** Runs `deed`; null when the file that it is about is not there. */
export function unlessAbsent<T>(what: string, path: string, deed: () => T): T | null {
  return onDisk(what, path, () => {
    try {
      return deed()
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return null
      throw error
    }
  })
}

/** Bytes of a file; null when there is none. */
export function fileBytes(path: string): number | null {
  return unlessAbsent('look at', path, () => statSync(path).size)
}

/** Names in a directory; none when it is not there. */
export function namesIn(directory: string): string[] {
  return unlessAbsent('list', directory, () => readdirSync(directory)) ?? []
}

/** Removes a file; an absent one is no error. */
export function removeFile(path: string): void {
  unlessAbsent('remove', path, () => unlinkSync(path))
}

/** Makes what was written to a file, or the entries of a directory, survive a power failure. */
export function syncPath(path: string): void {
  onDisk('sync', path, () => {
    const fd = openSync(path, 'r')
    try {
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
  })
}

/** Writes `bytes` at `position`; `wx` first, so that a file of another writer is never touched. */
export function writeAt(path: string, flags: 'wx' | 'r+', bytes: Uint8Array, position: number): void {
  onDisk('write', path, () => {
    const fd = openSync(path, flags)
    try {
      for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done, bytes.length - done, position + done)
    } finally {
      closeSync(fd)
    }
  })
}

/** Makes an empty file unless there is one. */
export function touchFile(path: string): void {
  onDisk('make', path, () => closeSync(openSync(path, 'a')))
}

/** Gives a synced file a second name unless that is taken. */
export function linkUnlessTaken(from: string, to: string): 'linked' | 'taken' {
  return onDisk('link', to, () => {
    try {
      linkSync(from, to)
      return 'linked'
    } catch (error) {
      if (errnoOf(error) === 'EEXIST') return 'taken'
      throw error
    }
  })
}

/** Calls `take` with each piece of a file; false when there is no such file. The piece is used again. */
export function readPieces(path: string, take: (piece: Buffer) => void): boolean {
  const read = unlessAbsent('read', path, () => {
    const fd = openSync(path, 'r')
    try {
      const piece = Buffer.allocUnsafe(pieceBytes)
      for (let bytes = readSync(fd, piece); bytes > 0; bytes = readSync(fd, piece)) take(piece.subarray(0, bytes))
      return true
    } finally {
      closeSync(fd)
    }
  })
  return read ?? false
}

/** SHA-256 of a file in hex; null when there is none. */
export function fileSha256(path: string): string | null {
  const hash = createHash('sha256')
  return readPieces(path, (piece) => hash.update(piece)) ? hash.digest('hex') : null
}
