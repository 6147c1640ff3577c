/**
 * Markers of a sink whose target cannot keep them: a log of objects in the store, created if absent.
 *
 * Below `markers/<pipeline>/<sink>/<lane>/` the entry with the largest sequence is the lane's marker (names and contents
 * stand in `marker-records.ts`). Moving a marker creates the next sequence: two who move it at once differ in one name,
 * which only one gets. What comes late lands below the largest and changes nothing, so it must look again before it
 * believes itself. Notes say how far the epoch after the marker was written and which of its rows were refused: the
 * first note of a name wins, and the entry that moves past the epoch refers to its refused rows, so that they are
 * recorded in that step. Forgetting them is another entry of the same marker. What no entry can refer to any more
 * (older entries, other notes) goes after a larger entry is there.
 */
import { randomBytes } from 'node:crypto'
import { isPawlError, PawlError } from '../../model/errors.ts'
import type { Marker, RefusedRow } from '../../model/manifest.ts'
import { markersPrefix } from '../../model/names.ts'
import type { Store, StoredObject } from '../../ports/store.ts'
import {
  decisionName,
  encodeEntry,
  encodeNote,
  entryName,
  hashOf,
  idOf,
  isEntryName,
  type LaneNote,
  laneNoteOf,
  type MarkerEntry,
  type NotedRefusals,
  noteName,
  parseEntry,
  parseNote,
  type RefusedNote,
  sequenceOf,
} from './marker-records.ts'
import { sameMarker } from './markers.ts'
import { type RefusedRowRecord, withinBytes } from './refused-rows.ts'

const triesMax = 100
const unclearMax = 3

/** Where a lane stands. */
export interface LanePlace extends MarkerEntry {
  /** 0 before the first marker. A marker that is null: there is none, or it was reset. */
  readonly sequence: number
  /** Notes on the epoch after the marker. */
  readonly notes: readonly LaneNote[]
}

/** The markers of one sink. */
export interface StoreMarkers {
  look(lane: number): Promise<LanePlace>
  /**
   * Moves the marker if it is `from`, with the rows that notes call refused; answers with where the lane stands then. Whose
   * notes it must be by, say `since`: it moves nothing when the marker has gone away and come back.
   */
  move(lane: number, from: Marker | null, to: Marker | null, since?: number): Promise<LanePlace>
  /** Notes how far the epoch `next`, the one after the marker at `place`, has been written. A lost note is no harm. */
  note(lane: number, place: LanePlace, next: Marker, row: number): Promise<void>
  /**
   * As `note`, with rows that are refused for good, and for certain: answers with what the note says then, which is
   * what the first one wrote; null when the lane has moved on. A lost answer is thrown as `UNKNOWN_RESULT`.
   */
  decide(
    lane: number,
    place: LanePlace,
    next: Marker,
    row: number,
    refused: readonly RefusedRowRecord[],
  ): Promise<readonly RefusedRow[] | null>
  /** The refused rows that notes on `next` hold, all of them or those of the note at `row`. */
  noted(lane: number, place: LanePlace, next: Marker, row?: number): Promise<readonly RefusedRow[]>
  /** As `Sink.refused` and `Sink.forget`. */
  refused(lane: number, max: { readonly rows: number; readonly bytes: number }): Promise<readonly RefusedRow[]>
  forget(lane: number, ids: readonly string[]): Promise<void>
}

/** Rows of the epoch `next` that were noted as written. */
export function rowsWritten({ notes }: LanePlace, next: Marker): number {
  const hash = hashOf(next)
  return notes.reduce((most, note) => (note.hash === hash ? Math.max(most, note.row) : most), 0)
}

/** How many refused rows of the epoch of `marker` are recorded. */
export function refusedCount({ refusals }: LanePlace, marker: Marker): number {
  const hash = hashOf(marker)
  return refusals.reduce((sum, { note, rows }) => sum + (note.split('.')[1] === hash ? rows.length : 0), 0)
}

