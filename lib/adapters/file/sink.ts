/**
 * Files as a sink: one file of JSON lines an epoch and lane, for readers that only know directories.
 *
 * Family "files on disk": rows wait in a temporary file beside the visible ones, never in the store; `publish.ts`
 * says how they become visible. A backup of the directory must be a snapshot of one moment (file system or
 * volume snapshot). What it lacks can only be healed if it holds the staged files, so a restored sink that lost
 * published epochs stops with `SINK_ROLLED_BACK`.
 */
import type { Sink } from '../../ports/sink.ts'
import { makeDurableDirectory } from '../shared/durable-directory.ts'
import type { RowSpec } from '../shared/row-encoding.ts'
import { makeMarkerDirectory, readMarker, replaceMarker, writeMarker } from './lane-marker.ts'
import { publish } from './publish.ts'
import { fileBytes, onDisk, removeFile } from './sink-files.ts'
import { handleOf, pathsOf, targetOf } from './sink-paths.ts'
import { assembleParts, fileStageWriter } from './stage-files.ts'

/** Promotion renames and hashes: what a quarter of the step's time allows at 300 MB/s. */
const limits = Object.freeze({ laneRowsMax: Number.MAX_SAFE_INTEGER, laneBytesMax: 16 * 1024 ** 3 })

/** Where a files sink writes, and how. */
export interface FileSinkOptions {
  /** Sink id; the subdirectory that the files are in. */
  readonly sink: string
  readonly directory: string
  /** Directory of the place, if there is one; a target within it moves with it. */
  readonly within: string | null
  /** Serdes, route and headers of the rows. */
  readonly spec: RowSpec
}

/** Opens a files sink; directories are made when the first lane is registered or the first row is staged. */
export function openFileSink({ sink, directory, within, spec }: FileSinkOptions): Sink {
  const target = targetOf(directory, sink, within)
  const paths = pathsOf(target, within)
  let stagedIsDurable = false
  return {
    target,
    limits,
    async stage(context) {
      if (!stagedIsDurable || fileBytes(paths.staged) === null) {
        onDisk('make', paths.staged, () => makeDurableDirectory(paths.staged))
        stagedIsDurable = true
      }
      return fileStageWriter(paths, spec, context)
    },
    async assemble(parts, context) {
      return assembleParts(paths, parts, context)
    },
    async base(lane, marker) {
      const own = paths.markerOf(lane)
      makeMarkerDirectory(own)
      if (readMarker(own) === null) writeMarker(own, marker)
      return readMarker(own) ?? marker
    },
    async promote(committable, permit, options) {
      return publish(pathsOf(committable.target, within), committable, permit, options?.healing ?? false)
    },
    async marker(lane) {
      return readMarker(paths.markerOf(lane))
    },
    async reassign(lane, from, to) {
      const own = paths.markerOf(lane)
      makeMarkerDirectory(own)
      return replaceMarker(own, from, to)
    },
    async discard(parts) {
      for (const part of parts) removeFile(paths.stagedFile(handleOf(part).file))
    },
    async close() {},
  }
}
