/**
 * Creates a file at once or not at all, for good, unless its name is taken.
 *
 * The bytes go to a temporary file, are fsynced, and get their final name by `link`, which never replaces; then
 * the directory is fsynced. Whenever process or power die, the name shows nothing or the whole object.
 */
import { closeSync, fdatasync, fstatSync, linkSync, lstatSync, openSync, unlinkSync, writeSync, writev } from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { PawlError } from '../../model/errors.ts'
import { diskError, errnoOf } from '../shared/disk-errors.ts'
import type { Directories, DurableDirectory } from './directories.ts'

const fdatasyncAsync = promisify(fdatasync)
const writevAsync = promisify(writev)

/** Up to here a write on this thread is cheaper than a thread of the pool. */
const inlineBytesMax = 128 * 1024
/** How often a directory may vanish under a create before something is wrong. */
const linkTriesMax = 100

/**
 * Creates `path` from `chunks` by way of `temporary`, a path of the same file system that nobody else uses.
 *
 * Throws errors of `node:fs`; `EISDIR` and `ENOTDIR` when a name lies below the name of another object.
 */
export async function createFile(
  directories: Directories,
  path: string,
  temporary: string,
  chunks: readonly Uint8Array[],
): Promise<'created' | 'exists'> {
  let inode: bigint | null = null
  try {
    if (!isTaken(path)) inode = await writeTemporary(temporary, chunks)
    return await linkDurably(directories, path, temporary, inode)
  } finally {
    if (inode !== null) removeIfThere(temporary)
  }
}

function isTaken(path: string): boolean {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (stats?.isDirectory()) throw Object.assign(new Error(`EISDIR: ${path}`), { code: 'EISDIR' })
  return stats !== undefined
}

/** Writes and syncs the whole object under its temporary name; answers with its inode. */
async function writeTemporary(temporary: string, chunks: readonly Uint8Array[]): Promise<bigint> {
  const fd = openSync(temporary, 'wx', 0o644)
  try {
    await writeChunks(fd, chunks)
    await fdatasyncAsync(fd)
    return fstatSync(fd, { bigint: true }).ino
  } catch (error) {
    removeIfThere(temporary)
    throw error
  } finally {
    closeSync(fd)
  }
}

async function writeChunks(fd: number, chunks: readonly Uint8Array[]): Promise<void> {
  let left = chunks.filter((chunk) => chunk.length > 0)
  const bytes = left.reduce((sum, chunk) => sum + chunk.length, 0)
  if (bytes <= inlineBytesMax && left.length > 1) left = [Buffer.concat(left)]
  while (left.length > 0) {
    const written = bytes <= inlineBytesMax ? writeSync(fd, left[0]!) : (await writevAsync(fd, left)).bytesWritten
    left = withoutFirst(left, written)
  }
}

/** The rest of `chunks` after the first `bytes` bytes: a write may be short. */
function withoutFirst(chunks: readonly Uint8Array[], bytes: number): Uint8Array[] {
  let index = 0
  let skip = bytes
  while (index < chunks.length && skip >= chunks[index]!.length) skip -= chunks[index++]!.length
  const rest = chunks.slice(index)
  if (skip > 0) rest[0] = rest[0]!.subarray(skip)
  return rest
}

/**
 * Links the temporary file (`inode` null: there is none, the name was taken) and makes the entry durable.
 *
 * Also an `exists` is answered only once the other's entry is durable: the caller may commit on it.
 */
async function linkDurably(
  directories: Directories,
  path: string,
  temporary: string,
  inode: bigint | null,
): Promise<'created' | 'exists'> {
  for (let tries = 1; ; tries++) {
    const directory = await directories.open(dirname(path))
    try {
      const result = inode === null ? 'exists' : linkUnlessTaken(directory, temporary, path, inode)
      if (result !== 'vanished') {
        await syncOrUnlink(directory, result === 'created' ? path : null)
        return result
      }
      directories.forget(directory.path)
    } finally {
      directory.release()
    }
    if (tries === linkTriesMax) throw new PawlError('STORE_UNAVAILABLE', `${dirname(path)} vanishes again and again`)
  }
}

/** `vanished`: the directory was removed, perhaps made again by another; the link must be tried or checked again. */
function linkUnlessTaken(
  directory: DurableDirectory,
  temporary: string,
  path: string,
  inode: bigint,
): 'created' | 'exists' | 'vanished' {
  let result: 'created' | 'exists' = 'created'
  try {
    linkSync(temporary, path)
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' && lstatSync(temporary, { throwIfNoEntry: false }) !== undefined) return 'vanished'
    if (errnoOf(error) !== 'EEXIST') throw error
    const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false })
    if (stats === undefined) return 'vanished'
    if (stats.isDirectory()) throw Object.assign(new Error(`EISDIR: ${path}`), { code: 'EISDIR', cause: error })
    result = stats.ino === inode ? 'created' : 'exists'
  }
  return directory.isAlive() ? result : 'vanished'
}

/** A link that cannot be made durable is taken back: its `create` never returned, so nobody relies on it. */
async function syncOrUnlink(directory: DurableDirectory, created: string | null): Promise<void> {
  try {
    await directory.sync()
  } catch (error) {
    if (created !== null) removeIfThere(created)
    throw error
  }
}

function removeIfThere(path: string): void {
  try {
    unlinkSync(path)
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw diskError(error, 'remove', path)
  }
}
