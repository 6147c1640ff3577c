/**
 * Arranges a graph: topological order, ids for nodes without one, stages, and what runs where.
 *
 * Deterministic: the order follows the sinks as they were written, so that one source text gives one topology.
 * A stage is what runs between two shuffles. A stateless node behind a merge of two stages runs in both.
 */
import type { Graph, GraphNode } from './graph.ts'

/** A node with its id, its place and its neighbours. */
export interface ArrangedNode {
  readonly id: string
  /** Position in topological order. */
  readonly index: number
  readonly node: GraphNode
  readonly inputs: readonly ArrangedNode[]
  readonly outputs: ArrangedNode[]
  /** The stage that the node belongs to: the last one that it runs in. */
  readonly stage: number
  /** Every stage that the node runs in. */
  readonly runsIn: ReadonlySet<number>
}

/** Nodes in topological order; the dead-letter sink comes last and has no input. */
export function arrange(graph: Graph): readonly ArrangedNode[] {
  const order = topologicalOrder(graph)
  const { deadLetter } = graph.head
  if (deadLetter) order.push({ kind: 'sink', id: deadLetter.id, inputs: [], spec: deadLetter.spec })
  const name = namer(order)
  const arranged = new Map<GraphNode, ArrangedNode>()
  for (const [index, node] of order.entries()) {
    const inputs = node.inputs.map((input) => arranged.get(input)!)
    const one = { id: name(node), index, node, inputs, outputs: [], ...placeOf(node, inputs) }
    for (const input of inputs) input.outputs.push(one)
    arranged.set(node, one)
  }
  return [...arranged.values()]
}

/** True for a `keyBy`, and for a merge of keyed streams. */
export function isKeyed(arranged: ArrangedNode): boolean {
  return arranged.node.kind === 'keyBy' || (arranged.node.kind === 'merge' && arranged.inputs.every(isKeyed))
}

/** The keyed operators that a `keyBy` feeds, through merges of keyed streams. */
export function consumersOf(keyed: ArrangedNode): readonly ArrangedNode[] {
  return keyed.outputs.flatMap((output) => (isKeyed(output) ? consumersOf(output) : [output]))
}

function topologicalOrder(graph: Graph): GraphNode[] {
  const seen = new Set<GraphNode>()
  const order: GraphNode[] = []
  const roots = [...graph.sinks, ...(graph.tip ? [graph.tip] : []), ...graph.otherTips]
  const visit = (node: GraphNode): void => {
    if (seen.has(node)) return
    seen.add(node)
    for (const input of node.inputs) visit(input)
    order.push(node)
  }
  for (const root of roots) visit(root)
  return order
}

function namer(order: readonly GraphNode[]): (node: GraphNode) => string {
  const taken = new Set(order.map((node) => node.id))
  const counts = new Map<string, number>()
  return (node) => {
    if (node.id !== null) return node.id
    const kind = node.kind.replace(/(?=[A-Z])/g, '-').toLowerCase()
    for (;;) {
      const count = (counts.get(kind) ?? 0) + 1
      counts.set(kind, count)
      if (!taken.has(`${kind}-${count}`)) return `${kind}-${count}`
    }
  }
}

function placeOf(node: GraphNode, inputs: readonly ArrangedNode[]): Pick<ArrangedNode, 'stage' | 'runsIn'> {
  const stage = Math.max(0, ...inputs.map((input) => (input.node.kind === 'keyBy' ? input.stage + 1 : input.stage)))
  const stateful = node.kind === 'aggregate' || node.kind === 'window'
  const runsIn = stateful || inputs.length === 0 ? [stage] : inputs.flatMap((input) => [...input.runsIn])
  return { stage, runsIn: new Set(runsIn) }
}
