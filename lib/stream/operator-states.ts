/**
 * State tables for the keyed operators of a pipeline, from the files of their snapshots.
 *
 * The one place that knows which kind of state a kind of node keeps.
 */
import { PawlError } from '../model/errors.ts'
import type { Snapshot } from '../model/manifest.ts'
import { loadAggregateState } from '../state/aggregate-state.ts'
import type { OperatorState } from '../state/operator-state.ts'
import { loadWindowState } from '../state/window-state.ts'
import type { ArrangedNode } from './arrange.ts'

/** What to load: one operator in one range of key groups, from a snapshot and its files. */
export interface StateRequest {
  readonly nodes: readonly ArrangedNode[]
  /** Of the pipeline. */
  readonly totalKeyGroups: number
  readonly operator: string
  readonly keyGroups: readonly [from: number, to: number]
  readonly snapshot: Snapshot | null
  readonly files: readonly Buffer[]
}

/** Throws `LINEAGE_CHANGED` when the pipeline has no such operator, and what the loaders throw. */
export function loadState(request: StateRequest): OperatorState {
  const { nodes, operator, keyGroups, totalKeyGroups, snapshot, files } = request
  const node = nodes.find(({ id }) => id === operator)?.node
  if (node?.kind !== 'aggregate' && node?.kind !== 'window')
    throw new PawlError('LINEAGE_CHANGED', `the pipeline has no keyed operator ${operator}`, { operator })
  const scope = { operator, stateVersion: node.fold.version, keyGroups, totalKeyGroups }
  const load = node.kind === 'aggregate' ? loadAggregateState : loadWindowState
  return load<unknown>(scope, snapshot, files)
}
