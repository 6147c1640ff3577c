/**
 * `aggregate`, `reduce` and `count`: state by key that outlives the epoch.
 *
 * Emits once a key and epoch, shard by shard in first-touch order, or for each record. A result carries the largest
 * event time of the records that touched its key in this epoch.
 */

import type { AggregateState } from '../../state/aggregate-state.ts'
import type { Key } from '../../state/key-groups.ts'
import type { AnyFold } from '../graph.ts'
import { type Cell, Folder, rejected } from './fold.ts'
import type { ShardedStates } from './sharded-states.ts'
import type { KeyedOperator, Push, TaskParts } from './task-parts.ts'

/** What an aggregate is built from. */
export interface AggregateOptions {
  readonly id: string
  readonly fold: AnyFold
  readonly emit: 'epoch' | 'record'
  readonly states: ShardedStates<AggregateState<unknown>>
  readonly next: Push
}

/** The operator of one task. */
export function aggregateOperator(options: AggregateOptions, parts: TaskParts): KeyedOperator {
  const { id, emit, states, next } = options
  const { context } = parts
  const folder = new Folder(id, options.fold, parts)
  const cells = new Map<Key, Cell>()

  const emitResult = (key: Key, accumulator: unknown): void => {
    const result = folder.result(accumulator, { key })
    if (result !== rejected) next(result)
  }

  const push: Push = (value) => {
    const key = context.keyValue as Key
    const cell = cells.get(key)
    if (cell === undefined) {
      const opened = folder.open(states.of(key).get(key), value)
      if (opened === null) return
      cells.set(key, opened)
      if (emit === 'record') emitResult(key, opened.accumulator)
    } else if (folder.add(cell, value) && emit === 'record') emitResult(key, cell.accumulator)
  }

  const finish = (): void => {
    for (const [state, entries] of states.split(cells)) {
      for (const [key, cell] of entries) {
        state.set(key, cell.accumulator)
        if (emit === 'record') continue
        context.key = key
        context.timestampMs = cell.timestampMs
        emitResult(key, cell.accumulator)
      }
    }
    cells.clear()
  }

  return { push, finish }
}
