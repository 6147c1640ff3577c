/**
 * The builder: makes the values whose types `language.ts` describes.
 *
 * One untyped implementation behind the typed interfaces, cast once at each border. Nothing is checked here;
 * `compile` reports every mistake at once. Each method returns a new frozen value.
 */

import type { SinkSpec } from '../ports/spec.ts'
import type { AnyFold, AnyMapper, Graph, GraphNode } from './graph.ts'
import {
  type EmitOptions,
  type KeyedStream,
  type Stream,
  streamBrand,
  type TumblingWindow,
  type VersionOptions,
  type WindowedStream,
  type WindowResult,
} from './language.ts'

interface Branded {
  readonly [streamBrand]: Graph
}

type FunctionNode = Extract<GraphNode, { fn: AnyMapper }>

/** The graph of a stream or pipeline; null when `value` is neither. */
export function graphOf(value: unknown): Graph | null {
  if (typeof value !== 'object' || value === null || !(streamBrand in value)) return null
  return (value as Branded)[streamBrand]
}

/** A stream whose next method continues at the tip of `graph`. */
export function streamOf<T, K>(graph: Graph): Stream<T, K> {
  return Object.freeze({ ...branded(graph), ...streamMethods(graph) }) as unknown as Stream<T, K>
}

function streamMethods(graph: Graph) {
  const derive =
    (kind: FunctionNode['kind']) =>
    (...operator: Named) =>
      streamOf(extend(graph, named(graph, kind, operator)))
  return {
    map: derive('map'),
    filter: derive('filter'),
    flatMap: derive('flatMap'),
    withKey: derive('withKey'),
    merge: (...other: [string, Branded] | [Branded]) => streamOf(merged(graph, other)),
    keyBy: (...key: Named) => keyedOf(extend(graph, named(graph, 'keyBy', key))),
    to: (id: string, spec: SinkSpec<unknown, unknown>) => {
      const sink: GraphNode = { kind: 'sink', id, inputs: tips(graph), spec }
      return streamOf({ ...graph, sinks: [...graph.sinks, sink] })
    },
    also: (other: Branded) => streamOf(joined(graph, other[streamBrand])),
  }
}

function keyedOf(graph: Graph): KeyedStream<unknown, string> {
  const aggregate = (id: string, fold: AnyFold, emit: EmitOptions['emit']) =>
    streamOf(extend(graph, { kind: 'aggregate', id, inputs: tips(graph), fold, emit: emit ?? 'epoch' }))
  return Object.freeze({
    ...branded(graph),
    aggregate: (id: string, fold: Partial<AnyFold> & EmitOptions) => aggregate(id, foldOf(fold), fold.emit),
    reduce: (id: string, combine: AnyFold['add'], options?: EmitOptions) =>
      aggregate(id, reduceFold(combine, options), options?.emit),
    count: (id: string, options?: EmitOptions) => aggregate(id, countFold(options), options?.emit),
    window: (window: TumblingWindow) => windowedOf(graph, window),
    merge: (...other: [string, Branded] | [Branded]) => keyedOf(merged(graph, other)),
  }) as unknown as KeyedStream<unknown, string>
}

function windowedOf(graph: Graph, window: TumblingWindow): WindowedStream<unknown, string> {
  const result = (id: string, fold: AnyFold) =>
    windowResultOf(extend(graph, { kind: 'window', id, inputs: tips(graph), fold, window }))
  return Object.freeze({
    ...branded(graph),
    aggregate: (id: string, fold: Partial<AnyFold>) => result(id, foldOf(fold)),
    reduce: (id: string, combine: AnyFold['add'], options?: VersionOptions) => result(id, reduceFold(combine, options)),
    count: (id: string, options?: VersionOptions) => result(id, countFold(options)),
  }) as unknown as WindowedStream<unknown, string>
}

function windowResultOf(graph: Graph): WindowResult<unknown, string, unknown> {
  const sideOutput = (id: string, late: (late: Branded) => Branded) => {
    const side: Graph = { ...graph, tip: { kind: 'late', id, inputs: tips(graph) }, otherTips: [], sinks: [] }
    return streamOf(joined(graph, late(streamOf(side) as unknown as Branded)[streamBrand]))
  }
  return Object.freeze({ ...branded(graph), ...streamMethods(graph), sideOutput }) as unknown as WindowResult<
    unknown,
    string,
    unknown
  >
}

type Named = [operator: AnyMapper] | [id: string, operator: AnyMapper]

function branded(graph: Graph): Branded {
  return { [streamBrand]: Object.freeze(graph) }
}

function named(graph: Graph, kind: FunctionNode['kind'], operator: Named): GraphNode {
  const [id, fn] = operator.length === 2 ? operator : [null, operator[0]]
  return { kind, id, inputs: tips(graph), fn }
}

function tips(graph: Graph): readonly GraphNode[] {
  return graph.tip === null ? [] : [graph.tip]
}

function extend(graph: Graph, node: GraphNode): Graph {
  return { ...graph, tip: Object.freeze(node) }
}

function merged(graph: Graph, other: [string, Branded] | [Branded]): Graph {
  const [id, stream] = other.length === 2 ? other : [null, other[0]]
  const theirs = stream[streamBrand]
  const both = joined(graph, { ...theirs, tip: null })
  return extend(both, { kind: 'merge', id, inputs: [...tips(graph), ...tips(theirs)] })
}

function joined(graph: Graph, other: Graph): Graph {
  const strangers = other.head === graph.head ? [] : [other.head]
  return {
    ...graph,
    otherTips: [...graph.otherTips, ...other.otherTips, ...tips(other)],
    sinks: [...graph.sinks, ...other.sinks],
    strangers: [...graph.strangers, ...other.strangers, ...strangers],
  }
}

function foldOf(fold: Partial<AnyFold>): AnyFold {
  const { create = null, add, result = null, version = 1 } = fold
  return { create, add: add as AnyFold['add'], result, version }
}

function reduceFold(combine: AnyFold['add'], options?: VersionOptions): AnyFold {
  return { create: null, add: combine, result: null, version: options?.version ?? 1 }
}

function countFold(options?: VersionOptions): AnyFold {
  return {
    create: () => 0,
    add: (accumulator) => (accumulator as number) + 1,
    result: null,
    version: options?.version ?? 1,
  }
}
