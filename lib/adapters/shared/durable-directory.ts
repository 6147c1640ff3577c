/**
 * Makes a directory that is still there after a power failure, for the adapters that keep files.
 *
 * A new directory is durable once its parent was fsynced, and so on upwards; whoever else made one of them may
 * not have done so. A parent that this user may not open is left alone: then this user did not make the child.
 */
import { closeSync, fsyncSync, mkdirSync, openSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { errnoOf } from './disk-errors.ts'

/** Makes `path` and what is missing above it, and syncs every directory on the way up. Throws errors of `node:fs`. */
export function makeDurableDirectory(path: string): void {
  mkdirSync(path, { recursive: true })
  for (let at = resolve(path); at !== dirname(at); at = dirname(at)) syncDirectory(dirname(at))
}

function syncDirectory(path: string): void {
  try {
    const fd = openSync(path, 'r')
    try {
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
  } catch (error) {
    if (!['EACCES', 'EPERM', 'EINVAL'].includes(errnoOf(error))) throw error
  }
}
