/**
 * Writes keys and values in blocks of columns.
 *
 * A block of plain values costs one `JSON.stringify`; a block that holds anything else is written in tagged form,
 * alone. Blocks aim at a fixed number of bytes, by what the block before them took.
 */
import { PawlError } from '../model/errors.ts'
import type { Key } from './key-groups.ts'
import { assembleSnapshotFile, frame, frameKind, type SnapshotHeader } from './snapshot-file.ts'
import { isPlain, tagged, Unstorable } from './values.ts'

const blockBytes = 256 * 1024
/** Characters of JSON; half of what a string of V8 can be. */
const blockLengthMax = 2 ** 28
const blockEntriesMax = 8192
const blockEntriesFirst = 512

type Run = readonly [group: number, keys: Key[], values: unknown[]]

export class SnapshotWriter {
  readonly #operator: string
  readonly #lengthMax: number
  readonly #blocks: Buffer[] = []
  #runs: Run[] = []
  #pending = 0
  #blockEntries = blockEntriesFirst
  #entries = 0

  /** `operator` is named in errors; `lengthMax` bounds the JSON of a block, and so of a value. */
  constructor(operator: string, lengthMax = blockLengthMax) {
    this.#operator = operator
    this.#lengthMax = lengthMax
  }

  /** Adds one key with its value. Throws `ENCODE_FAILED` naming operator and key, here or in a later call. */
  set(group: number, key: Key, value: unknown): void {
    const run = this.#runs.at(-1)
    if (run === undefined || run[0] !== group) this.#runs.push([group, [key], [value]])
    else {
      run[1].push(key)
      run[2].push(value)
    }
    if (++this.#pending >= this.#blockEntries) this.#flush()
  }

  /** Adds the deletion of keys. */
  remove(group: number, keys: readonly Key[]): void {
    for (let from = 0; from < keys.length; from += blockEntriesMax) {
      const part = keys.slice(from, from + blockEntriesMax)
      this.#add(frameKind.remove, part.length, [
        [group, part.every(isPlainKey) ? part : part.map((key) => tagged(key))],
      ])
    }
  }

  /** Adds the end of whole groups. */
  drop(groups: readonly number[]): void {
    if (groups.length > 0) this.#add(frameKind.drop, groups.length, groups)
  }

  /** Adds that groups have fired. */
  fired(groups: readonly number[]): void {
    this.#flush()
    if (groups.length > 0) this.#add(frameKind.fired, groups.length, groups)
  }

  /** The chunks of the file and the number of its entries. */
  finish(header: Omit<SnapshotHeader, 'entries'>): { readonly entries: number; readonly chunks: readonly Buffer[] } {
    this.#flush()
    const entries = this.#entries
    return { entries, chunks: assembleSnapshotFile({ ...header, entries }, this.#blocks) }
  }

  #flush(): void {
    if (this.#pending === 0) return
    const runs = this.#runs
    const entries = this.#pending
    this.#runs = []
    this.#pending = 0
    const before = this.#blocks.length
    this.#addRuns(runs, entries)
    let bytes = 0
    for (let i = before; i < this.#blocks.length; i++) bytes += this.#blocks[i].length
    const fitting = Math.round((entries * blockBytes) / bytes)
    this.#blockEntries = Math.max(1, Math.min(blockEntriesMax, fitting, entries * 4))
  }

  #addRuns(runs: readonly Run[], entries: number): void {
    const plain = runs.every(([, keys, values]) => keys.every(isPlainKey) && values.every((value) => isPlain(value)))
    try {
      if (plain) this.#add(frameKind.set, entries, runs)
      else
        this.#add(
          frameKind.setTagged,
          entries,
          runs.map((run) => this.#taggedRun(run)),
        )
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      if (entries === 1) throw this.#refused(runs[0][1][0], `it is too large (${error.message})`, error)
      for (const half of halves(runs))
        this.#addRuns(
          half,
          half.reduce((sum, [, keys]) => sum + keys.length, 0),
        )
    }
  }

  #add(kind: number, entries: number, payload: unknown): void {
    this.#blocks.push(frame(kind, entries, payload, this.#lengthMax))
    this.#entries += entries
  }

  #taggedRun([group, keys, values]: Run): unknown {
    return [group, keys.map((key) => tagged(key)), values.map((value, i) => this.#taggedValue(keys[i], value))]
  }

  #taggedValue(key: Key, value: unknown): unknown {
    try {
      return tagged(value)
    } catch (error) {
      if (!(error instanceof Unstorable)) throw error
      throw this.#refused(key, `${error.path === '' ? 'it is' : `${error.path} is`} ${error.message}`, error)
    }
  }

  #refused(key: Key, reason: string, cause: unknown): PawlError {
    const shown = JSON.stringify(key).slice(0, 200)
    const fault = `state of operator "${this.#operator}", key ${shown}: ${reason}`
    return new PawlError('ENCODE_FAILED', fault, { operator: this.#operator, key: shown }, cause)
  }
}

function isPlainKey(key: Key): boolean {
  return typeof key === 'string' || Number.isFinite(key)
}

function halves(runs: readonly Run[]): readonly (readonly Run[])[] {
  const middle = runs.length >> 1
  if (runs.length > 1) return [runs.slice(0, middle), runs.slice(middle)]
  const [group, keys, values] = runs[0]
  const half = keys.length >> 1
  return [[[group, keys.slice(0, half), values.slice(0, half)]], [[group, keys.slice(half), values.slice(half)]]]
}
