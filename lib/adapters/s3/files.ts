/**
 * `s3Files({...})`: JSON lines, CSV or Parquet in a bucket as an exactly-once sink.
 *
 * Rows wait in the store, large files also in uploads that nobody sees. Promotion makes the files visible one by one, then
 * writes the list of the epoch's files if absent, then moves the lane's marker by compare-and-set. Whatever is repeated or
 * late meets names that are taken and a marker that has moved. Readers who want whole epochs read the lists.
 */
import { isPawlError, PawlError } from '../../model/errors.ts'
import type { CommitPermit, Committable, StagedPart } from '../../model/manifest.ts'
import type { PromoteResult, Sink, SinkLimits } from '../../ports/sink.ts'
import type { CustomSinkSpec, OpenContext } from '../../ports/spec.ts'
import type { AwsOptions } from '../shared/aws.ts'
import { markerAfter, sameMarker } from '../shared/markers.ts'
import { type ColumnSpecs, type ParquetColumn, parquetColumns } from '../shared/parquet-columns.ts'
import { type Bucket, lazyBucket } from './client.ts'
import { createObject } from './create.ts'
import { type FileFormat, type OpenFormat, openFormat } from './file-encoders.ts'
import {
  checkedPrefix,
  type FilesHandle,
  folderOf,
  manifestName,
  markersFolder,
  needsColumns,
  type PartitionBy,
} from './file-form.ts'
import { findMarker, moveMarker } from './file-marker.ts'
import { type LaneFile, publishFile } from './file-publish.ts'
import { type FilesMaker, filesStageWriter } from './file-staging.ts'
import { listUploads, sweepUploads } from './file-uploads.ts'
import { readObject } from './store.ts'
import { forgetUpload } from './upload.ts'

/** Files, and how rows get there. */
export interface S3FilesOptions<K, V> extends AwsOptions {
  readonly bucket: string
  /** Folder of the files, as in `orders/`; the whole bucket unless given. */
  readonly prefix?: string
  readonly format: FileFormat
  /** Columns and their types, in order; needed for CSV and Parquet. JSON lines take any value without them. */
  readonly columns?: ColumnSpecs
  /** The row of a value; the value itself by default, which a tombstone has none of. */
  readonly row?: (value: V, key: K, timestampMs: number) => unknown
  /** Folders below the prefix: by event time in UTC (`day=…/`, `hour=…/`), or by named values of each row. */
  readonly partitionBy?: PartitionBy<K, V>
  /** Promotion strands; rows of one key stay in one. 1 by default. */
  readonly lanes?: number
  /** A file ends at about this size; 64 MiB by default, at most 256 MiB. */
  readonly fileBytesMax?: number
  /** Bucket in the path and not in the host name, as emulators want it. */
  readonly forcePathStyle?: boolean
}

const mib = 1024 * 1024
/** What promotion uploads again from the store in a few minutes, should the bucket have forgotten everything. */
const limits: SinkLimits = Object.freeze({ laneRowsMax: 10_000_000, laneBytesMax: 2048 * mib })
const uploadBytes = 8 * mib
const publishAtOnce = 4

/** Describes files in a bucket. Throws `PIPELINE_INVALID` for options that contradict each other. */
export function s3Files<V, K = unknown>(options: S3FilesOptions<K, V>): CustomSinkSpec<K, V> {
  const { bucket, format, lanes = 1, fileBytesMax = 64 * mib } = options
  const refuse = (fault: string) =>
    new PawlError('PIPELINE_INVALID', `s3Files: bucket ${JSON.stringify(bucket)}: ${fault}`)
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket)) throw refuse('this is no name of a bucket')
  const prefix = checkedPrefix(options.prefix ?? '')
  if (!['json-lines', 'csv', 'parquet'].includes(format)) throw refuse(`format is ${JSON.stringify(format)}`)
  if (options.columns === undefined && needsColumns(format)) throw refuse(`format ${format} needs columns`)
  if (!Number.isSafeInteger(lanes) || lanes < 1) throw refuse(`lanes is ${lanes}`)
  if (!(fileBytesMax >= 1 && fileBytesMax <= 256 * mib)) throw refuse(`fileBytesMax is ${fileBytesMax}`)
  const columns = options.columns === undefined ? null : parquetColumns(options.columns, `s3Files: bucket ${bucket}`)
  const maker = {
    format,
    row: (options.row as FilesMaker['row'] | undefined) ?? ownRow,
    folderOf: folderOf(options.partitionBy),
    fileBytesMax,
    uploadBytes,
  }
  return Object.freeze({
    kind: 'sink',
    type: 's3',
    guarantee: 'exactly-once',
    lanes,
    resources: [{ of: 's3', bucket, prefix, markers: `${prefix}_pawl/` }],
    open: async (sink, context) => filesSink(context, { ...maker, sink }, columns, { ...options, prefix }),
  } satisfies CustomSinkSpec<K, V>)
}

function ownRow(value: unknown): unknown {
  if (value !== null && value !== undefined) return value
  throw new PawlError('ENCODE_FAILED', 'a tombstone has no row of its own: say with `row` what becomes of it')
}

