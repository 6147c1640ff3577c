/**
 * The files of a lake table in a directory.
 *
 * Files are created as the store creates objects: written beside, synced, and linked to a name that is never replaced.
 * What is half written lies in `.pawl-partial`, which readers of tables and their clean-ups pass over as hidden.
 */
import { closeSync, fsyncSync, openSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, isAbsolute, join, relative, resolve } from 'node:path'
import { diskError, errnoOf } from '../shared/disk-errors.ts'
import { makeDurableDirectory } from '../shared/durable-directory.ts'
import type { TableFiles } from '../shared/table-files.ts'
import { Directories } from './directories.ts'
import { createFile } from './durable-create.ts'
import { sweepTemporaryFiles, temporaryNames } from './temporary-files.ts'

interface OpenTable {
  readonly directories: Directories
  readonly nextTemporary: () => string
}

/** The table in `directory`, which is made with its first file. */
export function diskTableFiles(directory: string): TableFiles {
  const root = resolve(directory)
  let opened: OpenTable | null = null
  const open = () => {
    opened ??= openTable(root)
    return opened
  }
  const onFile = async <T>(deed: string, name: string, act: (path: string) => T | Promise<T>): Promise<T> => {
    const path = join(root, name)
    try {
      return await act(path)
    } catch (error) {
      throw diskError(error, deed, path, 'SINK_UNAVAILABLE')
    }
  }
  return {
    location: root,
    create: (name, bytes) =>
      onFile('create', name, (path) => createFile(open().directories, path, open().nextTemporary(), [bytes])),
    replace: (name, bytes) => onFile('write', name, (path) => replaceFile(path, open().nextTemporary(), bytes)),
    read: (name) => onFile('read', name, (path) => unlessAbsent(() => readFileSync(path), null)),
    list: (folder, after) =>
      onFile('list', folder, (path) =>
        unlessAbsent(() => readdirSync(path), [])
          .filter((name) => name > after)
          .sort(),
      ),
    async close() {
      opened?.directories.close()
      opened = null
    },
  }
}

/**
 * A directory as committables name it: `./…` when it lies within the place, so that a place that is moved or restored
 * elsewhere takes its tables along.
 */
export function placedDirectory(directory: string, within: string | null): string {
  const root = resolve(directory)
  const inside = within === null ? null : relative(resolve(within), root)
  return inside === null || inside.startsWith('..') || isAbsolute(inside) ? root : `./${inside}`
}

/** The directory that `placedDirectory` named, seen from a place. */
export function directoryAt(placed: string, within: string | null): string {
  return within === null ? resolve(placed) : resolve(within, placed)
}

function openTable(root: string): OpenTable {
  const partial = join(root, '.pawl-partial')
  makeDurableDirectory(partial)
  sweepTemporaryFiles(partial)
  return { directories: new Directories(root), nextTemporary: temporaryNames(partial) }
}

function replaceFile(path: string, temporary: string, bytes: Uint8Array): void {
  writeFileSync(temporary, bytes, { flush: true })
  renameSync(temporary, path)
  const fd = openSync(dirname(path), 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

function unlessAbsent<T>(act: () => T, absent: T): T {
  try {
    return act()
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errnoOf(error))) return absent
    throw error
  }
}
