/**
 * The graph that a builder's value carries: nodes linked to their inputs, as the user wrote them.
 *
 * Apart from the builder so that `compile` reads it without knowing the language. Nodes are immutable and
 * compared by identity; ids of stateless nodes may be null until `compile` names them.
 */
import type { Settings } from '../model/settings.ts'
import type { SinkSpec, SourceSpec } from '../ports/spec.ts'
import type { Context, TumblingWindow } from './language.ts'

/** A user's function as the engine calls it. */
export type AnyMapper = (value: unknown, context: Context) => unknown

/** How a keyed operator folds values, with every default filled in. */
export interface AnyFold {
  /** Null for a reduce: the first value is the accumulator. */
  readonly create: (() => unknown) | null
  readonly add: (accumulator: unknown, value: unknown, context: Context) => unknown
  /** Null: the accumulator is the result. */
  readonly result: ((accumulator: unknown, context: unknown) => unknown) | null
  readonly version: number
}

/** A node as the user wrote it. */
export type GraphNode =
  | {
      readonly kind: 'source'
      readonly id: string
      readonly inputs: readonly GraphNode[]
      readonly spec: SourceSpec<unknown, unknown>
      readonly timestamp: AnyMapper | null
      readonly maxOutOfOrdernessMs: number
      readonly idleAfterMs: number | null
    }
  | {
      readonly kind: 'map' | 'filter' | 'flatMap' | 'withKey' | 'keyBy'
      readonly id: string | null
      readonly inputs: readonly GraphNode[]
      readonly fn: AnyMapper
    }
  | { readonly kind: 'merge'; readonly id: string | null; readonly inputs: readonly GraphNode[] }
  | {
      readonly kind: 'aggregate'
      readonly id: string
      readonly inputs: readonly GraphNode[]
      readonly fold: AnyFold
      readonly emit: 'epoch' | 'record'
    }
  | {
      readonly kind: 'window'
      readonly id: string
      readonly inputs: readonly GraphNode[]
      readonly fold: AnyFold
      readonly window: TumblingWindow
    }
  | { readonly kind: 'late'; readonly id: string; readonly inputs: readonly GraphNode[] }
  | {
      readonly kind: 'sink'
      readonly id: string
      readonly inputs: readonly GraphNode[]
      readonly spec: SinkSpec<unknown, unknown>
    }

/** What `pipeline(id, options)` fixes. */
export interface GraphHead {
  readonly pipeline: string
  readonly settings: Settings
  readonly deadLetter: { readonly id: string; readonly spec: SinkSpec<unknown, unknown> } | null
}

/** What a stream carries under its brand. */
export interface Graph {
  readonly head: GraphHead
  /** The node that the next method continues; null on a pipeline without a source. */
  readonly tip: GraphNode | null
  /** Ends of other branches that must lead somewhere as well. */
  readonly otherTips: readonly GraphNode[]
  readonly sinks: readonly GraphNode[]
  /** Joined graphs of other pipelines: a mistake that `compile` reports. */
  readonly strangers: readonly GraphHead[]
}
