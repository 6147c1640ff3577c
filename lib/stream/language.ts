/**
 * The language, as its users see it: what can be said of a stream, and with which types.
 *
 * Only types live here; `builder.ts` makes the values. Every element of a stream has a value, a key and a
 * timestamp. A keyed stream is partitioned by key: `aggregate`, `reduce`, `count` and `window` exist only there.
 * All values are immutable: each method returns a new one and touches nothing.
 *
 * Order: for one key, records reach a keyed operator in (source, partition, offset) order when it is fed from the
 * sources, and in (task, first touch) order when it is fed by another keyed operator. Results depend on the plan
 * of the epoch only, never on timing or parallelism.
 */
import type { SinkSpec } from '../ports/spec.ts'

/** Marks streams and pipelines, whichever copy of the package made them. */
export const streamBrand: unique symbol = Symbol.for('pawl.stream') as never

/** A type error that speaks: no value has this type, and its message stands in the compiler's output. */
export interface Mistake<Message extends string, Given = unknown, Wanted = unknown> {
  readonly mistake: Message
  readonly given: Given
  readonly wanted: Wanted
}

type IsAny<T> = 0 extends 1 & T ? true : false

/** `R`, unless it is a promise: functions of a pipeline are synchronous and deterministic. */
export type Sync<R> =
  IsAny<R> extends true
    ? R
    : R extends PromiseLike<unknown>
      ? Mistake<'a function of a pipeline must be synchronous: it returned a promise', R>
      : R

/** Accepts everything when `Given` may be written where `Wanted` is taken, else a mistake. */
export type Fits<Given, Wanted, Message extends string> = [Given] extends [Wanted]
  ? unknown
  : Mistake<Message, Given, Wanted>

/**
 * What a function may know of the record at hand. One mutable object serves a whole task: read it, never keep it.
 * Where results of many records are emitted at the end of an epoch, `topic` is empty, `partition` is −1 and
 * `offset` is −1.
 */
export interface Context<K = unknown> {
  readonly key: K
  /** Event time, in milliseconds since the Unix epoch. */
  readonly timestampMs: number
  readonly topic: string
  readonly partition: number
  readonly offset: bigint
  /** The clock of the epoch: the same in every attempt of one plan. */
  readonly processingTimeMs: number
}

/** A function of value and context; synchronous and deterministic. */
export type Mapper<T, K, R> = (value: T, context: Context<K>) => R

/** A function, with or without an explicit id before it. */
export type Named<F> = [operator: F] | [id: string, operator: F]

/** Elements with value `T` and key `K`. */
export interface Stream<T, K> {
  readonly [streamBrand]: unknown
  /** Replaces each value. */
  map<R>(...operator: Named<Mapper<T, K, Sync<R>>>): Stream<R, K>
  /** Keeps the values for which the predicate holds. */
  filter<S extends T>(...predicate: Named<(value: T, context: Context<K>) => value is S>): Stream<S, K>
  filter(...predicate: Named<Mapper<T, K, boolean>>): Stream<T, K>
  /** Replaces each value by any number of values. */
  flatMap<R>(...operator: Named<Mapper<T, K, Iterable<Sync<R>>>>): Stream<R, K>
  /** Sets the record key, without a shuffle; the stream is not keyed by it. */
  withKey<N>(...key: Named<Mapper<T, K, Sync<N>>>): Stream<T, N>
  /** The elements of both streams. */
  merge(other: Stream<T, K>): Stream<T, K>
  merge(id: string, other: Stream<T, K>): Stream<T, K>
  /** Partitions the stream by a key: equal keys meet in one operator. */
  keyBy<N extends string | number>(...key: Named<Mapper<T, K, N>>): KeyedStream<T, N>
  /** Writes to a sink; the stream goes on, so that several `.to` can follow. */
  to<SK, SV>(
    id: string,
    sink: SinkSpec<SK, SV> &
      Fits<K, SK, 'the key type of the sink does not take the keys of the stream'> &
      Fits<T, SV, 'the value type of the sink does not take the values of the stream'>,
  ): Stream<T, K>
  /** Joins another branch of the same pipeline, so that one value holds all its sinks. */
  also(other: Stream<never, never> | Stream<unknown, unknown>): Stream<T, K>
}