function filesSink<K, V>(
  { stage, pipeline, incarnation, store }: OpenContext,
  maker: FilesMaker,
  columns: readonly ParquetColumn[] | null,
  options: S3FilesOptions<K, V> & { readonly prefix: string },
): Sink {
  const { sink, format } = maker
  const { bucket: name, prefix, region, endpoint, credentials, timeoutMs, forcePathStyle } = options
  const given = { region, endpoint, credentials, timeoutMs, forcePathStyle }
  const aws = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as AwsOptions
  const bucket = lazyBucket({ ...aws, bucket: name, prefix })
  const markerOf = (lane: number) => `${markersFolder(stage, pipeline, sink)}${lane}`
  let opened: Promise<OpenFormat> | null = null
  return {
    target: `s3:${name}/${prefix}`,
    limits,
    async stage(context) {
      opened ??= openFormat(format, columns)
      return filesStageWriter(bucket.open, maker, await opened, context, { bucket: name, prefix })
    },
    async base(lane, marker) {
      const open = await bucket.open()
      const found = await findMarker(open, markerOf(lane))
      if (found.marker !== null) return found.marker
      const moved = await moveMarker(open, markerOf(lane), found, marker)
      return moved === 'moved' ? marker : (moved.marker ?? marker)
    },
    promote: async (committable, permit) => {
      const open = { ...(await bucket.open()), ...placeOf(committable) }
      return promote(open, store, committable, permit, { marker: markerOf(committable.lane), pipeline })
    },
    marker: async (lane) => (await findMarker(await bucket.open(), markerOf(lane))).marker,
    async reassign(lane, from, to) {
      const open = await bucket.open()
      const found = await findMarker(open, markerOf(lane))
      if (!sameMarker(found.marker, from)) return found.marker
      const moved = await moveMarker(open, markerOf(lane), found, to)
      return moved === 'moved' ? to : moved.marker
    },
    async discard(parts) {
      for (const { handle } of parts) await forgetAll(await bucket.open(), handle as FilesHandle)
    },
    staged: async () => listUploads(await bucket.open(), sink, incarnation),
    sweep: async (listed, kept) => sweepUploads(await bucket.open(), listed, kept as readonly FilesHandle[]),
    close: () => bucket.close(),
  }
}

/** Where the files were staged for, whatever the pipeline file says now. */
function placeOf({ sink, parts }: Committable): { readonly name: string; readonly prefix: string } {
  const handle = parts[0]?.handle as FilesHandle | undefined
  if (handle?.version === 1) return { name: handle.bucket, prefix: handle.prefix }
  throw new PawlError('STEP_INPUT_INVALID', `staged output of sink ${sink} is of another version`, { sink })
}

async function forgetAll(bucket: Bucket, { bucket: Bucket, prefix, files }: FilesHandle): Promise<void> {
  for (const { name, upload } of files)
    if (upload !== null) await forgetUpload(bucket, { Bucket, Key: prefix + name, UploadId: upload.id })
}

async function promote(
  bucket: Bucket,
  store: OpenContext['store'],
  committable: Committable,
  permit: CommitPermit,
  { marker: object, pipeline }: { readonly marker: string; readonly pipeline: string },
): Promise<PromoteResult> {
  const next = markerAfter(committable, permit)
  const found = await findMarker(bucket, object)
  const isMine = async () => sameMarker((await findMarker(bucket, object)).marker, committable.prev)
  if (!sameMarker(found.marker, committable.prev)) return { result: 'refused', found: found.marker }
  if (!(await publishAll(bucket, store, committable.parts, isMine)))
    return { result: 'refused', found: (await findMarker(bucket, object)).marker }
  await writeManifest(bucket, committable, permit, pipeline)
  const moved = await moveMarker(bucket, object, found, next)
  return moved === 'moved' ? { result: 'promoted' } : { result: 'refused', found: moved.marker }
}

/** All files, a few at a time; every request has ended when it returns. */
async function publishAll(
  bucket: Bucket,
  store: OpenContext['store'],
  parts: readonly StagedPart[],
  isMine: () => Promise<boolean>,
): Promise<boolean> {
  const files = laneFiles(parts).values()
  let all = true
  let failed = false
  const work = async () => {
    for (const file of files) {
      if (failed || !all) return
      try {
        all = (await publishFile(bucket, store, file, isMine)) && all
      } catch (error) {
        failed = true
        throw error
      }
    }
  }
  const ends = await Promise.allSettled(Array.from({ length: publishAtOnce }, work))
  for (const end of ends) if (end.status === 'rejected') throw end.reason
  return all
}

function laneFiles(parts: readonly StagedPart[]): LaneFile[] {
  return parts.flatMap(({ handle, objects }) => {
    let from = 0
    return (handle as FilesHandle).files.map((file) => {
      const mine = objects.slice(from, from + file.objects)
      from += file.objects
      return { file, objects: mine }
    })
  })
}

/** The list of the files that this epoch has in this lane, in the order of their rows. Throws `FILE_FOREIGN`. */
async function writeManifest(
  bucket: Bucket,
  { sink, lane, epoch, parts, rows, bytes }: Committable,
  { incarnation, manifest }: CommitPermit,
  pipeline: string,
): Promise<void> {
  const files = laneFiles(parts).map(({ file: { name, rows, bytes, crc32 } }) => ({ name, rows, bytes, crc32 }))
  const list = { version: 1, pipeline, sink, incarnation, epoch, lane, hash: manifest.sha256, rows, bytes, files }
  const text = Buffer.from(`${JSON.stringify(list, null, 1)}\n`)
  const object = manifestName(sink, incarnation, epoch, lane)
  try {
    if ((await createObject(bucket, object, [text])) === 'created') return
  } catch (error) {
    if (!isPawlError(error) || error.code !== 'UNKNOWN_RESULT') throw error
  }
  const found = await readObject(bucket, object)
  if (found === null) throw new PawlError('SINK_UNAVAILABLE', `${object} in bucket ${bucket.name} is not there yet`)
  if (!found.equals(text))
    throw new PawlError('FILE_FOREIGN', `s3://${bucket.name}/${bucket.prefix}${object}`, { object })
}
