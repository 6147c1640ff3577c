/**
 * Gather refused: what sinks refused and recorded, for the next epoch to carry to the dead letters.
 *
 * Reads:  the lanes that the head names, in their sinks. Writes: nothing; the plan's list of rows, for `open`.
 * Safe to repeat because: rows stay in the sink until the epoch that carries them is committed and finalize forgets
 * them, and only a promotion adds rows; so the same head always finds the same ones. A sink that does not answer is
 * asked again for a later epoch.
 */
import { kindOf, PawlError } from '../model/errors.ts'
import type { Head, SinkLane } from '../model/head.ts'
import { limits } from '../model/limits.ts'
import type { CarriedRows, RefusedLane, RefusedPlace, RejectedRecord } from '../model/manifest.ts'
import { laneName, refusedName } from '../model/names.ts'
import { amend } from './amend.ts'
import { type Job, openSink } from './job.ts'
import { seal, unseal } from './seal.ts'

/** Refused rows by lane, and the lanes that may hold more. */
export interface Gathered {
  readonly lanes: readonly RefusedLane[]
  readonly more: readonly SinkLane[]
}

/** Throws `DEAD_LETTERS_STRANDED` when the pipeline file has no sink for them, `SINK_MISSING`. */
export async function gatherRefused(job: Job, head: Head): Promise<Gathered | null> {
  const refusing = head.refusing ?? []
  if (refusing.length === 0) return null
  const lanes: RefusedLane[] = []
  const more: SinkLane[] = []
  const left = { rows: limits.refusedPerEpochMax, bytes: limits.refusedPerEpochBytesMax }
  for (const { sink: id, lane } of refusing) {
    const name = laneName(id, lane)
    const sink = await openSink(job, id, head.incarnation)
    if (job.compiled.topology.deadLetterSink === null || sink.refused === undefined)
      throw new PawlError('DEAD_LETTERS_STRANDED', `lane ${name} in ${sink.target}`, { lane: name })
    const full = left.rows <= 0 || left.bytes <= 0
    const rows = full ? [] : await asked(() => sink.refused?.(lane, left))
    if (rows === null || full) {
      more.push({ sink: id, lane })
      continue
    }
    const bytes = rows.reduce((sum, { key, value }) => sum + (key?.length ?? 0) + (value?.length ?? 0), 0)
    if (rows.length >= left.rows || bytes >= left.bytes) more.push({ sink: id, lane })
    left.rows -= rows.length
    left.bytes -= bytes
    if (rows.length > 0) lanes.push({ sink: id, lane, rows })
  }
  return { lanes, more }
}

/** Null when the sink does not answer for now. */
async function asked<T>(deed: () => Promise<T> | undefined): Promise<T | null> {
  try {
    return (await deed()) ?? null
  } catch (error) {
    if (kindOf(error) === 'Retryable') return null
    throw error
  }
}

/** Lanes that turned out to hold nothing are not asked again. */
export async function settleRefusing(job: Job, head: Head, { more }: Gathered): Promise<void> {
  if (more.length === head.refusing?.length) return
  await amend(job, (now) => (now.revision === head.revision ? { ...now, refusing: more } : null))
}

/** Stores what the attempt carries; undefined when that is nothing. */
export async function sealRefused(job: Job, head: Head, attempt: string, gathered: Gathered | null) {
  if (gathered === null || gathered.lanes.length === 0) return undefined
  const object = await seal(job.place.store, refusedName(head.pipeline, head.incarnation, attempt), gathered.lanes)
  const rows = gathered.lanes.reduce((sum, lane) => sum + lane.rows.length, 0)
  return { object, rows, more: gathered.more } satisfies CarriedRows
}

/** The rows that an epoch carries, by lane. */
export async function refusedOf(job: Job, carried: CarriedRows | undefined): Promise<readonly RefusedLane[]> {
  return carried === undefined ? [] : unseal<RefusedLane[]>(job.place.store, carried.object)
}

/** The dead letters of refused rows; no record of a source is at fault, so coordinates are empty. */
export function lettersOf(lanes: readonly RefusedLane[], timestampMs: number): RejectedRecord[] {
  return lanes.flatMap(({ sink, lane, rows }) =>
    rows.map(({ incarnation, epoch, row, code, column, reason, key, value, cutBytes }) => {
      const refused: RefusedPlace = { sink, lane, incarnation, epoch, row, code, column }
      const error = { name: code, message: reason }
      const nowhere = { source: '', topic: '', partition: -1, offset: '-1' }
      return { ...nowhere, timestampMs, operator: sink, error, key, value, cutBytes, refused }
    }),
  )
}

/** Forgets in the sinks what a committed epoch has carried. Throws what the sinks throw. */
export async function forgetRefused(job: Job, head: Head, carried: CarriedRows | undefined): Promise<void> {
  for (const { sink: id, lane, rows } of await refusedOf(job, carried)) {
    const sink = await openSink(job, id, head.incarnation)
    const ids = rows.map((row) => row.id)
    await sink.forget?.(lane, ids)
  }
}
