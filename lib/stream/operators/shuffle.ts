/**
 * `keyBy`: gives each value its key and leads it to the operators behind.
 *
 * In a fused task that is a call; in any other the value is written to a segment of the shard that owns the key.
 */
import { type Key, shardOf } from '../../state/key-groups.ts'
import type { AnyMapper } from '../graph.ts'
import type { ShuffleSegment } from '../program.ts'
import { SegmentWriter } from '../segment.ts'
import type { Push, TaskParts } from './task-parts.ts'

/** The `keyBy` of one task; `next` finds the key in the context. */
export function keyByPush(id: string, fn: AnyMapper, next: Push, { context, rejections }: TaskParts): Push {
  return (value) => {
    let key: unknown
    try {
      key = fn(value, context)
      if (typeof key !== 'string' && (typeof key !== 'number' || Number.isNaN(key))) throw keyError(key)
    } catch (error) {
      rejections.reject('OPERATOR_FAILED', id, error)
      return
    }
    const { keyPending, keyValue } = context
    context.keyPending = false
    context.keyValue = key
    next(value)
    context.keyPending = keyPending
    context.keyValue = keyValue
  }
}

/** Shuffle output of one task to one later stage. */
export class ShuffleOperator {
  readonly #stage: number
  readonly #keyGroups: number
  readonly #writers: readonly SegmentWriter[]
  readonly #parts: TaskParts

  constructor(stage: number, shards: number, keyGroups: number, parts: TaskParts) {
    this.#stage = stage
    this.#keyGroups = keyGroups
    this.#writers = Array.from({ length: shards }, () => new SegmentWriter())
    this.#parts = parts
  }

  get bufferedBytes(): number {
    return this.#writers.reduce((sum, writer) => sum + writer.bytes, 0)
  }

  /** Where the `keyBy` node at `index` pushes to. A value that no segment can hold is rejected at its id. */
  pushOf(id: string, index: number): Push {
    const { context, rejections } = this.#parts
    const writers = this.#writers
    const shards = writers.length
    return (value) => {
      const shard = shards === 1 ? 0 : shardOf(context.keyValue as Key, shards, this.#keyGroups)
      try {
        writers[shard].add(context, index, value)
      } catch (error) {
        rejections.reject('ENCODE_FAILED', id, error)
      }
    }
  }

  take(): ShuffleSegment[] {
    return this.#writers.flatMap((writer, shard) => {
      const chunks = writer.take()
      return chunks ? [{ stage: this.#stage, shard, chunks }] : []
    })
  }
}

function keyError(key: unknown): TypeError {
  const given = key === null ? 'null' : typeof key === 'number' ? 'NaN' : typeof key
  return new TypeError(`the key is ${given}: a key is a string or a number`)
}
