/**
 * The topology: what `compile` makes of a pipeline, as frozen JSON.
 *
 * Tools read it without running anything. Functions live beside it, by node id. Nodes are in topological order;
 * a stage is what runs between two shuffles, stage 0 starts at the sources.
 */
export const topologyVersion = 1

export interface Topology {
  readonly version: number
  readonly pipeline: string
  readonly keyGroups: number
  readonly nodes: readonly TopologyNode[]
  /** Stages; every keyed stage is fed by the shuffle nodes of earlier stages. */
  readonly stages: number
  readonly deadLetterSink: string | null
}

interface NodeBase {
  readonly id: string
  readonly stage: number
  readonly inputs: readonly string[]
}

/** One node of the graph; `kind` says which. */
export type TopologyNode =
  | (NodeBase & {
      readonly kind: 'source'
      readonly topic: string
      readonly serde: readonly [key: string, value: string]
      readonly maxOutOfOrdernessMs: number
      readonly idleAfterMs: number | null
    })
  | (NodeBase & { readonly kind: 'map' | 'filter' | 'flatMap' | 'merge' | 'withKey' })
  /** Ends a stage: what follows runs in stage + 1. */
  | (NodeBase & { readonly kind: 'keyBy' })
  | (NodeBase & { readonly kind: 'aggregate'; readonly emit: 'epoch' | 'record'; readonly stateVersion: number })
  | (NodeBase & {
      readonly kind: 'window'
      readonly sizeMs: number
      readonly allowedLatenessMs: number
      readonly stateVersion: number
    })
  /** Late records of a window. */
  | (NodeBase & { readonly kind: 'late' })
  | (NodeBase & {
      readonly kind: 'sink'
      readonly type: string
      readonly lanes: number
      readonly target: string
      readonly onReject?: 'dead-letter'
    })