/** A stream partitioned by `K`. */
export interface KeyedStream<T, K extends string | number> {
  readonly [streamBrand]: unknown
  /** Folds the values of each key into an accumulator that outlives the epoch. */
  aggregate<A, R = A>(id: string, fold: AggregateSpec<T, K, A, R>): Stream<R, K>
  /** Folds the values of each key into one of their own type. */
  reduce(id: string, combine: (accumulator: T, value: T, context: Context<K>) => T, options?: EmitOptions): Stream<T, K>
  /** Counts the records of each key. */
  count(id: string, options?: EmitOptions): Stream<number, K>
  /** Groups the values of each key by event time. */
  window(window: TumblingWindow): WindowedStream<T, K>
  /** The elements of both streams, for one keyed operator. */
  merge(other: KeyedStream<T, K>): KeyedStream<T, K>
  merge(id: string, other: KeyedStream<T, K>): KeyedStream<T, K>
}

/** A keyed stream cut into windows. */
export interface WindowedStream<T, K extends string | number> {
  readonly [streamBrand]: unknown
  /** Folds the values of each key and window; emits when the watermark passes the window's end. */
  aggregate<A, R = A>(id: string, fold: WindowAggregateSpec<T, K, A, R>): WindowResult<R, K, T>
  /** Folds the values of each key and window into one of their own type. */
  reduce(
    id: string,
    combine: (accumulator: T, value: T, context: Context<K>) => T,
    options?: VersionOptions,
  ): WindowResult<T, K, T>
  /** Counts the records of each key and window. */
  count(id: string, options?: VersionOptions): WindowResult<number, K, T>
}

/** Results of windows; their timestamp is the window's end − 1. */
export interface WindowResult<R, K, T> extends Stream<R, K> {
  /** Leads the records that came too late for their window elsewhere. Without it they are only counted. */
  sideOutput(id: string, late: (late: Stream<T, K>) => Stream<unknown, unknown>): Stream<R, K>
}

/** Results of one key. */
export interface ResultContext<K> {
  readonly key: K
}

/** Results of one key and window. */
export interface WindowContext<K> extends ResultContext<K> {
  /** `[startMs, endMs)`. */
  readonly window: { readonly startMs: number; readonly endMs: number }
}

/** Options of everything that keeps accumulators. */
export interface VersionOptions {
  /** Version of the accumulator's shape: raise it when the shape changes. 1 by default. */
  readonly version?: number
}

/** When results by key are emitted. */
export interface EmitOptions extends VersionOptions {
  /** Once a key and epoch (default: nobody can see the steps between), or for each record. */
  readonly emit?: 'epoch' | 'record'
}

interface Fold<T, K, A> {
  /** The accumulator of a key that has none. */
  create(): A
  /** The accumulator with one more value. When it throws, the state of the key stays as it was. */
  add(accumulator: A, value: T, context: Context<K>): A
}

/** A fold by key. Accumulators are kept in snapshots: plain data. */
export interface AggregateSpec<T, K, A, R> extends Fold<T, K, A>, EmitOptions {
  /** What is emitted for an accumulator; the accumulator itself by default. */
  readonly result?: (accumulator: A, context: ResultContext<K>) => Sync<R>
}

/** A fold by key and window. */
export interface WindowAggregateSpec<T, K, A, R> extends Fold<T, K, A>, VersionOptions {
  /** What is emitted for an accumulator; the accumulator itself by default. */
  readonly result?: (accumulator: A, context: WindowContext<K>) => Sync<R>
}

/** Windows of equal length, aligned to the Unix epoch. */
export interface TumblingWindow {
  readonly kind: 'tumbling'
  readonly sizeMs: number
  /** How long after its end a window takes late records and emits again. 0 by default. */
  readonly allowedLatenessMs: number
}
