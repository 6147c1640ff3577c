/**
 * Staging of files: every byte in the store, and of large files also in an upload that nobody sees.
 *
 * The store is what promotion relies on; the upload saves it work, and may be forgotten by the bucket at any time. So an
 * upload that does not go well is given up, not the attempt. What waits for a part to fill is bounded for the whole
 * invocation. Files end at a size at which promotion can upload one from memory.
 */
import { crc32 } from 'node:zlib'
import { isPawlError, PawlError } from '../../model/errors.ts'
import type { ObjectRef } from '../../model/head.ts'
import type { StagedPart } from '../../model/manifest.ts'
import type { StageContext, StageWriter } from '../../ports/sink.ts'
import { laneOf } from '../shared/lanes.ts'
import { createStaged, stagedName } from '../shared/staged-objects.ts'
import { laneText } from '../shared/table-rows.ts'
import type { Bucket } from './client.ts'
import { endings, type FileEncoder, type FileFormat, type OpenFormat } from './file-encoders.ts'
import { type FilesHandle, type FolderOf, fileName, invocationId, type StagedFile } from './file-form.ts'
import { beginUpload, forgetUpload, type Upload, type UploadedPart, uploadPart } from './upload.ts'

/** What files are made of and when they end. */
export interface FilesMaker {
  readonly sink: string
  readonly format: FileFormat
  readonly row: (value: unknown, key: unknown, timestampMs: number) => unknown
  readonly folderOf: FolderOf
  /** A file ends once it has so many bytes. */
  readonly fileBytesMax: number
  /** An upload begins once a file has so many; each of its parts has as many. */
  readonly uploadBytes: number
}

/** What may wait, for parts to fill, in one invocation. */
const waitingBytesMax = 64 * 1024 * 1024
/** Folders that one invocation may write to. */
const foldersMax = 2000

/** Waiting bytes of all files of an invocation. */
interface Waiting {
  bytes: number
}

/** A writer for one invocation. */
export function filesStageWriter(
  bucket: () => Promise<Bucket>,
  maker: FilesMaker,
  format: OpenFormat,
  context: StageContext,
  place: { readonly bucket: string; readonly prefix: string },
): StageWriter {
  const files = new Map<string, OpenFile>()
  const ended: OpenFile[] = []
  const waiting: Waiting = { bytes: 0 }
  const id = invocationId(context.prefix)
  let count = 0
  const open = (lane: number, folder: string): OpenFile => {
    if (files.size >= foldersMax)
      throw new PawlError(
        'EPOCH_TOO_LARGE',
        `${maker.sink}: rows of one task fall into more than ${foldersMax} folders`,
      )
    const { incarnation, epoch } = context
    const parts = { sink: maker.sink, incarnation, epoch, lane, id, number: count }
    const name = folder + fileName(parts, endings[maker.format])
    const staging = { store: context.store, object: (n: number) => stagedName(context, `${parts.number}-${n}`) }
    count++
    const file = new OpenFile(lane, name, format.open(), { ...staging, bucket, maker, waiting })
    files.set(`${lane} ${folder}`, file)
    return file
  }
  const flush = async () => {
    for (const [at, file] of files) {
      if (!(await file.flush())) continue
      await file.end()
      files.delete(at)
      ended.push(file)
    }
  }
  return {
    get bufferedBytes() {
      let bytes = 0
      for (const file of files.values()) bytes += file.encoder.bufferedBytes
      return bytes
    },
    add(key, value, timestampMs, partition) {
      const folder = maker.folderOf(value, key, timestampMs)
      const row = format.encode(maker.row(value, key, timestampMs))
      const lane = laneOf(laneText(key), partition, context.lanes)
      const file = files.get(`${lane} ${folder}`) ?? open(lane, folder)
      file.encoder.add(row)
      file.rows++
    },
    flush,
    async seal() {
      for (const file of files.values()) {
        await file.flush()
        await file.end()
        ended.push(file)
      }
      files.clear()
      return partsOf(ended, place)
    },
  }
}

