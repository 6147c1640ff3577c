/**
 * Finds the rows for which Doris refuses a load: halves of it are tried until each of them stands alone.
 *
 * Doris says that it refuses rows, and shows some of them at best. So rows are sent in loads that are aborted at once; a
 * row is refused when a load of it alone is. Rows that its error log shows are tried first, which proves nothing by itself.
 * A half need not be tried when the other one turned out to be welcome. What was found welcome is not tried again, so
 * that a second search costs what is new: for an upsert, the earlier rows that take the place of refused ones. Bounded
 * in rows, in loads (each takes a label, and Doris forgets labels sooner when there are many) and in time (a promotion
 * that is given up begins anew).
 */
import { randomBytes } from 'node:crypto'
import { isPawlError, PawlError } from '../../model/errors.ts'
import { limits } from '../../model/limits.ts'
import type { Committable, StagedPart } from '../../model/manifest.ts'
import type { Store } from '../../ports/store.ts'
import { type RefusedRowRecord, refusedRecord } from '../shared/refused-rows.ts'
import type { DorisLoads, LoadRefusal } from './loads.ts'
import { type DorisForm, type PartRows, type SentRow, sentBlocks } from './rows.ts'

/** Loads that one promotion may try, and how long it may go on beginning them; a step has 74 s by default. */
const probesMax = 500
const searchMs = 40_000
const labelTailChars = 40
const keyCharsMax = 200

/** What one promotion may still spend on finding refused rows. */
export interface RefusalBudget {
  probes: number
  /** By the clock of the process; null until the first search begins. */
  endsAtMs: number | null
  /** Rows that may still be refused; null until those that were noted before are counted. */
  rows: number | null
  /** Bytes of them that may still be kept. */
  bytes: number
}

/** A budget that nothing was spent of. */
export const refusalBudget = (): RefusalBudget => ({
  probes: probesMax,
  endsAtMs: null,
  rows: null,
  bytes: limits.rejectedPerTaskBytesMax,
})

/** What a search needs. */
export interface SearchOptions {
  readonly loads: DorisLoads
  readonly store: Store
  /** Whose rows they are; also while they are staged. */
  readonly committable: Pick<Committable, 'sink' | 'lane' | 'epoch'>
  readonly incarnation: string
  readonly budget: RefusalBudget
  /** Rows of the lane's output that come before the part. */
  readonly firstRow: number
  /** How many rows of this epoch and lane were refused before, by what is noted. */
  countNoted(): Promise<number>
}

const [unknown, welcome, refused] = [0, 1, 2]

/** Refused rows of one part. */
export class RefusalSearch {
  readonly #part: StagedPart
  readonly #form: DorisForm
  readonly #label: string
  readonly #options: SearchOptions
  /** By position within the part; made for the first search, since most parts need none. */
  #judged = new Uint8Array(0)
  readonly #found: RefusedRowRecord[] = []
  #onlyFirst = false

  constructor(part: StagedPart, form: DorisForm, label: string, options: SearchOptions) {
    this.#part = part
    this.#form = form
    this.#label = label
    this.#options = options
  }

