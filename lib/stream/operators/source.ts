/**
 * A source in a task: turns batches into values, one push each.
 *
 * Decodes the value of each record, gives it its event time and rejects what cannot be read: a record that does not
 * decode, a null that the serde does not take, one above the size limit, one convicted by earlier attempts.
 */
import { isPawlError } from '../../model/errors.ts'
import type { SourceOffset } from '../../model/head.ts'
import { limits } from '../../model/limits.ts'
import type { LogBatch } from '../../model/records.ts'
import type { Serde } from '../../model/serde.ts'
import type { Origin } from '../context.ts'
import type { AnyMapper } from '../graph.ts'
import type { Push, TaskParts } from './task-parts.ts'

/** What a source is built from. */
export interface SourceOptions {
  readonly origin: Origin
  readonly value: Serde<unknown>
  readonly timestamp: AnyMapper | null
  readonly convicted: readonly SourceOffset[]
  readonly next: Push
}

/** A source of one task, with what it has seen. */
export class SourceOperator {
  records = 0
  /** Largest event time by partition. */
  readonly maxTimestamps = new Map<number, number>()
  readonly #options: SourceOptions
  readonly #parts: TaskParts
  readonly #convicted = new Map<number, Set<string>>()

  constructor(options: SourceOptions, parts: TaskParts) {
    this.#options = options
    this.#parts = parts
    for (const { source, partition, offset } of options.convicted) {
      if (source !== options.origin.source) continue
      const offsets = this.#convicted.get(partition) ?? new Set()
      this.#convicted.set(partition, offsets.add(offset))
    }
  }

  consume(batch: LogBatch): void {
    const { context } = this.#parts
    context.origin = this.#options.origin
    context.batch = batch
    context.batches++
    context.partition = batch.partition
    const convicted = this.#convicted.get(batch.partition)
    const before = this.maxTimestamps.get(batch.partition) ?? Number.NEGATIVE_INFINITY
    const max = this.#push(batch, convicted, before)
    if (max > before) this.maxTimestamps.set(batch.partition, max)
    this.records += batch.count
  }

  #push(batch: LogBatch, convicted: ReadonlySet<string> | undefined, before: number): number {
    const { context, rejections } = this.#parts
    const { origin, value: serde, timestamp, next } = this.#options
    const { count, bytes, timestamps, keyStarts, keyEnds, valueStarts, valueEnds } = batch
    let max = before
    for (let i = 0; i < count; i++) {
      context.index = i
      context.keyPending = true
      context.timestampMs = timestamps[i]
      if (convicted?.has(context.offset.toString())) {
        rejections.reject('OPERATOR_FAILED', origin.source, convictedError())
        continue
      }
      const start = valueStarts[i]
      const size = valueEnds[i] - start + keyEnds[i] - keyStarts[i]
      let value: unknown
      try {
        if (size > limits.recordBytesMax) throw new RecordTooLarge(size)
        if (start < 0 && !serde.nullable) throw new TypeError(`a null value, and ${serde.name} is not nullable`)
        value = serde.decode(bytes, start, valueEnds[i])
      } catch (error) {
        this.#rejectUndecodable(error)
        continue
      }
      if (timestamp !== null && !this.#stamp(timestamp, value)) continue
      if (context.timestampMs > max) max = context.timestampMs
      next(value)
    }
    return max
  }

  #stamp(timestamp: AnyMapper, value: unknown): boolean {
    const { context, rejections } = this.#parts
    try {
      const timestampMs = timestamp(value, context)
      if (typeof timestampMs !== 'number' || !Number.isFinite(timestampMs))
        throw new TypeError(`the timestamp is ${String(timestampMs)}, not a number of milliseconds`)
      context.timestampMs = timestampMs
      return true
    } catch (error) {
      rejections.reject('OPERATOR_FAILED', this.#options.origin.source, error)
      return false
    }
  }

  /** A schema that cannot be used at all is no fault of the record. */
  #rejectUndecodable(error: unknown): void {
    if (isPawlError(error)) throw error
    const code = error instanceof RecordTooLarge ? 'RECORD_TOO_LARGE' : 'DECODE_FAILED'
    this.#parts.rejections.reject(code, this.#options.origin.source, error)
  }
}

class RecordTooLarge extends Error {
  override readonly name = 'RecordTooLarge'

  constructor(bytes: number) {
    super(`${bytes} bytes of key and value, at most ${limits.recordBytesMax}`)
  }
}

function convictedError(): Error {
  const error = new Error('the process died repeatedly on this record alone')
  error.name = 'Convicted'
  return error
}
