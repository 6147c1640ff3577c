/**
 * Tumbling event-time windows by key.
 *
 * A record is late against the watermark with which its epoch began; windows fire at the epoch's end against the new
 * one: results depend on the plan alone. A window that has fired emits again for late records that it still takes,
 * until `allowedLatenessMs` after its end; then it is dropped. Emitted timestamps are the window's end − 1.
 */
import type { Key } from '../../state/key-groups.ts'
import type { WindowState } from '../../state/window-state.ts'
import type { AnyFold } from '../graph.ts'
import type { TumblingWindow } from '../language.ts'
import { windowStartOf } from '../window.ts'
import { type Cell, Folder, rejected } from './fold.ts'
import type { ShardedStates } from './sharded-states.ts'
import type { KeyedOperator, Push, TaskParts } from './task-parts.ts'

/** What a windowed fold is built from. */
export interface WindowOptions {
  readonly id: string
  readonly fold: AnyFold
  readonly window: TumblingWindow
  /** The watermark with which the epoch began. */
  readonly watermarkMs: number | null
  readonly states: ShardedStates<WindowState<unknown>>
  readonly next: Push
  /** Takes late records. */
  readonly late: Push
}

/** The operator of one task. */
export function windowOperator(options: WindowOptions, parts: TaskParts): KeyedOperator {
  const { id, window, watermarkMs, states, next, late } = options
  const { sizeMs, allowedLatenessMs } = window
  const { context } = parts
  const folder = new Folder(id, options.fold, parts)
  const windows = new Map<number, Map<Key, Cell>>()
  const lateUpTo = watermarkMs === null ? Number.NEGATIVE_INFINITY : watermarkMs - allowedLatenessMs + 1 - sizeMs
  let lastStart = Number.NaN
  let lastCells = new Map<Key, Cell>()

  const cellsOf = (start: number): Map<Key, Cell> => {
    if (start === lastStart) return lastCells
    let cells = windows.get(start)
    if (cells === undefined) {
      cells = new Map()
      windows.set(start, cells)
    }
    lastStart = start
    lastCells = cells
    return cells
  }

  const push: Push = (value) => {
    const start = windowStartOf(context.timestampMs, sizeMs)
    if (start <= lateUpTo) {
      late(value)
      return
    }
    const key = context.keyValue as Key
    const cells = cellsOf(start)
    const cell = cells.get(key)
    if (cell !== undefined) folder.add(cell, value)
    else {
      const opened = folder.open(states.of(key).get(start, key), value)
      if (opened !== null) cells.set(key, opened)
    }
  }

  const store = (): void => {
    for (const [start, cells] of windows)
      for (const [state, entries] of states.split(cells))
        for (const [key, cell] of entries) state.set(start, key, cell.accumulator)
  }

  const fire = (start: number, key: Key, accumulator: unknown): void => {
    context.key = key
    context.timestampMs = start + sizeMs - 1
    const result = folder.result(accumulator, { key, window: { startMs: start, endMs: start + sizeMs } })
    if (result !== rejected) next(result)
  }

  const finish = (newWatermarkMs: number | null): void => {
    store()
    if (newWatermarkMs === null) return
    for (const state of states.tables) {
      for (const [start, key, accumulator] of state.due(newWatermarkMs, sizeMs)) fire(start, key, accumulator)
      state.expire(newWatermarkMs, sizeMs, allowedLatenessMs)
    }
  }

  return { push, finish }
}
