/**
 * The log of a table as its writers see it: the newest state, and one more entry after it.
 *
 * An entry is created only under the number after the newest, if that number is free; who comes second reads what the
 * first one wrote and decides anew. So what a decision saw is what its entry follows, as in a compare-and-set. What is
 * remembered of the table is trusted only while the entry that it ends with is still the same: a log that was restored,
 * begun again or cleaned up is read from its checkpoint.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { isPawlError, PawlError } from '../../model/errors.ts'
import { sha256Of } from '../shared/staged-objects.ts'
import type { TableFiles } from '../shared/table-files.ts'
import { type Action, entryBytes, entryName, logFolder, versionDigits } from './actions.ts'
import { writeCheckpoint } from './checkpoint-write.ts'
import { firstHole, parseListing } from './log-listing.ts'
import { readEntries, replay } from './log-replay.ts'
import { afterActions, noTable, stateKinds, type TableState } from './table-state.ts'

/** What to write after a state, and what the caller is told then; null: nothing. */
export interface Decision<T> {
  readonly actions: readonly Action[] | null
  readonly answer: T
}

/** Decides on a state. `unclear`: an earlier try may have been written, or may still be, under the next number. */
export type Decide<T> = (state: TableState, unclear: boolean) => Decision<T>

const triesMax = 200
const budgetMs = 60_000
const pauseMsMax = 250

/** One table's log; calls of one process take turns. */
export class TableLog {
  readonly #files: TableFiles
  readonly #checkpointEvery: number
  #state: TableState = noTable
  #turn: Promise<unknown> = Promise.resolve()

  constructor(files: TableFiles, checkpointEvery: number) {
    this.#files = files
    this.#checkpointEvery = checkpointEvery
  }

  /** The newest state. Throws `DELTA_LOG_DAMAGED` and what the files throw. */
  state(): Promise<TableState> {
    return this.#inTurn(() => this.#refresh())
  }

  /** Writes what `decide` wants after the newest state. Throws `SINK_UNAVAILABLE` when others are always faster. */
  change<T>(decide: Decide<T>): Promise<T> {
    return this.#inTurn(() => this.#change(decide))
  }

  #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(act)
    this.#turn = result.catch(() => undefined)
    return result
  }

  async #change<T>(decide: Decide<T>): Promise<T> {
    const startMs = performance.now()
    let unclear = false
    for (let tries = 1; tries <= triesMax && performance.now() - startMs < budgetMs; tries++) {
      const state = await this.#refresh()
      const { actions, answer } = decide(state, unclear)
      if (actions === null) return answer
      const written = await this.#append(state, actions)
      if (written === 'created') {
        await this.#checkpointIfDue()
        return answer
      }
      if (written === 'unclear') unclear = true
      await pause(Math.random() * Math.min(pauseMsMax, 5 * 2 ** Math.min(tries, 10)))
    }
    const code = unclear ? 'UNKNOWN_RESULT' : 'SINK_UNAVAILABLE'
    throw new PawlError(code, `${this.#files.location}: other writers of its log were always faster`)
  }

  async #append(state: TableState, actions: readonly Action[]): Promise<'created' | 'exists' | 'unclear'> {
    const version = state.version + 1
    const bytes = entryBytes(actions)
    try {
      const result = await this.#files.create(entryName(version), bytes)
      if (result === 'created')
        this.#state = { ...afterActions(state, actions), version, entrySha256: sha256Of([bytes]) }
      return result
    } catch (error) {
      if (isPawlError(error) && error.code === 'UNKNOWN_RESULT') return 'unclear'
      throw error
    }
  }

  async #refresh(): Promise<TableState> {
    const known = this.#state
    this.#state = (await this.#follow(known)) ?? (await this.#load())
    return this.#state
  }

  /** The state after what was written since; null when the log is not the one that is known. */
  async #follow(known: TableState): Promise<TableState | null> {
    if (known.entrySha256 === '') return null
    const listing = parseListing(await this.#files.list(logFolder, versionDigits(known.version)))
    if (!listing.entries.has(known.version) || firstHole(listing, known.version) !== null) return null
    const last = await readEntries(this.#files, known.version - 1, known.version, new Set())
    if (last?.entrySha256 !== known.entrySha256) return null
    const read = await readEntries(this.#files, known.version, listing.newest, stateKinds)
    if (read === null) return null
    return { ...afterActions(known, read.actions), version: listing.newest, entrySha256: read.entrySha256 }
  }

  async #load(): Promise<TableState> {
    const { actions, version, entrySha256 } = await replay(this.#files, stateKinds)
    return version < 0 ? noTable : { ...afterActions(noTable, actions), version, entrySha256 }
  }

  async #checkpointIfDue(): Promise<void> {
    const { version, metaData } = this.#state
    const said = Number(metaData?.configuration['delta.checkpointInterval'])
    const every = Number.isSafeInteger(said) && said > 0 ? said : this.#checkpointEvery
    if (version > 0 && version % every === 0) await writeCheckpoint(this.#files, Date.now())
  }
}
