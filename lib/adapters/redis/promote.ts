/**
 * Running the script, and what becomes of rows that it refuses.
 *
 * Apart from the sink because it may take several turns: the script refuses before it writes anything, and is run again
 * without the rows that it refused, which it then records in the step that moves the marker.
 */
import { createHash } from 'node:crypto'
import { PawlError } from '../../model/errors.ts'
import { limits } from '../../model/limits.ts'
import type { CommitPermit, Committable, RefusedRow } from '../../model/manifest.ts'
import type { PromoteResult, Sink } from '../../ports/sink.ts'
import { markerAfter } from '../shared/markers.ts'
import { refusedRecord, refusedRow, withinBytes } from '../shared/refused-rows.ts'
import type { SessionPool } from '../shared/session-pool.ts'
import { isReply, translated } from './errors.ts'
import { markerKey, markerText, parseMarker, type RedisLane, refusedKey } from './keys.ts'
import { promoteScript } from './script.ts'
import type { RedisSession } from './session.ts'
import type { RedisForm, ScriptRows } from './staging.ts'

/** One promotion. */
export interface Promotion {
  readonly committable: Committable
  readonly permit: CommitPermit
  readonly form: RedisForm
  readonly lane: RedisLane
  /** The sink was put back: what it refuses again gets another id. */
  readonly healing: boolean
  /** Refused rows are recorded; otherwise the first one stops the promotion. */
  readonly carries: boolean
}

/** Rows that the script refused, by their position among those that it got: the position, then what the key holds. */
type Others = readonly (number | string)[]

type ScriptAnswer = readonly [0, string | null] | readonly [1] | readonly [2, Others]

/** Writes the rows. Throws `ROWS_REFUSED`, `SINK_SCHEMA_INVALID`, `UNKNOWN_RESULT` and what the session throws. */
export async function promoteRows(
  session: RedisSession,
  promotion: Promotion,
  rows: ScriptRows,
): Promise<PromoteResult> {
  const refused: RefusedRow[] = []
  let left: PlacedRows = { ...rows, places: null }
  for (;;) {
    const answer = await runScript(session, promotion, left, refused)
    if (answer[0] === 0) return { result: 'refused', found: answer[1] === null ? null : parseMarker(answer[1]) }
    if (answer[0] === 1)
      return refused.length === 0 ? { result: 'promoted' } : { result: 'promoted', refused: refused.length }
    const [, others] = answer
    const count = refused.length + others.length / 2
    if (!promotion.carries || count > limits.refusedPerPromotionMax) throw refusalOf(promotion, left, others)
    left = withoutOthers(promotion, left, others, refused)
  }
}

/** Rows of type `string` in pairs of arguments, and where they stood in the lane's output; null: all are there. */
interface PlacedRows extends ScriptRows {
  readonly places: readonly number[] | null
}

function withoutOthers(promotion: Promotion, rows: PlacedRows, others: Others, refused: RefusedRow[]): PlacedRows {
  const kinds = new Map<number, string>()
  for (let i = 0; i < others.length; i += 2) kinds.set(Number(others[i]), String(others[i + 1]))
  const { incarnation } = promotion.permit
  const { epoch } = promotion.committable
  const keys: ScriptRows['keys'] = []
  const args: ScriptRows['args'] = []
  const places: number[] = []
  for (const [index, key] of rows.keys.entries()) {
    const row = rows.places?.[index] ?? index
    const [op, content] = rows.args.slice(2 * index, 2 * index + 2)
    const kind = kinds.get(index)
    if (kind === undefined) {
      keys.push(key)
      args.push(op!, content!)
      places.push(row)
      continue
    }
    const value = op === '0' ? null : content!
    const place = { incarnation, epoch, row, code: 'WRONGTYPE', column: null }
    const refusal = { ...place, reason: reasonOf(key, kind), key, value }
    refused.push(promotion.healing ? refusedRow(refusal) : { id: idOf(promotion, row), ...refusedRecord(refusal) })
  }
  return { keys, args, places }
}

/** Each try records a row under the same id, so that what a crash left of one in the log of Redis adds nothing. */
function idOf({ committable: { epoch, sink, lane }, permit }: Promotion, row: number): string {
  const place = [permit.incarnation, sink, lane, epoch, permit.manifest.sha256, row]
  return createHash('sha256').update(JSON.stringify(place)).digest('hex').slice(0, 32)
}

const reasonOf = (key: string | Buffer, kind: string) => `key ${key} is a ${kind}, not a string`

function refusalOf({ committable: { sink, lane, epoch } }: Promotion, { keys }: PlacedRows, others: Others): PawlError {
  const rowKey = String(keys[Number(others[0])])
  const reason = reasonOf(rowKey, String(others[1]))
  const fault = `sink ${sink}, lane ${lane}, epoch ${epoch}, row ${rowKey}: ${reason}`
  return new PawlError('ROWS_REFUSED', fault, { sink, lane, epoch, rowKey, reason, rows: others.length / 2 })
}

async function runScript(
  session: RedisSession,
  { committable, permit, form, lane }: Promotion,
  { keys, args }: ScriptRows,
  refused: readonly RefusedRow[],
): Promise<ScriptAnswer> {
  const names = [markerKey(form.key, lane), refusedKey(form.key, lane), ...keys]
  const markers = [markerText(committable.prev), markerText(markerAfter(committable, permit))]
  const recordings = refused.flatMap((row) => [row.id, JSON.stringify(row)])
  const argv = [promoteScript(form.type), names.length, ...names, ...markers, refused.length, ...recordings].concat(
    args,
  )
  try {
    return (await session.run('EVAL', argv)) as ScriptAnswer
  } catch (error) {
    const { sink, epoch } = committable
    const { code, cause, details } = translated(error, sink)
    const place = { sink, lane: lane.lane, epoch, key: form.key, reason: details.reason ?? null }
    const fault = `sink ${sink}, lane ${lane.lane}, epoch ${epoch}, key ${form.key}: ${place.reason}`
    throw new PawlError(isReply(error) ? code : 'UNKNOWN_RESULT', fault, place, cause)
  }
}

/** The part of the sink that reads and forgets what was recorded, in one hash a lane. */
export function refusedRows(
  sessions: SessionPool<RedisSession>,
  keyOf: (lane: number) => string,
): Required<Pick<Sink, 'refused' | 'forget'>> {
  return {
    async refused(lane, max) {
      const texts = (await sessions.use((session) => session.call('HVALS', [keyOf(lane)]))) as string[]
      const rows = texts.map((text) => JSON.parse(text) as RefusedRow)
      rows.sort((a, b) => a.epoch - b.epoch || a.row - b.row || (a.id < b.id ? -1 : 1))
      return withinBytes(rows.slice(0, max.rows), max.bytes)
    },
    async forget(lane, ids) {
      if (ids.length > 0) await sessions.use((session) => session.call('HDEL', [keyOf(lane), ...ids]))
    },
  }
}
