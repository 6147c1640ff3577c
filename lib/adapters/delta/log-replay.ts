/**
 * Reading a log from its newest checkpoint on: actions of chosen kinds, in order.
 *
 * The listing decides, never the hint alone: a hint may be old, and where entries were cleaned up the name of a missing
 * one must not be taken for the next that is free. A hole is looked at again, since the folder may have been cleaned
 * meanwhile, and is then `DELTA_LOG_DAMAGED`.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { PawlError } from '../../model/errors.ts'
import { sha256Of } from '../shared/staged-objects.ts'
import type { TableFiles } from '../shared/table-files.ts'
import {
  type Action,
  type ActionKind,
  entryName,
  lastCheckpointName,
  logFolder,
  parseEntry,
  versionDigits,
} from './actions.ts'
import { readCheckpoint } from './checkpoint-read.ts'
import { firstHole, type LogListing, parseListing } from './log-listing.ts'

/** A log, read up to its newest version. */
export interface Replay {
  /** -1: there is no log. */
  readonly version: number
  /** Version of the checkpoint that it began with; -1 without. */
  readonly checkpoint: number
  /** Of the entry of `version`; empty when only a checkpoint of it is left. */
  readonly entrySha256: string
  readonly actions: readonly Action[]
}

const entriesAtOnce = 16
const lookingsMax = 5

/** Reads the actions of these kinds. Throws `DELTA_LOG_DAMAGED`, `PACKAGE_MISSING` and what the files throw. */
export async function replay(files: TableFiles, kinds: ReadonlySet<ActionKind>): Promise<Replay> {
  for (let lookings = 1; ; lookings++) {
    const listing = await listed(files)
    const { checkpoint, newest } = listing
    const from = checkpoint?.version ?? -1
    const hole = firstHole(listing, from)
    if (hole === null) {
      const first = checkpoint === null ? [] : await readCheckpoint(files, checkpoint, kinds)
      const read = first && (await readEntries(files, from, newest, kinds))
      if (read)
        return { version: Math.max(from, newest), checkpoint: from, ...read, actions: [...first, ...read.actions] }
    }
    if (lookings >= lookingsMax) {
      const fault =
        hole === null ? 'files of it vanish again and again' : `entry ${hole} is missing, ${newest} is there`
      throw new PawlError('DELTA_LOG_DAMAGED', `${files.location}: ${fault}`, { table: files.location, version: hole })
    }
    await pause(50 * lookings)
  }
}

async function listed(files: TableFiles): Promise<LogListing> {
  const hint = await hintedVersion(files)
  const listing = parseListing(await files.list(logFolder, hint === null ? '' : versionDigits(hint)))
  return hint === null || listing.checkpoint !== null ? listing : parseListing(await files.list(logFolder, ''))
}

/** Where a checkpoint is said to be; null when nothing or nonsense is said. */
export async function hintedVersion(files: TableFiles): Promise<number | null> {
  const bytes = await files.read(lastCheckpointName)
  try {
    const { version } = JSON.parse(bytes?.toString() ?? '{}') as { readonly version?: unknown }
    return Number.isSafeInteger(version) ? (version as number) : null
  } catch {
    return null
  }
}

/** Entries `(from, to]`, with the hash of the last, or of `to` itself when there are none; null when one vanished. */
export async function readEntries(
  files: TableFiles,
  from: number,
  to: number,
  kinds: ReadonlySet<ActionKind>,
): Promise<{ readonly entrySha256: string; readonly actions: Action[] } | null> {
  const actions: Action[] = []
  let last: Buffer | null = null
  for (let at = from + 1; at <= to; at += entriesAtOnce) {
    const count = Math.min(entriesAtOnce, to - at + 1)
    const read = await Promise.all(Array.from({ length: count }, (_, i) => files.read(entryName(at + i))))
    for (const [i, bytes] of read.entries()) {
      if (bytes === null) return null
      actions.push(...parsed(bytes, kinds, files, at + i))
      last = bytes
    }
  }
  if (last === null && from >= 0) last = await files.read(entryName(from))
  return { entrySha256: last === null ? '' : sha256Of([last]), actions }
}

function parsed(bytes: Buffer, kinds: ReadonlySet<ActionKind>, files: TableFiles, version: number): Action[] {
  try {
    return parseEntry(bytes, kinds)
  } catch (error) {
    const fault = `${files.location}: entry ${version} is not readable`
    throw new PawlError('DELTA_LOG_DAMAGED', fault, { table: files.location, version }, error)
  }
}
