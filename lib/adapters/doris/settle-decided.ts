/**
 * Settles a staged part whose refused rows become dead letters: first it is decided which rows are left out, then the
 * load of the others is committed.
 *
 * The decision is one note, created if absent, which also is the note of the attempt to commit: the first one counts for
 * every promoter, and is final. A load without some rows has a label of its own, made of the part's and of the rows that
 * are left out. Nobody commits before they have read the decision, and nobody commits under another label than the one
 * that follows from it; so of all loads of a part at most one is ever committed. A decision is made once the load that
 * it leads to is prepared, so that it can be kept; should Doris refuse even more afterwards, the promotion stops.
 */
import { createHash } from 'node:crypto'
import { isPawlError } from '../../model/errors.ts'
import type { StagedPart } from '../../model/manifest.ts'
import type { RefusedRowRecord } from '../shared/refused-rows.ts'
import { unavailable, unlessRetryable } from './loads.ts'
import { namingRow, RefusalSearch, type SearchOptions } from './refusals.ts'
import { bodyOf, type PartRows } from './rows.ts'
import { type DorisHandle, handleOf, type LabelledLoad, type SettleOptions, settleLoad, turnsMax } from './settle.ts'

/** What settling by decision needs. */
export interface DecidedOptions extends SearchOptions, Pick<SettleOptions, 'onForgotten'> {
  /** The rows that were decided to be left out; null when nothing was decided yet. */
  readonly decided: readonly RefusedRowRecord[] | null
  /** Decides; answers with what is decided then, or null when the lane has moved on. */
  decide(refused: readonly RefusedRowRecord[]): Promise<readonly RefusedRowRecord[] | null>
}

/** False when the lane has moved on. Throws `ROWS_REFUSED` too, and what `settle` throws. */
export async function settleDecided(part: StagedPart, options: DecidedOptions): Promise<boolean> {
  const handle = handleOf(part, options.committable)
  const { decided, load } = await decidedLoad(part, handle, options)
  if (decided === null) return false
  if (load === null) return true
  // The usual way, in one request; whatever else it may be, the state of the label tells.
  if (options.decided === null && load.txnId !== null && (await options.loads.commit(load.form, load.txnId)))
    return true
  // Whoever may have committed by now did so under this label.
  const needs = { ...options, attempted: true, noteAttempt: async () => {} }
  const without = withoutOf(decided, options.firstRow)
  await namingRow(() => settleLoad(load, needs), new RefusalSearch(part, load.form, load.label, options), without)
  return true
}

type Decided = { readonly decided: readonly RefusedRowRecord[] | null; readonly load: LabelledLoad | null }

async function decidedLoad(part: StagedPart, handle: DorisHandle, options: DecidedOptions): Promise<Decided> {
  const { firstRow, loads } = options
  const loadOf = (refused: readonly RefusedRowRecord[], txnId: string | null) => {
    const without = withoutOf(refused, firstRow)
    return without.size === part.rows ? null : loadWithout(part, handle, without, txnId, options)
  }
  if (options.decided !== null) {
    const { decided } = options
    return { decided, load: loadOf(decided, decided.length === 0 ? handle.txnId : null) }
  }
  const found = await proposal(part, handle, options)
  const decided = await options.decide(found.refused)
  const agrees = decided !== null && sameRows(decided, found.refused)
  // Nobody will commit what was not decided.
  if (decided !== null && !agrees && found.txnId !== null)
    await loads.abort(handle.form, found.txnId).catch(unlessRetryable)
  return { decided, load: decided === null ? null : loadOf(decided, agrees ? found.txnId : null) }
}

/** The rows to leave out, and the load of the others, which Doris has prepared. */
async function proposal(part: StagedPart, handle: DorisHandle, options: DecidedOptions) {
  const search = new RefusalSearch(part, handle.form, handle.label, options)
  let known = handle.txnId
  for (let idle = 0; ; ) {
    if (search.rows.size === part.rows) return { refused: search.found, txnId: null }
    try {
      const txnId = await prepared(loadWithout(part, handle, search.rows, known, options), options)
      return { refused: search.found, txnId }
    } catch (error) {
      if (!isPawlError(error) || error.code !== 'ROWS_REFUSED') throw error
      // What is refused together and not alone is nobody's row; once may have been the table of a moment ago.
      if (!(await search.more()) && idle++ > 0) throw error
    }
    known = null
  }
}

/** The transaction of a load that is prepared; null for one that is committed. */
async function prepared({ form, label, txnId, body }: LabelledLoad, options: DecidedOptions): Promise<string | null> {
  const { loads, committable } = options
  let known = txnId
  for (let turn = 0; turn < turnsMax; turn++) {
    const state = await loads.state(form, label)
    if (state === 'COMMITTED' || state === 'VISIBLE') return null
    if (state === 'PREPARE') throw unavailable(committable.sink, `another load under label ${label} is under way`)
    if (state === 'PRECOMMITTED' && known !== null) return known
    known = (await loads.prepare(form, label, body))?.txnId ?? null
  }
  throw unavailable(committable.sink, `the load under label ${label} keeps changing`)
}

function loadWithout(
  part: StagedPart,
  { form, label }: DorisHandle,
  without: PartRows,
  txnId: string | null,
  { store }: DecidedOptions,
): LabelledLoad {
  const body = () => bodyOf(store, part, form, without)
  return { form, label: without.size === 0 ? label : labelWithout(label, without), txnId, body }
}

const digestChars = 40

/** As long as the part's label, and as different from others. */
function labelWithout(label: string, without: PartRows): string {
  const rows = [...without].sort((a, b) => a - b)
  const digest = createHash('sha256')
    .update(JSON.stringify([label, rows]))
    .digest('hex')
  return `${label.slice(0, -digestChars)}${digest.slice(0, digestChars)}`
}

function withoutOf(refused: readonly RefusedRowRecord[], firstRow: number): PartRows {
  return new Set(refused.map(({ row }) => row - firstRow))
}

function sameRows(a: readonly RefusedRowRecord[], b: readonly RefusedRowRecord[]): boolean {
  return a.length === b.length && a.every(({ row }, index) => row === b[index]?.row)
}
