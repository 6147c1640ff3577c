/**
 * Where the files sink keeps what, and what the names say.
 *
 *     <directory>/<sink>/<epoch>-<lane>-<incarnation>.jsonl       visible, for ever
 *     <directory>/<sink>/.staged/<epoch>-<lane>-<incarnation>-<random>   invisible
 *     <directory>/<sink>/.marker/<lane>/<epoch>                   the largest epoch is the lane's marker
 *     <directory>/<sink>/.marker/<lane>/<epoch>+<staged name>     publishing has begun
 *
 * Epochs have 12 digits, so that names sort by epoch; incarnations are cut to 8 characters.
 */
import { randomBytes } from 'node:crypto'
import { isAbsolute, join, relative, resolve } from 'node:path'
import { assert } from '../../model/assert.ts'
import type { Committable, StagedPart } from '../../model/manifest.ts'

export interface SinkPaths {
  readonly root: string
  readonly staged: string
  markerOf(lane: number): string
  stagedFile(name: string): string
  visibleFile(incarnation: string, epoch: number, lane: number): string
}

/** What identifies a staged file in its part; version 1. */
export interface FileHandle {
  readonly version: 1
  readonly file: string
  readonly sha256: string
}

const scheme = 'files:'

/**
 * The target of a sink, as committables name it: `files:/…`, or `files:./…` when it lies within the place.
 *
 * A place that is moved, copied or restored elsewhere takes its files along: an absolute target would have the
 * copy publish into the original.
 */
export function targetOf(directory: string, sink: string, within: string | null): string {
  const root = resolve(directory, sink)
  const inside = within === null ? null : relative(resolve(within), root)
  const isInside = inside !== null && !inside.startsWith('..') && !isAbsolute(inside)
  return isInside ? `${scheme}./${inside}` : `${scheme}${root}`
}

/** Paths of a target, seen from a place (null: from none). */
export function pathsOf(target: string, within: string | null): SinkPaths {
  assert(target.startsWith(scheme), `${target} is no target of a files sink`)
  const named = target.slice(scheme.length)
  assert(isAbsolute(named) || within !== null, `${target} lies within a place, and none is known`)
  const root = isAbsolute(named) ? named : resolve(within!, named)
  const staged = join(root, '.staged')
  return {
    root,
    staged,
    markerOf: (lane) => join(root, '.marker', String(lane)),
    stagedFile: (name) => join(staged, name),
    visibleFile: (incarnation, epoch, lane) =>
      join(root, `${epochDigits(epoch)}-${lane}-${shortIncarnation(incarnation)}.jsonl`),
  }
}

/** A name for a staged file that nobody else makes. */
export function newStagedName(incarnation: string, epoch: number, lane: number): string {
  return `${epochDigits(epoch)}-${lane}-${shortIncarnation(incarnation)}-${randomBytes(12).toString('hex')}`
}

/** True for staged files of a lane that no later epoch can need: those of `epoch` and before. */
export function isStagedThrough(name: string, incarnation: string, epoch: number, lane: number): boolean {
  const [digits, of, life] = name.split('-')
  return Number(digits) <= epoch && of === String(lane) && life === shortIncarnation(incarnation)
}

/** An epoch as names hold it: 12 digits. */
export function epochDigits(epoch: number): string {
  return String(epoch).padStart(12, '0')
}

/** The staged file of a part. */
export function handleOf(part: StagedPart): FileHandle {
  const handle = part.handle as FileHandle
  assert(handle?.version === 1, `staged file handle ${JSON.stringify(part.handle)} is not of version 1`)
  return handle
}

/** The one part that `assemble` left of a lane. */
export function onlyPart(committable: Committable): StagedPart {
  const [part, ...others] = committable.parts
  assert(part !== undefined && others.length === 0, `committable of ${committable.parts.length} parts`)
  return part
}

const shortIncarnation = (incarnation: string) => incarnation.replace(/[^A-Za-z0-9]/g, '').slice(0, 8)