function partsOf(
  files: readonly OpenFile[],
  place: { readonly bucket: string; readonly prefix: string },
): StagedPart[] {
  const lanes = [...new Set(files.map(({ lane }) => lane))].sort((a, b) => a - b)
  return lanes.map((lane) => {
    const mine = files.filter((file) => file.lane === lane)
    const handle: FilesHandle = { version: 1, ...place, files: mine.map((file) => file.staged()) }
    const sum = (of: (file: OpenFile) => number) => mine.reduce((total, file) => total + of(file), 0)
    const objects = mine.flatMap((file) => file.objects)
    return { lane, rows: sum(({ rows }) => rows), bytes: sum(({ bytes }) => bytes), objects, handle }
  })
}

interface Staging {
  readonly store: StageContext['store']
  readonly object: (number: number) => string
  readonly bucket: () => Promise<Bucket>
  readonly maker: FilesMaker
  readonly waiting: Waiting
}

/** A file under construction. */
class OpenFile {
  rows = 0
  bytes = 0
  readonly objects: ObjectRef[] = []
  readonly lane: number
  readonly encoder: FileEncoder
  readonly #name: string
  readonly #staging: Staging
  #crc = 0
  /** Null once this file is left to promotion. */
  #waiting: Buffer[] | null = []
  #waitingBytes = 0
  #upload: Upload | null = null
  readonly #parts: UploadedPart[] = []

  constructor(lane: number, name: string, encoder: FileEncoder, staging: Staging) {
    this.lane = lane
    this.#name = name
    this.encoder = encoder
    this.#staging = staging
  }

  /** Hands what is buffered to the store; true when the file is large enough to end. */
  async flush(): Promise<boolean> {
    await this.#store(this.encoder.take())
    return this.bytes >= this.#staging.maker.fileBytesMax
  }

  /** Once. */
  async end(): Promise<void> {
    await this.#store(this.encoder.finish())
    if (this.#upload !== null && this.#waitingBytes > 0) await this.#uploadWaiting()
    this.#release()
  }

  staged(): StagedFile {
    const sum = Buffer.allocUnsafe(4)
    sum.writeUInt32BE(this.#crc)
    const upload = this.#upload === null ? null : { id: this.#upload.UploadId, parts: this.#parts }
    const { rows, bytes, objects } = this
    return { name: this.#name, rows, bytes, crc32: sum.toString('base64'), objects: objects.length, upload }
  }

  async #store(bytes: Buffer): Promise<void> {
    if (bytes.length === 0) return
    const { store, object, maker, waiting } = this.#staging
    this.objects.push(await createStaged(store, object(this.objects.length), [bytes]))
    this.bytes += bytes.length
    this.#crc = crc32(bytes, this.#crc)
    if (this.#waiting === null) return
    this.#waiting.push(bytes)
    this.#waitingBytes += bytes.length
    waiting.bytes += bytes.length
    if (this.#waitingBytes >= maker.uploadBytes) await this.#uploadWaiting()
    else if (waiting.bytes > waitingBytesMax) await this.#leave()
  }

  /** Uploads what waits as the next part. */
  async #uploadWaiting(): Promise<void> {
    const part = Buffer.concat(this.#waiting ?? [])
    try {
      const bucket = await this.#staging.bucket()
      this.#upload ??= await beginUpload(bucket, this.#name)
      this.#parts.push(await uploadPart(bucket, this.#upload, this.#parts.length + 1, part))
      this.#staging.waiting.bytes -= this.#waitingBytes
      this.#waitingBytes = 0
      this.#waiting = []
    } catch (error) {
      if (!isPawlError(error) || (error.kind !== 'Retryable' && error.code !== 'ASSERTION_FAILED')) throw error
      await this.#leave()
    }
  }

  /** Leaves the file to promotion. */
  async #leave(): Promise<void> {
    const upload = this.#upload
    this.#upload = null
    this.#release()
    if (upload !== null) await forgetUpload(await this.#staging.bucket(), upload)
  }

  #release(): void {
    this.#staging.waiting.bytes -= this.#waitingBytes
    this.#waitingBytes = 0
    this.#waiting = null
  }
}
