/**
 * Names of temporary files that say whose they are, and the sweeping of those whose owner is gone.
 *
 * A name carries the place of its process: a file is swept when that process is certainly gone, or when nobody
 * can tell and the file is older than an hour. A temporary file is never linked twice, so sweeping loses nothing.
 */
import { randomBytes } from 'node:crypto'
import { lstatSync, readdirSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { errnoOf } from '../shared/disk-errors.ts'
import { placeStatus, processPlace } from '../shared/process-place.ts'

const unknownOwnerMs = 60 * 60_000

/** Makes paths in `directory` that nobody else makes, in this or another process. */
export function temporaryNames(directory: string): () => string {
  const stem = `${processPlace().replaceAll(':', '+')}~${randomBytes(8).toString('hex')}`
  let count = 0
  return () => join(directory, `${stem}~${count++}`)
}

/** Deletes the temporary files in `directory` that nobody will link any more. */
export function sweepTemporaryFiles(directory: string): void {
  for (const name of readdirSync(directory)) {
    const path = join(directory, name)
    try {
      if (isAbandoned(name, path)) unlinkSync(path)
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw error
    }
  }
}

function isAbandoned(name: string, path: string): boolean {
  const status = placeStatus(name.slice(0, name.indexOf('~')).replaceAll('+', ':'))
  return status === 'gone' || (status === 'unknown' && Date.now() - lstatSync(path).mtimeMs > unknownOwnerMs)
}
