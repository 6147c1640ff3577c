/**
 * The marker of a lane on disk: one small file an epoch, the largest epoch counts.
 *
 * A marker file appears by `link`, which never replaces, and the older ones go only after it is durable. So the
 * marker never moves back: a promoter that lost its lease and wakes up late creates a file below the largest,
 * which changes nothing. No lock is needed, and none can be left behind by a crash. JSON, version 1.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { PawlError } from '../../model/errors.ts'
import type { Marker } from '../../model/manifest.ts'
import { makeDurableDirectory } from '../shared/durable-directory.ts'
import { sameMarker } from '../shared/markers.ts'
import {
  linkUnlessTaken,
  namesIn,
  onDisk,
  removeFile,
  syncPath,
  touchFile,
  unlessAbsent,
  writeAt,
} from './sink-files.ts'
import { epochDigits } from './sink-paths.ts'

const version = 1
const markerName = /^\d{12}$/
const readTriesMax = 100

/** Makes the directory of a lane's markers, for good. */
export function makeMarkerDirectory(directory: string): void {
  onDisk('make', directory, () => makeDurableDirectory(directory))
}

/** The marker of the lane whose directory this is; null when it has none. */
export function readMarker(directory: string): Marker | null {
  for (let tries = 1; ; tries++) {
    const newest = namesIn(directory)
      .filter((name) => markerName.test(name))
      .sort()
      .at(-1)
    if (newest === undefined) return null
    const path = join(directory, newest)
    const text = unlessAbsent('read', path, () => readFileSync(path, 'utf8'))
    if (text !== null) return parseMarker(text, path)
    if (tries === readTriesMax) throw new PawlError('SINK_UNAVAILABLE', `${path} vanishes again and again`, { path })
  }
}

/**
 * Writes the marker of an epoch unless one of that epoch is there; answers with the one that is there then.
 * Durable before it returns.
 */
export function writeMarker(directory: string, marker: Marker): Marker {
  const path = join(directory, epochDigits(marker.epoch))
  const temporary = writeTemporary(path, marker)
  const linked = linkUnlessTaken(temporary, path)
  removeFile(temporary)
  syncPath(directory)
  if (linked === 'linked') return marker
  const text = unlessAbsent('read', path, () => readFileSync(path, 'utf8'))
  return text === null ? marker : parseMarker(text, path)
}

/**
 * Replaces the marker by another (null: by none) if it is `from`; answers with the one that is there then. The name
 * of the new one may sort below: the old one goes last, and until then it counts. Of two persons who decide at the
 * same moment the later one wins.
 */
export function replaceMarker(directory: string, from: Marker | null, to: Marker | null): Marker | null {
  const found = readMarker(directory)
  if (!sameMarker(found, from)) return found
  const own = to === null ? null : epochDigits(to.epoch)
  if (to !== null && own !== null) {
    const path = join(directory, own)
    const temporary = writeTemporary(path, to)
    onDisk('replace', path, () => renameSync(temporary, path))
    syncPath(directory)
  }
  for (const name of namesIn(directory).sort()) if (name !== own) removeFile(join(directory, name))
  syncPath(directory)
  return readMarker(directory)
}

/** Notes, for good, that the staged file of an epoch is about to become visible. */
export function noteIntent(directory: string, epoch: number, staged: string): void {
  touchFile(join(directory, intentName(epoch, staged)))
  syncPath(directory)
}

/** True when `noteIntent` was called for this staged file, and the marker of its epoch may not have been written. */
export function hasIntent(directory: string, epoch: number, staged: string): boolean {
  return namesIn(directory).includes(intentName(epoch, staged))
}

/** Drops markers, intents and what crashes left, as far as a durable marker of `epoch` makes them superfluous. */
export function dropOlder(directory: string, epoch: number): void {
  for (const name of namesIn(directory)) {
    const of = Number(name.slice(0, 12))
    if (of < epoch || (of === epoch && name[12] === '+')) removeFile(join(directory, name))
  }
}

function writeTemporary(path: string, marker: Marker): string {
  const temporary = `${path}.partial-${randomBytes(12).toString('hex')}`
  writeAt(temporary, 'wx', Buffer.from(`${JSON.stringify({ version, ...marker })}\n`), 0)
  syncPath(temporary)
  return temporary
}

function parseMarker(text: string, path: string): Marker {
  try {
    const marker = JSON.parse(text)
    if (marker.version !== version) throw new Error(`version ${marker.version}`)
    return { incarnation: marker.incarnation, epoch: marker.epoch, hash: marker.hash }
  } catch (error) {
    throw new PawlError('MARKER_UNKNOWN', `${path} holds no marker`, { path }, error)
  }
}

const intentName = (epoch: number, staged: string) => `${epochDigits(epoch)}+${staged}`
