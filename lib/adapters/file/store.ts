/**
 * A store in a directory.
 *
 * `create` writes a temporary file in `+partial/`, fsyncs it, and links it to its final name: a link never
 * replaces and never shows half an object, whenever process or power die. A create costs two fsyncs: one of the
 * file, one of its directory, which creates that run at the same time share; the first one in a new directory
 * one more for each level made. Deletes are not fsynced: what comes back after a power failure is garbage again.
 * `+` is outside the alphabet of names, so temporary files are never listed; those of dead processes are swept
 * on open. ext4 searches past inodes that were freed within the last 5 s, so a create right after a large
 * delete takes longer. Any number of processes of one machine may use one directory.
 */
import {
  closeSync,
  type Dirent,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  read as readFile,
  readSync,
  rmdirSync,
  unlinkSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { PawlError } from '../../model/errors.ts'
import type { Store, StoredObject } from '../../ports/store.ts'
import { diskError, errnoOf } from '../shared/disk-errors.ts'
import { makeDurableDirectory } from '../shared/durable-directory.ts'
import { lend } from '../shared/lent-memory.ts'
import { assertByteRange, assertObjectName, assertObjectPrefix } from '../shared/object-names.ts'
import { Directories } from './directories.ts'
import { createFile } from './durable-create.ts'
import { sweepTemporaryFiles, temporaryNames } from './temporary-files.ts'

const readAsync = promisify(readFile)

/** Up to here a call on this thread is cheaper than a thread of the pool. */
const inlineBytesMax = 128 * 1024
/** Deletes between two turns of the event loop. */
const deletesPerTurn = 256
const partForm = /^[A-Za-z0-9._=-]+$/

/** The store in `directory`, which is made if it is not there. */
export function fileStore(directory: string): Store {
  const root = resolve(directory)
  const partial = join(root, '+partial')
  const directories = openRoot(root, partial)
  const nextTemporary = temporaryNames(partial)

  return {
    async create(name, chunks) {
      assertObjectName(name)
      const path = join(root, name)
      try {
        return await createFile(directories, path, nextTemporary(), chunks)
      } catch (error) {
        throw createError(error, name, path)
      }
    },
    async read(name, range) {
      assertObjectName(name)
      if (range !== undefined) assertByteRange(range)
      const path = join(root, name)
      try {
        return await readRange(path, range)
      } catch (error) {
        if (isAbsent(error)) return null
        throw diskError(error, 'read', path)
      }
    },
    list: (prefix) => listFiles(root, prefix),
    async delete(names) {
      for (const name of names) assertObjectName(name)
      await deleteFiles(root, directories, names)
    },
    async close() {
      directories.close()
    },
  }
}

function openRoot(root: string, partial: string): Directories {
  try {
    makeDurableDirectory(partial)
    sweepTemporaryFiles(partial)
    return new Directories(root)
  } catch (error) {
    throw diskError(error, 'open the store', root)
  }
}

const isAbsent = (error: unknown) => ['ENOENT', 'ENOTDIR', 'EISDIR'].includes(errnoOf(error))

function createError(error: unknown, name: string, path: string): PawlError {
  const errno = errnoOf(error)
  if (errno === 'ENOTDIR' || errno === 'EISDIR') {
    return new PawlError(
      'ASSERTION_FAILED',
      `${name} lies below another object, or others lie below it`,
      { name },
      error,
    )
  }
  return diskError(error, 'create', path)
}

async function readRange(path: string, range: { start: number; end: number } | undefined): Promise<Buffer | null> {
  const fd = openSync(path, 'r')
  try {
    const stats = fstatSync(fd)
    if (!stats.isFile()) return null
    const start = Math.min(range?.start ?? 0, stats.size)
    const buffer = lend(Math.min(range?.end ?? stats.size, stats.size) - start)
    for (let at = 0; at < buffer.length; ) {
      const length = buffer.length - at
      const inline = length <= inlineBytesMax
      const bytes = inline
        ? readSync(fd, buffer, at, length, start + at)
        : (await readAsync(fd, buffer, at, length, start + at)).bytesRead
      if (bytes === 0) throw new PawlError('STORE_UNAVAILABLE', `${path} ended early`, { path })
      at += bytes
    }
    return buffer
  } finally {
    closeSync(fd)
  }
}

/** Objects below `prefix` in name order: a directory sorts as its name with the slash, since `-` and `.` precede it. */
async function* listFiles(root: string, prefix: string): AsyncGenerator<StoredObject> {
  assertObjectPrefix(prefix)
  const within = prefix.slice(0, prefix.lastIndexOf('/') + 1)
  yield* listDirectory(root, within, prefix)
}

function* listDirectory(root: string, within: string, prefix: string): Generator<StoredObject> {
  const entries = readEntries(join(root, within)).filter((entry) => partForm.test(entry.name))
  const names = entries.map((entry) => (entry.isDirectory() ? `${within}${entry.name}/` : `${within}${entry.name}`))
  for (const name of names.sort()) {
    if (!name.startsWith(prefix)) continue
    if (name.endsWith('/')) yield* listDirectory(root, name, prefix)
    else {
      const stats = lstatSync(join(root, name), { throwIfNoEntry: false })
      if (stats?.isFile()) yield { name, bytes: stats.size }
    }
  }
}

function readEntries(path: string): Dirent[] {
  try {
    return readdirSync(path, { withFileTypes: true })
  } catch (error) {
    if (isAbsent(error)) return []
    throw diskError(error, 'list', path)
  }
}

async function deleteFiles(root: string, directories: Directories, names: readonly string[]): Promise<void> {
  const parents = new Set<string>()
  for (const [index, name] of names.entries()) {
    const path = join(root, name)
    try {
      unlinkSync(path)
    } catch (error) {
      if (!isAbsent(error) && !lstatSync(path, { throwIfNoEntry: false })?.isDirectory()) {
        throw diskError(error, 'delete', path)
      }
    }
    parents.add(dirname(path))
    if (index % deletesPerTurn === deletesPerTurn - 1) await new Promise((next) => setImmediate(next))
  }
  for (const parent of parents) removeEmpty(root, directories, parent)
}

/** Removes a directory without entries and then, in turn, those above it. Creates that meet this try again. */
function removeEmpty(root: string, directories: Directories, path: string): void {
  for (let empty = path; empty !== root; empty = dirname(empty)) {
    try {
      rmdirSync(empty)
    } catch (error) {
      if (isAbsent(error)) continue
      return
    }
    directories.forget(empty)
  }
}