  /** What was found, by row. */
  get found(): readonly RefusedRowRecord[] {
    return [...this.#found].sort((a, b) => a.row - b.row)
  }

  /** The same, by position within the part. */
  get rows(): PartRows {
    return new Set(this.#found.map(({ row }) => row - this.#options.firstRow))
  }

  /**
   * Tries what would be sent without the rows found so far. False when no row of it is refused; the next call tries all
   * of it again. Throws `ROWS_REFUSED` when that takes more rows, loads or time than it may.
   */
  async more(): Promise<boolean> {
    const { budget, countNoted } = this.#options
    budget.rows ??= limits.refusedPerPromotionMax - (await countNoted())
    const before = this.#found.length
    for await (const rows of this.#openBlocks(this.rows)) await this.#judge(rows, false)
    // If the load is refused all the same, the table is not what it was a moment ago.
    if (this.#found.length === before) this.#judged.fill(unknown)
    return this.#found.length > before
  }

  /**
   * The refusal of what is sent without these, naming one row that is refused alone; null when there is none. Throws what
   * trying throws.
   */
  async named(without: PartRows, cause: PawlError): Promise<PawlError | null> {
    this.#onlyFirst = true
    for await (const rows of this.#openBlocks(without)) {
      await this.#judge(rows, false)
      if (this.#found.length > 0) break
    }
    const [first] = this.#found
    const { committable } = this.#options
    return first ? refusedFault(committable, this.#form, first, 'nothing of its load is committed', cause) : null
  }

  #openBlocks(without: PartRows): AsyncIterable<readonly SentRow[]> {
    if (this.#judged.length === 0) this.#judged = new Uint8Array(this.#part.rows)
    const isOpen = (row: number) => this.#judged[row] === unknown
    return sentBlocks(this.#options.store, this.#part, this.#form, without, isOpen)
  }

  /** `mustHold` says that one of the rows is refused, by what was tried before. */
  async #judge(rows: readonly SentRow[], mustHold: boolean): Promise<void> {
    if (rows.length === 0 || (this.#onlyFirst && this.#found.length > 0)) return
    const alone = rows.length === 1
    const refusal = mustHold && !alone ? null : await this.#probe(rows)
    if (refusal === null && (alone || !mustHold)) {
      for (const { row } of rows) this.#judged[row] = welcome
      return
    }
    if (alone) return this.#record(rows[0]!, refusal!.error)
    const shown = refusal === null ? new Set() : shownIn(refusal.log)
    const suspects = shown.size === 0 ? [] : rows.filter(({ line }) => shown.has(line.trim()))
    if (suspects.length > 0 && suspects.length < rows.length) {
      for (const suspect of suspects) await this.#judge([suspect], false)
      return this.#judge(
        rows.filter(({ row }) => this.#judged[row] === unknown),
        false,
      )
    }
    const middle = rows.length >>> 1
    const before = this.#found.length
    await this.#judge(rows.slice(0, middle), false)
    await this.#judge(rows.slice(middle), this.#found.length === before)
  }

  async #probe(rows: readonly SentRow[]): Promise<LoadRefusal | null> {
    const { loads, budget } = this.#options
    budget.endsAtMs ??= performance.now() + searchMs
    if (budget.probes-- <= 0 || performance.now() > budget.endsAtMs)
      throw this.#tooMany(`to find every refused row takes more than ${probesMax} loads, or ${searchMs} ms`)
    const label = `pawl-probe-${this.#label.slice(-labelTailChars)}-${randomBytes(16).toString('hex')}`
    return loads.probe(
      this.#form,
      label,
      rows.map(({ line }) => line),
    )
  }

  #record({ row, key, value }: SentRow, refusal: PawlError): void {
    const { budget, firstRow, committable, incarnation } = this.#options
    const text = String(refusal.details.reason ?? refusal.message)
    const column = /column_name\[([^\]]+)\]/.exec(text)?.[1] ?? null
    const place = { incarnation, epoch: committable.epoch, row: firstRow + row, code: 'DATA_QUALITY_ERROR', column }
    const record = refusedRecord({ ...place, reason: text, key: key.slice(0, keyCharsMax), value }, budget.bytes)
    budget.bytes -= Buffer.byteLength(value) - record.cutBytes
    this.#judged[row] = refused
    this.#found.push(record)
    if (budget.rows === null) return
    budget.rows--
    if (budget.rows < 0) throw this.#tooMany(`more than ${limits.refusedPerPromotionMax} rows are refused`)
  }

  #tooMany(why: string): PawlError {
    const [first] = this.#found
    return refusedFault(this.#options.committable, this.#form, first ?? null, why)
  }
}

/** Rows as a log shows them, each at the end of a line of its own. */
function shownIn(log: string): ReadonlySet<string> {
  return new Set([...log.matchAll(/src line ?\[(.*)\]/g)].map(([, line]) => (line ?? '').trim()))
}

/** What `deed` gives. When Doris refuses rows for which it stops, one of them is looked for, to be named. */
export async function namingRow<T>(
  deed: () => Promise<T>,
  search: RefusalSearch,
  without: PartRows = new Set(),
): Promise<T> {
  try {
    return await deed()
  } catch (error) {
    if (!isPawlError(error) || error.code !== 'ROWS_REFUSED' || error.details.lane !== undefined) throw error
    // The refusal counts, also where its row cannot be found now.
    throw (await search.named(without, error).catch(() => null)) ?? error
  }
}

/** The refusal that stops a promotion, naming a row where one is known. */
function refusedFault(
  { sink, lane, epoch }: SearchOptions['committable'],
  { table }: DorisForm,
  first: RefusedRowRecord | null,
  why: string,
  cause?: unknown,
): PawlError {
  const rowKey = first === null ? null : Buffer.from(first.key ?? '', 'base64').toString()
  const column = first?.column ?? null
  const named = first === null ? '' : `, row ${rowKey}${column === null ? '' : `, column ${column}`}: ${first.reason}`
  const fault = `sink ${sink}, lane ${lane}, epoch ${epoch}, table ${table}${named}; ${why}`
  const details = { sink, lane, epoch, table, rowKey, column, reason: first?.reason ?? why }
  return new PawlError('ROWS_REFUSED', fault, details, cause)
}
