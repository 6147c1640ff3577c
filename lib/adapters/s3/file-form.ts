/**
 * Names of files in a bucket, and the form that travels with staged output.
 *
 * A name carries sink, epoch, lane, invocation, number and incarnation, so that no two attempts share one and whoever
 * finds a file knows whose it is. Everything that is no file of rows begins with `_`, which readers of partitioned
 * files pass over.
 */
import { PawlError } from '../../model/errors.ts'
import { sha256Of } from '../shared/staged-objects.ts'
import type { FileFormat } from './file-encoders.ts'
import type { UploadedPart } from './upload.ts'

/** One file of a lane, as it was staged. */
export interface StagedFile {
  /** Below the prefix of the sink. */
  readonly name: string
  readonly rows: number
  readonly bytes: number
  /** Of the whole, as S3 writes it. */
  readonly crc32: string
  /** How many of the part's objects it consists of. */
  readonly objects: number
  /** All of its parts, uploaded; null where promotion uploads it. */
  readonly upload: { readonly id: string; readonly parts: readonly UploadedPart[] } | null
}

/** The handle of a staged part. */
export interface FilesHandle {
  readonly version: 1
  readonly bucket: string
  readonly prefix: string
  readonly files: readonly StagedFile[]
}

/** Under which partition a row lies: named values, in order. */
export type PartitionValues = Readonly<Record<string, string | number | bigint | boolean | null>>

/** By the row's event time in UTC, or by anything. */
export type PartitionBy<K, V> =
  | 'event-day'
  | 'event-hour'
  | ((value: V, key: K, timestampMs: number) => PartitionValues)

/** A row's folder, as Hive names them: `country=de/day=2026-11-30/`. */
export type FolderOf = (value: unknown, key: unknown, timestampMs: number) => string

const nullPartition = '__HIVE_DEFAULT_PARTITION__'
const epochDigits = 12
const folderBytesMax = 500

/** How rows choose their folder. */
export function folderOf<K, V>(by: PartitionBy<K, V> | undefined): FolderOf {
  if (by === undefined) return () => ''
  if (by === 'event-day') return (_, __, timestampMs) => `day=${dayText(timestampMs)}/`
  if (by === 'event-hour') {
    return (_, __, timestampMs) => {
      const text = dayText(timestampMs)
      return `day=${text}/hour=${new Date(timestampMs).toISOString().slice(-13, -11)}/`
    }
  }
  const values = by as (value: unknown, key: unknown, timestampMs: number) => PartitionValues
  return (value, key, timestampMs) => {
    let folder = ''
    for (const [name, one] of Object.entries(values(value, key, timestampMs))) {
      const text = one === null ? nullPartition : String(one)
      if (text === '') throw new PawlError('ENCODE_FAILED', `partition ${name} of a row is empty; null is its default`)
      if (!text.isWellFormed()) throw new PawlError('ENCODE_FAILED', `partition ${name} of a row is no text`)
      folder += `${escaped(name)}=${escaped(text)}/`
    }
    if (folder.length > folderBytesMax)
      throw new PawlError('ENCODE_FAILED', `the folder of a row is too long: ${folder}`)
    return folder
  }
}

function dayText(timestampMs: number): string {
  const date = new Date(timestampMs)
  if (Number.isNaN(date.getTime())) throw new PawlError('ENCODE_FAILED', `event time ${timestampMs} is no day`)
  return date.toISOString().slice(0, -14)
}

function escaped(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`)
}

/** What a name says. */
export interface FileNameParts {
  readonly sink: string
  readonly incarnation: string
  readonly epoch: number
  readonly lane: number
  /** Of the invocation. */
  readonly id: string
  readonly number: number
}

/** A file's name within its folder. */
export function fileName(parts: FileNameParts, ending: string): string {
  const { sink, incarnation, epoch, lane, id, number } = parts
  return `${escaped(sink)}-${epochText(epoch)}-${lane}-${id}-${number}-${incarnation}.${ending}`
}

/** True for a file of this sink and incarnation, whatever folder it is in. */
export function isFileOf(key: string, sink: string, incarnation: string): boolean {
  const name = key.slice(key.lastIndexOf('/') + 1)
  const rest = name.startsWith(`${escaped(sink)}-`) ? name.slice(escaped(sink).length + 1) : ''
  const [, found] = /^\d{12,}-\d+-[0-9a-f]{16}-\d+-([^.]+)\.(?:jsonl|csv|parquet)$/.exec(rest) ?? []
  return found === incarnation
}

/** Digits of an epoch, such that names sort by it. */
export const epochText = (epoch: number): string => epoch.toString().padStart(epochDigits, '0')

/** An id of an invocation: its prefix is its own. */
export const invocationId = (prefix: string): string => sha256Of([Buffer.from(prefix)]).slice(0, 16)

/** The list of files of an epoch and lane. */
export function manifestName(sink: string, incarnation: string, epoch: number, lane: number): string {
  return `_manifest/${escaped(sink)}/${incarnation}/${epochText(epoch)}-${lane}.json`
}

/** Where the markers of a sink lie. */
export function markersFolder(stage: string, pipeline: string, sink: string): string {
  return `_pawl/${escaped(stage)}/${escaped(pipeline)}/${escaped(sink)}/`
}

/** Throws `PIPELINE_INVALID` for a prefix that names no folder; answers with it, a slash at its end. */
export function checkedPrefix(prefix: string): string {
  if (prefix === '') return ''
  const folder = prefix.endsWith('/') ? prefix : `${prefix}/`
  if (/^[A-Za-z0-9][A-Za-z0-9!_.*'()/=-]*$/.test(folder) && !/\/\/|(^|\/)\.\.?\//.test(folder)) return folder
  throw new PawlError('PIPELINE_INVALID', `s3Files: prefix ${JSON.stringify(prefix)} is no folder of plain characters`)
}

/** Formats that need columns. */
export function needsColumns(format: FileFormat): boolean {
  return format !== 'json-lines'
}
