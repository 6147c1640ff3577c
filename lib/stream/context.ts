/**
 * The record at hand: one mutable object a task, which users see as their `Context`.
 *
 * Apart because every operator reads or moves it. Keys are decoded and offsets made into bigints only when
 * somebody asks, so a word count never decodes the key of a line.
 */
import type { LogBatch } from '../model/records.ts'
import type { Serde } from '../model/serde.ts'
import type { Context } from './language.ts'

/** Thrown by `TaskContext.key` when the key does not decode, with its cause: the source is at fault, not the reader. */
export class KeyUndecodable extends Error {}

/** A source as records remember it. */
export interface Origin {
  /** Position among the sources of the topology. */
  readonly index: number
  readonly source: string
  readonly topic: string
  readonly key: Serde<unknown>
}

/** Where a task stands. Operators set it before they push; between records it means nothing. */
export class TaskContext implements Context {
  readonly processingTimeMs: number
  timestampMs = 0
  partition = -1
  /** Null for what is emitted at the end of an epoch: many records made it. */
  origin: Origin | null = null
  /** The batch of a stage-0 record and its index there; null where only coordinates came through a shuffle. */
  batch: LogBatch | null = null
  index = 0
  /** True while the key has not been decoded. */
  keyPending = false
  /** The key, unless it is pending. */
  keyValue: unknown = null
  /** Counts batches, since a log may reuse the object of the last one. */
  batches = 0
  /** The offset where there is no batch, as a base and what to add to it. */
  baseOffset = -1n
  offsetDelta = 0

  constructor(processingTimeMs: number) {
    this.processingTimeMs = processingTimeMs
  }

  get topic(): string {
    return this.origin === null ? '' : this.origin.topic
  }

  get offset(): bigint {
    if (this.batch === null) return this.baseOffset + BigInt(this.offsetDelta)
    return this.batch.baseOffset + BigInt(this.batch.offsetDeltas[this.index])
  }

  get key(): unknown {
    return this.keyPending ? this.#decodeKey() : this.keyValue
  }

  set key(key: unknown) {
    this.keyPending = false
    this.keyValue = key
  }

  /** For what is emitted at the end of an epoch. */
  leaveRecord(): void {
    this.origin = null
    this.batch = null
    this.partition = -1
    this.baseOffset = -1n
    this.offsetDelta = 0
    this.keyPending = false
  }

  #decodeKey(): unknown {
    const batch = this.batch!
    const serde = this.origin!.key
    const start = batch.keyStarts[this.index]
    try {
      if (start < 0 && !serde.nullable) throw new TypeError(`a null key, and ${serde.name} is not nullable`)
      this.keyValue = serde.decode(batch.bytes, start, batch.keyEnds[this.index])
    } catch (error) {
      throw new KeyUndecodable('the key does not decode', { cause: error })
    }
    this.keyPending = false
    return this.keyValue
  }
}
