/**
 * The objects that make up markers in the store: how they are named, and what stands in them.
 *
 *     <sequence>                   an entry: the marker, and which refused rows are recorded with it
 *     <sequence>.<hash>.<row>      a note on the epoch after an entry: it is written up to this row
 *     <sequence>.<hash>.r<row>     the same, with the rows that were decided to be refused since the note before
 *
 * Below the prefix of a lane; sequences and rows have 12 digits, a hash is the beginning of a manifest's. JSON. Entries
 * and notes without refused rows are of version 1, others of version 2. Versions of Pawl that do not know refused rows
 * refuse such an entry, and do not take what such a note is about for written.
 */
import { PawlError } from '../../model/errors.ts'
import type { Marker, RefusedRow } from '../../model/manifest.ts'
import type { RefusedRowRecord } from './refused-rows.ts'

/** Refused rows that one note holds, as an entry refers to them. */
export interface NotedRefusals {
  /** Name of the note below the prefix of its lane. */
  readonly note: string
  /** Of that recording, unlike any other; ids of its rows begin with it. */
  readonly recording: string
  readonly epoch: number
  /** Positions of those rows that are not forgotten, ascending. */
  readonly rows: readonly number[]
}

/** What an entry says. */
export interface MarkerEntry {
  readonly marker: Marker | null
  /** Sequence under which the epoch after the marker is noted: that of the entry with which the marker came. */
  readonly since: number
  readonly refusals: readonly NotedRefusals[]
}

/** Refused rows in a note. */
export interface RefusedNote {
  readonly recording: string
  readonly refused: readonly RefusedRow[]
}

const hashChars = 16
const digitsOf = (count: number) => String(count).padStart(12, '0')
const jsonLine = (record: unknown) => Buffer.from(`${JSON.stringify(record)}\n`)
const plainNote = jsonLine({ version: 1 })

/** The beginning of a hash, as it stands in names of notes. */
export const hashOf = ({ hash }: Marker): string => hash.slice(0, hashChars)

/** Name of an entry. */
export const entryName = (sequence: number): string => digitsOf(sequence)

/** True for names of entries. */
export const isEntryName = (name: string): boolean => /^\d{12}$/.test(name)

/** Name of a note on the epoch that `next` will mark. */
export const noteName = (since: number, next: Marker, row: number): string =>
  `${digitsOf(since)}.${hashOf(next)}.${digitsOf(row)}`

/** Name of a note that decides which rows are refused. */
export const decisionName = (since: number, next: Marker, row: number): string =>
  `${digitsOf(since)}.${hashOf(next)}.r${digitsOf(row)}`

/** A note, by its name alone. */
export interface LaneNote {
  readonly name: string
  /** The beginning of the hash of the manifest that it is about. */
  readonly hash: string
  readonly row: number
  readonly mayRefuse: boolean
}

/** What a name and its length say of a note; null when it is none. */
export function laneNoteOf(name: string, bytes: number): LaneNote | null {
  const [, hash, place] = name.split('.')
  const [, decides, row] = /^(r?)(\d{12})$/.exec(place ?? '') ?? []
  if (hash === undefined || row === undefined) return null
  return { name, hash, row: Number(row), mayRefuse: decides === 'r' && bytes > plainNote.length }
}

/** The sequence that an entry or note stands under. */
export const sequenceOf = (name: string): number => Number(name.slice(0, 12))

/** An entry as it is written. */
export function encodeEntry(sequence: number, { marker, since, refusals }: MarkerEntry): Buffer {
  const plain = since === sequence && refusals.length === 0
  return jsonLine(plain ? { version: 1, marker } : { version: 2, marker, since, refused: refusals })
}

/** Throws `MARKER_UNKNOWN` for what is no entry of a version that is known. */
export function parseEntry(bytes: Buffer, sequence: number, prefix: string): MarkerEntry {
  try {
    const { version, marker, since = sequence, refused = [] } = JSON.parse(bytes.toString())
    if (version !== 1 && version !== 2) throw new Error(`version ${version}`)
    if (marker === null) return { marker, since, refusals: refused }
    const { incarnation, epoch, hash } = marker
    return { marker: { incarnation, epoch, hash }, since, refusals: refused }
  } catch (error) {
    throw new PawlError('MARKER_UNKNOWN', `the newest object at ${prefix} holds no marker`, { object: prefix }, error)
  }
}

/** A note as it is written. */
export function encodeNote(recording: string, refused: readonly RefusedRowRecord[]): Buffer {
  return refused.length === 0 ? plainNote : jsonLine({ version: 2, recording, refused })
}

/** Throws `OBJECT_DAMAGED`. */
export function parseNote(bytes: Buffer, name: string): RefusedNote {
  try {
    const { version, recording = '', refused = [] } = JSON.parse(bytes.toString())
    if (version !== 1 && version !== 2) throw new Error(`version ${version}`)
    const rows = (refused as RefusedRowRecord[]).map((row) => ({ ...row, id: idOf(recording, row.row) }))
    return { recording, refused: rows }
  } catch (error) {
    throw new PawlError('OBJECT_DAMAGED', name, { object: name }, error)
  }
}

/** The id of a row of a recording. */
export const idOf = (recording: string, row: number): string => `${recording}-${row}`
