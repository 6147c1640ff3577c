/**
 * Looks into files sinks for `pawl verify`: their markers, and whether the visible files are what was committed.
 *
 * A target names its directory, by itself or within that of the place, so no pipeline file is needed. A visible file that is gone is no fault (readers may
 * take files away), a changed one is; what waits to be promoted must be there.
 */
import { readMarker } from '../adapters/file/lane-marker.ts'
import { fileSha256 } from '../adapters/file/sink-files.ts'
import { handleOf, pathsOf } from '../adapters/file/sink-paths.ts'
import type { ChainFault, CommittedOutput } from '../epoch/verify.ts'
import type { RegisteredLane } from '../model/head.ts'
import type { Marker } from '../model/manifest.ts'

/** The marker of a lane of a files sink; `unreadable` for any other target. */
export function readFileMarker(directory: string, { target, lane }: RegisteredLane): Marker | null | 'unreadable' {
  return isFiles(target) ? readMarker(pathsOf(target, directory).markerOf(lane)) : 'unreadable'
}

/** What is wrong with the files of one lane and epoch. */
export function readFileOutput(
  directory: string,
  { committable, incarnation, promoted }: CommittedOutput,
): ChainFault[] {
  const { target, epoch, lane, parts } = committable
  if (!isFiles(target)) return []
  const paths = pathsOf(target, directory)
  const visible = paths.visibleFile(incarnation, epoch, lane)
  return parts.flatMap((part): ChainFault[] => {
    const { file, sha256 } = handleOf(part)
    const shown = fileSha256(visible)
    if (shown !== null) return shown === sha256 ? [] : [{ code: 'FILE_CHANGED', epoch, fault: visible }]
    if (promoted) return []
    const staged = fileSha256(paths.stagedFile(file))
    if (staged === sha256) return []
    return [{ code: staged === null ? 'OBJECT_MISSING' : 'OBJECT_DAMAGED', epoch, fault: paths.stagedFile(file) }]
  })
}

function isFiles(target: string): boolean {
  return target.startsWith('files:')
}