/** The markers of a sink of a pipeline. Everything throws what the store throws. */
export function storeMarkers(store: Store, pipeline: string, sink: string): StoreMarkers {
  const laneOf = (lane: number) => new MarkerLane(store, `${markersPrefix(pipeline, sink)}${lane}/`)
  return {
    look: (lane) => laneOf(lane).look(),
    move: (lane, from, to, since) => laneOf(lane).move(from, to, since),
    note: (lane, { since }, next, row) => laneOf(lane).note(noteName(since, next, row)),
    decide: (lane, { since }, next, row, refused) => laneOf(lane).decide(decisionName(since, next, row), refused),
    noted: async (lane, { notes }, next, row) => {
      const hash = hashOf(next)
      const asked = notes.filter((note) => note.hash === hash && (row === undefined || note.row === row))
      return ((await laneOf(lane).readNotes(asked)) ?? []).flatMap(({ refused }) => refused)
    },
    refused: (lane, max) => laneOf(lane).refused(max),
    forget: (lane, ids) => laneOf(lane).forget(new Set(ids)),
  }
}

class MarkerLane {
  readonly #store: Store
  readonly #prefix: string

  constructor(store: Store, prefix: string) {
    this.#store = store
    this.#prefix = prefix
  }

  async look(): Promise<LanePlace> {
    for (let tries = 1; tries <= triesMax; tries++) {
      const objects = await this.#objects()
      const newest = objects.filter(({ name }) => isEntryName(name)).at(-1)?.name
      if (newest === undefined) return { sequence: 0, since: 0, marker: null, refusals: [], notes: [] }
      const bytes = await this.#store.read(`${this.#prefix}${newest}`)
      if (bytes === null) continue
      const sequence = sequenceOf(newest)
      const entry = parseEntry(bytes, sequence, this.#prefix)
      return { sequence, ...entry, notes: notesUnder(objects, entry.since) }
    }
    throw this.#moving()
  }

  async move(from: Marker | null, to: Marker | null, since?: number): Promise<LanePlace> {
    for (let tries = 1; tries <= triesMax; tries++) {
      const place = await this.look()
      if (!sameMarker(place.marker, from) || (since ?? place.since) !== place.since) return place
      const refusals = to === null ? place.refusals : await this.#refusalsAfter(place, to)
      if (refusals === null) continue
      const sequence = place.sequence + 1
      const now = await this.#enter(sequence, { marker: to, since: sequence, refusals })
      // Somebody forgot rows meanwhile: the marker is where it was.
      if (now.sequence >= sequence && (sameMarker(from, to) || !sameMarker(now.marker, from))) return now
    }
    throw this.#moving()
  }

  async note(name: string): Promise<void> {
    await createdOrUnclear(this.#store, `${this.#prefix}${name}`, encodeNote('', []))
  }

  async decide(name: string, refused: readonly RefusedRowRecord[]): Promise<readonly RefusedRow[] | null> {
    const object = `${this.#prefix}${name}`
    const note = encodeNote(randomBytes(8).toString('hex'), refused)
    let tries = 1
    while (!(await createdOrUnclear(this.#store, object, note)))
      if (tries++ >= unclearMax) throw new PawlError('UNKNOWN_RESULT', object, { object })
    // One that came late made its note anew, after the one that counted was dropped.
    if ((await this.look()).since !== sequenceOf(name)) return null
    return (await this.#readNote(name))?.refused ?? null
  }

  async refused(max: { readonly rows: number; readonly bytes: number }): Promise<readonly RefusedRow[]> {
    for (let tries = 1; tries <= triesMax; tries++) {
      const place = await this.look()
      const rows = await this.#recorded(place, max)
      if (rows !== null) return withinBytes(rows, max.bytes)
      const now = await this.look()
      if (now.sequence === place.sequence) throw this.#lost(place)
    }
    throw this.#moving()
  }

  async forget(ids: ReadonlySet<string>): Promise<void> {
    for (let tries = 1; tries <= triesMax; tries++) {
      const { sequence, marker, since, refusals } = await this.look()
      const left = without(refusals, ids)
      if (countOf(left) === countOf(refusals)) return
      await this.#enter(sequence + 1, { marker, since, refusals: left })
    }
    throw this.#moving()
  }

  /** The notes that may hold refused rows; null when one is gone, since the lane has moved on. */
  async readNotes(notes: readonly LaneNote[]): Promise<(RefusedNote & { readonly name: string })[] | null> {
    const read: (RefusedNote & { readonly name: string })[] = []
    for (const note of notes) {
      if (!note.mayRefuse) continue
      const { name } = note
      const found = await this.#readNote(name)
      if (found === null) return null
      read.push({ name, ...found })
    }
    return read
  }

  /** Refused rows that are recorded once the marker is `to`: those that are, and those that notes on `to` hold. */
  async #refusalsAfter({ refusals, notes }: LanePlace, to: Marker): Promise<readonly NotedRefusals[] | null> {
    const hash = hashOf(to)
    const read = await this.readNotes(notes.filter((note) => note.hash === hash))
    if (read === null) return null
    const more = read.map(({ name, recording, refused }) => {
      const rows = refused.map(({ row }) => row).sort((a, b) => a - b)
      return { note: name, recording, epoch: to.epoch, rows }
    })
    return [...refusals, ...more].sort((a, b) => a.epoch - b.epoch)
  }

  /** By epoch and row; null when a note is gone. Ends with a whole epoch, since a healed one may have several recordings. */
  async #recorded({ refusals }: LanePlace, max: { readonly rows: number; readonly bytes: number }) {
    const rows: RefusedRow[] = []
    let bytes = 0
    let epoch = 0
    for (const { note, rows: left, ...of } of refusals) {
      if (of.epoch !== epoch && (rows.length >= max.rows || bytes >= max.bytes)) break
      epoch = of.epoch
      const found = await this.#readNote(note)
      if (found === null) return null
      const kept = new Set(left)
      for (const row of found.refused) {
        if (!kept.has(row.row)) continue
        rows.push(row)
        bytes += (row.key?.length ?? 0) + (row.value?.length ?? 0)
      }
    }
    return rows.sort((a, b) => a.epoch - b.epoch || a.row - b.row).slice(0, max.rows)
  }

  async #readNote(name: string): Promise<RefusedNote | null> {
    const bytes = await this.#store.read(`${this.#prefix}${name}`)
    return bytes === null ? null : parseNote(bytes, `${this.#prefix}${name}`)
  }

  /** Creates an entry, by this call or somebody else's, and answers with where the lane stands then. */
  async #enter(sequence: number, entry: MarkerEntry): Promise<LanePlace> {
    await createdOrUnclear(this.#store, `${this.#prefix}${entryName(sequence)}`, encodeEntry(sequence, entry))
    const now = await this.look()
    if (now.sequence === sequence) await this.#dropOlder(now)
    return now
  }

  /** Whatever an entry after the one at `place` can still refer to stays, so it may come late. */
  async #dropOlder({ sequence, since, refusals }: LanePlace): Promise<void> {
    const referred = new Set(refusals.map(({ note }) => note))
    const isOver = (name: string) =>
      sequenceOf(name) < sequence && (isEntryName(name) || sequenceOf(name) !== since) && !referred.has(name)
    const over = (await this.#objects()).filter(({ name }) => isOver(name))
    if (over.length > 0) await this.#store.delete(over.map(({ name }) => `${this.#prefix}${name}`))
  }

  /** What lies below the prefix, by names without it, in order. */
  async #objects(): Promise<StoredObject[]> {
    const objects: StoredObject[] = []
    for await (const { name, bytes } of this.#store.list(this.#prefix))
      objects.push({ name: name.slice(this.#prefix.length), bytes })
    return objects
  }

  #moving(): PawlError {
    return new PawlError('STORE_UNAVAILABLE', `the marker at ${this.#prefix} keeps moving`, { object: this.#prefix })
  }

  #lost({ sequence }: LanePlace): PawlError {
    const entry = `${this.#prefix}${entryName(sequence)}`
    return new PawlError('OBJECT_MISSING', `a note that ${entry} refers to`, { object: entry })
  }
}

/** True when it is there, by this call or another one; false when the answer was lost. */
async function createdOrUnclear(store: Store, name: string, bytes: Buffer): Promise<boolean> {
  try {
    await store.create(name, [bytes])
    return true
  } catch (error) {
    if (isPawlError(error) && error.code === 'UNKNOWN_RESULT') return false
    throw error
  }
}

function notesUnder(objects: readonly StoredObject[], since: number): LaneNote[] {
  const notes: LaneNote[] = []
  for (const { name, bytes } of objects) {
    const note = sequenceOf(name) === since ? laneNoteOf(name, bytes) : null
    if (note !== null) notes.push(note)
  }
  return notes
}

const countOf = (refusals: readonly NotedRefusals[]) => refusals.reduce((sum, { rows }) => sum + rows.length, 0)

function without(refusals: readonly NotedRefusals[], ids: ReadonlySet<string>): NotedRefusals[] {
  return refusals
    .map((of) => ({ ...of, rows: of.rows.filter((row) => !ids.has(idOf(of.recording, row))) }))
    .filter(({ rows }) => rows.length > 0)
}
