/**
 * A place: everything a step needs from where it runs.
 *
 * Composition roots build one; steps in `epoch/` take it as their first argument.
 */
import type { Usage } from '../model/usage.ts'
import type { Ledger } from './ledger.ts'
import type { LogSource } from './log.ts'
import type { Sink } from './sink.ts'
import type { SinkSpec, SourceSpec } from './spec.ts'
import type { Store } from './store.ts'
import type { Clock, Launcher, Random, Telemetry } from './system.ts'

export interface Place {
  readonly ledger: Ledger
  readonly store: Store
  readonly launcher: Launcher
  readonly clock: Clock
  readonly random: Random
  readonly telemetry: Telemetry
  /** Where this run is, for `Launcher.status` of others. */
  readonly place: string
  /** What calls to a cloud have used since this was last asked; absent where nothing is billed. */
  usage?(): Usage
  /** Opened once and kept; the place decides what a topic is. */
  source(pipeline: string, id: string, spec: SourceSpec<unknown, unknown>, incarnation: string): Promise<LogSource>
  sink(pipeline: string, id: string, spec: SinkSpec<unknown, unknown>, incarnation: string): Promise<Sink>
}
