/**
 * Folding values into accumulators: what aggregates and windows have in common.
 *
 * Within an epoch a key's accumulator lives in a cell, so that each record costs one look-up; cells are written to
 * the state when the epoch ends. A fold that throws leaves the accumulator as it was: a new one is not kept, and
 * one that the user's function may have changed in place is put back from a copy (only under policies that go on).
 * What leaves or enters as an accumulator is copied, so that nobody downstream can change state from outside.
 */
import type { Key } from '../../state/key-groups.ts'
import type { AnyFold } from '../graph.ts'
import { isThenable, promiseError, type TaskParts } from './task-parts.ts'

/** The accumulator of one key in one epoch. */
export interface Cell {
  accumulator: unknown
  /** Largest event time that was folded in. */
  timestampMs: number
}

/** Looks up what the parent epoch left for a key; undefined when there is nothing. */
export type Stored = (key: Key) => unknown

/** A fold bound to one operator of one task. */
export class Folder {
  readonly #id: string
  readonly #fold: AnyFold
  readonly #parts: TaskParts
  readonly #copies: boolean

  constructor(id: string, fold: AnyFold, parts: TaskParts) {
    this.#id = id
    this.#fold = fold
    this.#parts = parts
    this.#copies = parts.rejections.policy !== 'fail'
  }

  /** The first value of a key in this epoch, on what is stored; null when it was rejected. */
  open(stored: unknown, value: unknown): Cell | null {
    const { context, rejections } = this.#parts
    const { create, add } = this.#fold
    const copy = this.#copies ? copyOf(stored) : stored
    let accumulator: unknown
    try {
      if (copy !== undefined) accumulator = add(copy, value, context)
      else accumulator = create === null ? copyOf(value) : add(create(), value, context)
      checkAccumulator(accumulator)
    } catch (error) {
      rejections.reject('OPERATOR_FAILED', this.#id, error)
      return null
    }
    return { accumulator, timestampMs: context.timestampMs }
  }

  /** One more value; false when it was rejected. */
  add(cell: Cell, value: unknown): boolean {
    const { context, rejections } = this.#parts
    const before = cell.accumulator
    const copy = this.#copies && typeof before === 'object' ? copyOf(before) : before
    try {
      const accumulator = this.#fold.add(before, value, context)
      if (typeof accumulator !== 'number') checkAccumulator(accumulator)
      cell.accumulator = accumulator
    } catch (error) {
      cell.accumulator = copy
      rejections.reject('OPERATOR_FAILED', this.#id, error)
      return false
    }
    if (context.timestampMs > cell.timestampMs) cell.timestampMs = context.timestampMs
    return true
  }

  /** What is emitted for an accumulator, a copy when it is the accumulator itself; `rejected` when the user's function threw. */
  result(accumulator: unknown, context: unknown): unknown {
    const { result } = this.#fold
    if (result === null) return copyOf(accumulator)
    try {
      const value = result(accumulator, context)
      if (isThenable(value)) throw promiseError()
      return value
    } catch (error) {
      this.#parts.rejections.reject('OPERATOR_FAILED', this.#id, error)
      return rejected
    }
  }
}

/** Stands for a result that was rejected. */
export const rejected: unique symbol = Symbol('rejected')

/** A deep copy; plain objects and arrays by hand, since `structuredClone` costs twenty times as much. */
function copyOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(copyOf)
  if (Object.getPrototypeOf(value) !== Object.prototype) return structuredClone(value)
  const copy: Record<string, unknown> = {}
  for (const name of Object.keys(value)) copy[name] = copyOf((value as Record<string, unknown>)[name])
  return copy
}

function checkAccumulator(accumulator: unknown): void {
  if (accumulator === undefined) throw new TypeError('it returned undefined as the accumulator')
  if (isThenable(accumulator)) throw promiseError()
}
