/**
 * `compile`: from a stream to a frozen topology with its functions beside it.
 *
 * The one place where a pipeline is checked. Opens nothing and runs no user function, so that tools can read a
 * pipeline anywhere.
 */
import { createHash } from 'node:crypto'
import { PawlError } from '../model/errors.ts'
import { type Topology, type TopologyNode, topologyVersion } from '../model/topology.ts'
import type { SinkSpec, SourceSpec } from '../ports/spec.ts'
import { type ArrangedNode, arrange } from './arrange.ts'
import { graphOf } from './builder.ts'
import type { Compiled } from './compiled.ts'
import type { GraphHead, GraphNode } from './graph.ts'
import { mistakesOf } from './mistakes.ts'
import { loadState } from './operator-states.ts'
import { createProgram } from './task.ts'

/**
 * Compiles a stream with all its sinks. Throws `PIPELINE_FILE_INVALID` when `pipeline` is no stream, and one
 * `PIPELINE_INVALID` that lists every mistake.
 */
export function compile(pipeline: unknown): Compiled {
  const graph = graphOf(pipeline)
  if (graph === null) throw new PawlError('PIPELINE_FILE_INVALID', `got ${describe(pipeline)}`)
  const nodes = arrange(graph)
  const mistakes = mistakesOf(graph, nodes)
  if (mistakes.length > 0)
    throw new PawlError('PIPELINE_INVALID', `${graph.head.pipeline}: ${mistakes.join('; ')}`, {
      pipeline: graph.head.pipeline,
      mistakes: mistakes.join('\n'),
    })
  return compiledOf(graph.head, nodes)
}

function compiledOf(head: GraphHead, nodes: readonly ArrangedNode[]): Compiled {
  const topology = deepFreeze(topologyOf(head, nodes))
  const compiled: Compiled = {
    topology,
    settings: deepFreeze(structuredClone(head.settings)),
    build: buildOf(head, topology, nodes),
    sources: specsOf<SourceSpec<unknown, unknown>>(nodes, 'source'),
    sinks: specsOf<SinkSpec<unknown, unknown>>(nodes, 'sink'),
    stateful: nodes.flatMap(statefulOf).sort((a, b) => a.stage - b.stage),
    sinksOf: (stage) => sinksOf(head, nodes, stage),
    program: (options) => createProgram({ head, nodes, options }),
    state: (operator, keyGroups, snapshot, files) =>
      loadState({ nodes, totalKeyGroups: head.settings.keyGroups, operator, keyGroups, snapshot, files }),
  }
  return Object.freeze(compiled)
}

function topologyOf(head: GraphHead, nodes: readonly ArrangedNode[]): Topology {
  return {
    version: topologyVersion,
    pipeline: head.pipeline,
    keyGroups: head.settings.keyGroups,
    nodes: nodes.map(topologyNodeOf),
    stages: 1 + Math.max(...nodes.map((node) => node.stage)),
    deadLetterSink: head.deadLetter?.id ?? null,
  }
}

function topologyNodeOf({ id, stage, inputs, node }: ArrangedNode): TopologyNode {
  const place = { id, stage, inputs: inputs.map((input) => input.id) }
  switch (node.kind) {
    case 'source': {
      const { topic, key, value } = node.spec
      const { kind, maxOutOfOrdernessMs, idleAfterMs } = node
      return { ...place, kind, topic, serde: [key.name, value.name], maxOutOfOrdernessMs, idleAfterMs }
    }
    case 'aggregate':
      return { ...place, kind: node.kind, emit: node.emit, stateVersion: node.fold.version }
    case 'window': {
      const { sizeMs, allowedLatenessMs } = node.window
      return { ...place, kind: node.kind, sizeMs, allowedLatenessMs, stateVersion: node.fold.version }
    }
    case 'sink': {
      const { spec } = node
      const type = spec.kind === 'topic' ? 'topic' : spec.type
      const sink = { kind: node.kind, type, lanes: spec.lanes, target: spec.kind === 'topic' ? spec.topic : type }
      const carries = spec.kind === 'sink' && spec.onReject === 'dead-letter'
      return carries ? { ...place, ...sink, onReject: 'dead-letter' } : { ...place, ...sink }
    }
    default:
      return { ...place, kind: node.kind }
  }
}

/** SHA-256 over what decides results: topology, settings, serdes and the functions' text (not what they close over). */
function buildOf(head: GraphHead, topology: Topology, nodes: readonly ArrangedNode[]): string {
  const { guarantee, shards, keyGroups, onError } = head.settings
  const texts = nodes.map(({ id, node }) => [id, ...functionsOf(node).map(String)])
  const parts = { topology, settings: { guarantee, shards, keyGroups, onError }, texts }
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
}

function functionsOf(node: GraphNode): readonly unknown[] {
  switch (node.kind) {
    case 'source':
      return [node.timestamp]
    case 'aggregate':
    case 'window':
      return [node.fold.create, node.fold.add, node.fold.result]
    case 'sink':
      return node.spec.kind === 'topic'
        ? [node.spec.key.name, node.spec.value.name, node.spec.route?.choose ?? null, node.spec.headers]
        : []
    case 'merge':
    case 'late':
      return []
    default:
      return [node.fn]
  }
}

function specsOf<S>(nodes: readonly ArrangedNode[], kind: 'source' | 'sink'): Readonly<Record<string, S>> {
  const specs = nodes.flatMap(({ id, node }) => (node.kind === kind ? [[id, node.spec as S] as const] : []))
  return Object.freeze(Object.fromEntries(specs))
}

function statefulOf({ id, stage, node }: ArrangedNode): Compiled['stateful'] {
  if (node.kind !== 'aggregate' && node.kind !== 'window') return []
  return [{ operator: id, stage, stateKind: node.kind, stateVersion: node.fold.version }]
}

function sinksOf(head: GraphHead, nodes: readonly ArrangedNode[], stage: number | 'fused'): readonly string[] {
  return nodes
    .filter(({ node, runsIn, id }) => {
      if (node.kind !== 'sink') return false
      return stage === 'fused' || runsIn.has(stage) || id === head.deadLetter?.id
    })
    .map(({ id }) => id)
}

function describe(value: unknown): string {
  if (value === null || value === undefined) return `${value}`
  if (value instanceof Promise) return 'a promise: export the stream itself'
  return typeof value === 'object' ? 'an object that is no stream' : `a ${typeof value}`
}

function deepFreeze<T extends object>(value: T): T {
  for (const inner of Object.values(value)) if (typeof inner === 'object' && inner !== null) deepFreeze(inner)
  return Object.freeze(value)
}
