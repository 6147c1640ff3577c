/**
 * How a lane of one epoch becomes visible as a file: once, whatever dies when, and whatever readers do with it.
 *
 * The marker is `prev` (else refused) → a durable intent names the staged file → rename staged to visible → the
 * durable marker of the epoch; then older markers, the intent and stale staging go.
 *
 * A link and an unlink would leave a moment with both names: when the process dies there and a reader takes the
 * visible file away, the retry would publish again. A rename has no such moment, but could replace. The visible
 * name carries incarnation, epoch and lane, so a file of that name is a copy of the staged one or `FILE_FOREIGN`.
 * A staged file that vanished with its intent was published, even if a reader has taken it; one without intent
 * never was: the sink was restored without it (`SINK_ROLLED_BACK`). Two promoters at once: one rename succeeds,
 * the other finds the intent; both write the same marker, and markers never move back.
 */
import { renameSync } from 'node:fs'
import { PawlError } from '../../model/errors.ts'
import type { CommitPermit, Committable } from '../../model/manifest.ts'
import type { PromoteResult } from '../../ports/sink.ts'
import { markerAfter, sameMarker } from '../shared/markers.ts'
import { dropOlder, hasIntent, noteIntent, readMarker, writeMarker } from './lane-marker.ts'
import { fileBytes, fileSha256, namesIn, removeFile, syncPath, unlessAbsent } from './sink-files.ts'
import { handleOf, isStagedThrough, onlyPart, type SinkPaths } from './sink-paths.ts'
import { stagedFault } from './stage-files.ts'

/** Promotes one lane into `paths`, those of the target that the committable names. */
export function publish(
  paths: SinkPaths,
  committable: Committable,
  permit: CommitPermit,
  healing: boolean,
): PromoteResult {
  const directory = paths.markerOf(committable.lane)
  const isMine = () => sameMarker(readMarker(directory), committable.prev)
  const refused = (): PromoteResult => ({ result: 'refused', found: readMarker(directory) })
  if (!isMine()) return refused()
  if (!moveIfStaged(paths, committable, permit) && !wasPublished(paths, committable, permit, healing)) {
    if (!isMine()) return refused()
    const path = paths.stagedFile(handleOf(onlyPart(committable)).file)
    const details = { sink: committable.sink, lane: committable.lane, epoch: committable.epoch, path }
    throw new PawlError('SINK_ROLLED_BACK', `${path} of epoch ${committable.epoch} is gone unpublished`, details)
  }
  const marker = markerAfter(committable, permit)
  if (!sameMarker(writeMarker(directory, marker), marker)) return refused()
  sweep(paths, committable, permit)
  return { result: 'promoted' }
}

/** False when the staged file is not there. Throws `OBJECT_DAMAGED`, `FILE_FOREIGN`. */
function moveIfStaged(paths: SinkPaths, committable: Committable, permit: CommitPermit): boolean {
  const { epoch, lane } = committable
  const part = onlyPart(committable)
  const { file, sha256 } = handleOf(part)
  const staged = paths.stagedFile(file)
  const visible = paths.visibleFile(permit.incarnation, epoch, lane)
  const found = fileSha256(staged)
  if (found === null) return false
  if (found !== sha256) throw stagedFault(paths, part, fileBytes(staged))
  if (fileBytes(visible) !== null) {
    assertCopy(visible, sha256, fileBytes(staged) === null)
    removeFile(staged)
  } else {
    noteIntent(paths.markerOf(lane), epoch, file)
    if (unlessAbsent('publish', visible, () => renameSync(staged, visible) ?? true) === null) return false
  }
  syncPath(paths.root)
  syncPath(paths.staged)
  return true
}

/** True when the staged file, which is not there, was published by an earlier try or another promoter. */
function wasPublished(paths: SinkPaths, committable: Committable, permit: CommitPermit, healing: boolean): boolean {
  const { epoch, lane } = committable
  const { file, sha256 } = handleOf(onlyPart(committable))
  const visible = paths.visibleFile(permit.incarnation, epoch, lane)
  // A restored sink may hold the intent but lack both files: then only the file itself convinces.
  if (!healing && hasIntent(paths.markerOf(lane), epoch, file)) return true
  if (fileBytes(visible) === null) return false
  assertCopy(visible, sha256, false)
  return true
}

/** Throws `FILE_FOREIGN` unless the visible file has the staged content, or another promoter just made it. */
function assertCopy(visible: string, sha256: string, justMoved: boolean): void {
  const found = fileSha256(visible)
  if (found === sha256 || found === null || justMoved) return
  throw new PawlError('FILE_FOREIGN', visible, { path: visible, sha256: found, sha256Expected: sha256 })
}

/** Staged files of this lane up to the epoch: inputs of assembly and of attempts that failed. */
function sweep(paths: SinkPaths, { lane, epoch }: Committable, permit: CommitPermit): void {
  dropOlder(paths.markerOf(lane), epoch)
  for (const name of namesIn(paths.staged)) {
    if (isStagedThrough(name, permit.incarnation, epoch, lane)) removeFile(paths.stagedFile(name))
  }
}
