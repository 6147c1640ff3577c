/**
 * A compiled pipeline: frozen topology, settings and specs, with the functions by node id beside them.
 *
 * What `compile` returns and everything else reads. Nothing here is opened or run.
 */

import type { Snapshot } from '../model/manifest.ts'
import type { Settings } from '../model/settings.ts'
import type { Topology } from '../model/topology.ts'
import type { SinkSpec, SourceSpec } from '../ports/spec.ts'
import type { OperatorState, Program, ProgramOptions } from './program.ts'

export interface Compiled {
  readonly topology: Topology
  readonly settings: Settings
  /** Hash of topology, settings that change results, and the text of the functions. */
  readonly build: string
  readonly sources: Readonly<Record<string, SourceSpec<unknown, unknown>>>
  readonly sinks: Readonly<Record<string, SinkSpec<unknown, unknown>>>
  /** Stateful operators by stage, in topological order. */
  readonly stateful: readonly {
    readonly operator: string
    readonly stage: number
    readonly stateKind: string
    readonly stateVersion: number
  }[]
  /** Sinks that tasks of a stage may write to (the dead-letter sink in each). */
  sinksOf(stage: number | 'fused'): readonly string[]
  /** The executable form of one task. */
  program(options: ProgramOptions): Program
  /**
   * State from the files of a snapshot (in their order; empty for none). Throws `SNAPSHOT_DAMAGED`,
   * `STATE_VERSION_NEWER`, `LINEAGE_CHANGED` when its kind is another.
   */
  state(
    operator: string,
    keyGroups: readonly [from: number, to: number],
    snapshot: Snapshot | null,
    files: readonly Buffer[],
  ): OperatorState
}
