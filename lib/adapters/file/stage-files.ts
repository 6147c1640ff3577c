/**
 * Staging of the files sink: one temporary file an invocation and lane, and one for a lane in the end.
 *
 * Lines go into a buffer a lane and from there to the file whenever the engine flushes, so that an epoch may be
 * larger than memory. A flush that failed is repeated at the same position. Seal makes file and entry durable
 * before the part is named anywhere. Assembling copies, and leaves its inputs alone, since precommit may be
 * repeated; the sweep after promotion takes them.
 */
import { createHash, type Hash } from 'node:crypto'
import { PawlError } from '../../model/errors.ts'
import type { StagedPart } from '../../model/manifest.ts'
import type { StageContext, StageWriter } from '../../ports/sink.ts'
import { laneOf } from '../shared/lanes.ts'
import type { Content, RowSpec } from '../shared/row-encoding.ts'
import { lineEncoder } from './json-lines.ts'
import { fileBytes, readPieces, syncPath, writeAt } from './sink-files.ts'
import { type FileHandle, handleOf, newStagedName, type SinkPaths } from './sink-paths.ts'

const bufferBytes = 64 * 1024
/** A buffer that grew past this is given back after its flush. */
const bufferKeepBytes = 4 * 1024 * 1024

/** A writer for one invocation. */
export function fileStageWriter(paths: SinkPaths, spec: RowSpec, context: StageContext): StageWriter {
  const encodeLine = lineEncoder(spec)
  const lanes = new Map<number, StagedFile>()
  let keyContent: Content = null
  const keyed = (content: Content) => {
    keyContent = content
  }
  const fileOf = (lane: number): StagedFile => {
    const made = new StagedFile(paths, newStagedName(context.incarnation, context.epoch, lane))
    lanes.set(lane, made)
    return made
  }
  const sorted = () => [...lanes].sort(([a], [b]) => a - b)

  return {
    get bufferedBytes() {
      let bytes = 0
      for (const file of lanes.values()) bytes += file.bufferedBytes
      return bytes
    },
    add(key, value, timestampMs, partition) {
      const line = encodeLine(key, value, timestampMs, keyed)
      const lane = laneOf(keyContent, partition, context.lanes)
      const file = lanes.get(lane) ?? fileOf(lane)
      file.add(line)
    },
    async flush() {
      for (const file of lanes.values()) file.flush()
    },
    async seal() {
      const parts = sorted().map(([lane, file]) => file.seal(lane))
      if (parts.length > 0) syncPath(paths.staged)
      return parts
    },
  }
}

/** Makes one part of those of a lane. Throws `OBJECT_MISSING`, `OBJECT_DAMAGED`. */
export function assembleParts(paths: SinkPaths, parts: readonly StagedPart[], context: StageContext): StagedPart[] {
  const [first, ...others] = parts
  if (first === undefined) return []
  if (others.length === 0) {
    const bytes = fileBytes(paths.stagedFile(handleOf(first).file))
    if (bytes !== first.bytes) throw stagedFault(paths, first, bytes)
    return [first]
  }
  const whole = new StagedFile(paths, newStagedName(context.incarnation, context.epoch, first.lane))
  for (const part of parts) appendPart(paths, whole, part)
  const assembled = whole.seal(first.lane)
  syncPath(paths.staged)
  return [{ ...assembled, rows: parts.reduce((sum, part) => sum + part.rows, 0) }]
}

function appendPart(paths: SinkPaths, whole: StagedFile, part: StagedPart): void {
  const { file, sha256 } = handleOf(part)
  const hash = createHash('sha256')
  const found = readPieces(paths.stagedFile(file), (piece) => {
    hash.update(piece)
    whole.append(piece)
  })
  if (!found) throw stagedFault(paths, part, null)
  if (hash.digest('hex') !== sha256) throw stagedFault(paths, part, part.bytes)
}

/** The refusal of a staged file that is gone (`bytes` null) or not what was staged. */
export function stagedFault(paths: SinkPaths, part: StagedPart, bytes: number | null): PawlError {
  const path = paths.stagedFile(handleOf(part).file)
  const details = { path, bytes, bytesExpected: part.bytes }
  return new PawlError(bytes === null ? 'OBJECT_MISSING' : 'OBJECT_DAMAGED', path, details)
}

/** A temporary file under construction. */
class StagedFile {
  readonly #path: string
  readonly #name: string
  readonly #hash: Hash = createHash('sha256')
  #buffer = Buffer.allocUnsafe(bufferBytes)
  #buffered = 0
  #written = 0
  #rows = 0
  #exists = false

  constructor(paths: SinkPaths, name: string) {
    this.#path = paths.stagedFile(name)
    this.#name = name
  }

  get bufferedBytes(): number {
    return this.#buffered
  }

  add(line: string): void {
    this.#reserve(line.length * 3)
    this.#buffered += this.#buffer.write(line, this.#buffered)
    this.#rows++
  }

  append(bytes: Uint8Array): void {
    this.flush()
    this.#reserve(bytes.length)
    this.#buffer.set(bytes, this.#buffered)
    this.#buffered += bytes.length
  }

  flush(): void {
    if (this.#buffered === 0) return
    if (!this.#exists) {
      writeAt(this.#path, 'wx', new Uint8Array(0), 0)
      this.#exists = true
    }
    const bytes = this.#buffer.subarray(0, this.#buffered)
    writeAt(this.#path, 'r+', bytes, this.#written)
    this.#hash.update(bytes)
    this.#written += bytes.length
    this.#buffered = 0
    if (this.#buffer.length > bufferKeepBytes) this.#buffer = Buffer.allocUnsafe(bufferBytes)
  }

  /** Once; the directory is synced by the caller. */
  seal(lane: number): StagedPart {
    this.flush()
    syncPath(this.#path)
    const handle: FileHandle = { version: 1, file: this.#name, sha256: this.#hash.digest('hex') }
    return { lane, rows: this.#rows, bytes: this.#written, objects: [], handle }
  }

  #reserve(bytes: number): void {
    const needed = this.#buffered + bytes
    if (needed <= this.#buffer.length) return
    const grown = Buffer.allocUnsafe(Math.max(needed, this.#buffer.length * 2))
    this.#buffer.copy(grown, 0, 0, this.#buffered)
    this.#buffer = grown
  }
}
