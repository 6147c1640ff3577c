/**
 * Markers of a sink whose target cannot keep them: a log of objects in the store, created if absent.
 *
 *     markers/<pipeline>/<sink>/<lane>/<sequence>                     the largest sequence is the lane's marker
 *     markers/<pipeline>/<sink>/<lane>/<sequence>.<hash>.<row>        rows of the epoch after it that were written
 *
 * Moving a marker creates the next sequence: two who move it at once differ in one name, which only one gets. What
 * comes late lands below the largest and changes nothing, so it must look again before it believes itself. Older
 * names go only after a larger one is there. Sequences have 12 digits, rows too; JSON, version 1.
 */
import { isPawlError, PawlError } from '../../model/errors.ts'
import type { Marker } from '../../model/manifest.ts'
import { markersPrefix } from '../../model/names.ts'
import type { Store } from '../../ports/store.ts'
import { sameMarker } from './markers.ts'

const version = 1
const entryName = /^\d{12}$/
const triesMax = 100
const hashChars = 16

/** Where a lane stands. */
export interface LanePlace {
  /** 0 before the first marker. */
  readonly sequence: number
  /** Null: none, or it was reset. */
  readonly marker: Marker | null
  /** Rows that were written of the epoch after the marker, by the beginning of its manifest's hash. */
  readonly written: ReadonlyMap<string, number>
}

/** The markers of one sink. */
export interface StoreMarkers {
  look(lane: number): Promise<LanePlace>
  /** Moves the marker if it is `from`; answers with the one that the lane has then. */
  move(lane: number, from: Marker | null, to: Marker | null): Promise<Marker | null>
  /** Notes how far the epoch `next`, the one after the marker at `place`, has been written. */
  note(lane: number, place: LanePlace, next: Marker, rows: number): Promise<void>
}

/** Rows of the epoch `next` that were noted as written. */
export function rowsWritten({ written }: LanePlace, next: Marker): number {
  return written.get(hashOf(next)) ?? 0
}

/** The markers of a sink of a pipeline. Everything throws what the store throws. */
export function storeMarkers(store: Store, pipeline: string, sink: string): StoreMarkers {
  const prefixOf = (lane: number) => `${markersPrefix(pipeline, sink)}${lane}/`
  const look = async (lane: number): Promise<LanePlace> => {
    const prefix = prefixOf(lane)
    for (let tries = 1; tries <= triesMax; tries++) {
      const names = await namesUnder(store, prefix)
      const newest = names.filter((name) => entryName.test(name)).at(-1)
      if (newest === undefined) return { sequence: 0, marker: null, written: new Map() }
      const bytes = await store.read(`${prefix}${newest}`)
      if (bytes !== null)
        return { sequence: Number(newest), marker: parseEntry(bytes, prefix), written: writtenAfter(names, newest) }
    }
    throw new PawlError('STORE_UNAVAILABLE', `the marker at ${prefix} keeps moving`, { object: prefix })
  }
  const dropOlder = async (lane: number, sequence: number) => {
    const names = await namesUnder(store, prefixOf(lane))
    const older = names.filter((name) => Number(name.slice(0, 12)) < sequence)
    if (older.length > 0) await store.delete(older.map((name) => `${prefixOf(lane)}${name}`))
  }
  return {
    look,
    async move(lane, from, to) {
      for (let tries = 1; tries <= triesMax; tries++) {
        const place = await look(lane)
        if (!sameMarker(place.marker, from)) return place.marker
        const sequence = place.sequence + 1
        const entry = Buffer.from(`${JSON.stringify({ version, marker: to })}\n`)
        await createdOrUnclear(store, `${prefixOf(lane)}${digits(sequence)}`, entry)
        const now = await look(lane)
        if (now.sequence < sequence) continue
        if (now.sequence === sequence) await dropOlder(lane, sequence)
        return now.marker
      }
      throw new PawlError('STORE_UNAVAILABLE', `the marker at ${prefixOf(lane)} keeps moving`)
    },
    async note(lane, { sequence }, next, rows) {
      const name = `${prefixOf(lane)}${digits(sequence)}.${hashOf(next)}.${digits(rows)}`
      await createdOrUnclear(store, name, Buffer.from(`${JSON.stringify({ version })}\n`))
    },
  }
}

/** Names below a prefix, without it, in order. */
async function namesUnder(store: Store, prefix: string): Promise<string[]> {
  const names: string[] = []
  for await (const { name } of store.list(prefix)) names.push(name.slice(prefix.length))
  return names
}

/** Whether it was created, somebody else did, or the answer was lost: the caller looks. */
async function createdOrUnclear(store: Store, name: string, bytes: Buffer): Promise<void> {
  try {
    await store.create(name, [bytes])
  } catch (error) {
    if (!isPawlError(error) || error.code !== 'UNKNOWN_RESULT') throw error
  }
}

function writtenAfter(names: readonly string[], newest: string): ReadonlyMap<string, number> {
  const written = new Map<string, number>()
  for (const name of names) {
    const [sequence, hash, rows] = name.split('.')
    if (sequence !== newest || hash === undefined || rows === undefined) continue
    written.set(hash, Math.max(Number(rows), written.get(hash) ?? 0))
  }
  return written
}

function parseEntry(bytes: Buffer, prefix: string): Marker | null {
  try {
    const entry = JSON.parse(bytes.toString())
    if (entry.version !== version) throw new Error(`version ${entry.version}`)
    if (entry.marker === null) return null
    const { incarnation, epoch, hash } = entry.marker
    return { incarnation, epoch, hash }
  } catch (error) {
    throw new PawlError('MARKER_UNKNOWN', `the newest object at ${prefix} holds no marker`, { object: prefix }, error)
  }
}

const hashOf = ({ hash }: Marker) => hash.slice(0, hashChars)

const digits = (count: number) => String(count).padStart(12, '0')
