/**
 * `map`, `filter`, `flatMap` and `withKey` as push functions.
 *
 * Each guards the call of the user's function and nothing else. What `flatMap` returns is read to its end inside
 * the guard, so that a generator that throws half-way emits nothing.
 */
import type { AnyMapper } from '../graph.ts'
import { isThenable, type Push, promiseError, type TaskParts } from './task-parts.ts'

type Build = (id: string, fn: AnyMapper, next: Push, parts: TaskParts) => Push

const mapPush: Build =
  (id, fn, next, { context, rejections }) =>
  (value) => {
    let result: unknown
    try {
      result = fn(value, context)
      if (typeof result === 'object' && isThenable(result)) throw promiseError()
    } catch (error) {
      rejections.reject('OPERATOR_FAILED', id, error)
      return
    }
    next(result)
  }

const filterPush: Build =
  (id, fn, next, { context, rejections }) =>
  (value) => {
    let kept: unknown
    try {
      kept = fn(value, context)
      if (typeof kept === 'object' && isThenable(kept)) throw promiseError()
    } catch (error) {
      rejections.reject('OPERATOR_FAILED', id, error)
      return
    }
    if (kept) next(value)
  }

const flatMapPush: Build =
  (id, fn, next, { context, rejections }) =>
  (value) => {
    let results: unknown[]
    try {
      results = materialized(fn(value, context))
    } catch (error) {
      rejections.reject('OPERATOR_FAILED', id, error)
      return
    }
    for (let i = 0; i < results.length; i++) next(results[i])
  }

const withKeyPush: Build =
  (id, fn, next, { context, rejections }) =>
  (value) => {
    let key: unknown
    try {
      key = fn(value, context)
      if (typeof key === 'object' && isThenable(key)) throw promiseError()
    } catch (error) {
      rejections.reject('OPERATOR_FAILED', id, error)
      return
    }
    const { keyPending, keyValue } = context
    context.key = key
    next(value)
    context.keyPending = keyPending
    context.keyValue = keyValue
  }

/** Builders of push functions by kind of node. */
export const statelessPush: Readonly<Record<'map' | 'filter' | 'flatMap' | 'withKey', Build>> = Object.freeze({
  map: mapPush,
  filter: filterPush,
  flatMap: flatMapPush,
  withKey: withKeyPush,
})

function materialized(results: unknown): unknown[] {
  if (isThenable(results)) throw promiseError()
  const list = Array.isArray(results) ? results : Array.from(iterable(results))
  for (let i = 0; i < list.length; i++) if (typeof list[i] === 'object' && isThenable(list[i])) throw promiseError()
  return list
}

function iterable(results: unknown): Iterable<unknown> {
  if (typeof results === 'object' && results !== null && Symbol.iterator in results) return results as Iterable<unknown>
  throw new TypeError(`it returned ${results === null ? 'null' : typeof results}, which is no list of values`)
}
