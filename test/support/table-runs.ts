/**
 * Whole pipelines that end in a sink of a real server: a log in a temporary directory, the engine, the server.
 *
 * A run goes through one process after another on the same directory, as on a machine that is restarted.
 */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createSegmentLog } from '../../lib/adapters/segments/log.ts'
import { reportHealth } from '../../lib/epoch/report-health.ts'
import type { ProgressEvent } from '../../lib/model/event.ts'
import { type EmbeddedPlace, openPlace } from '../../lib/places/embedded.ts'
import { type RunOptions, type RunOutcome, runPipeline } from '../../lib/places/run.ts'
import type { ClusterSpec } from '../../lib/ports/spec.ts'
import { StateCache } from '../../lib/state/cache.ts'
import { compile } from '../../lib/stream/compile.ts'
import type { Compiled } from '../../lib/stream/compiled.ts'

/** A pipeline on a directory of its own. */
export interface Installation {
  readonly events: readonly ProgressEvent[]
  /** Appends values to the only source. */
  append(...values: readonly string[]): Promise<void>
  /** One process, until everything is visible or somebody has to look. */
  run(options?: Pick<RunOptions, 'signal' | 'resume'>): Promise<RunOutcome>
  /** Waits until something was told. */
  told(event: ProgressEvent['event'], after?: number): Promise<ProgressEvent>
  /** Another build of the pipeline on the same directory. */
  rebuild(pipeline: unknown): Installation
  /** What a trigger would report of it now. */
  health(): Promise<ProgressEvent>
  remove(): void
}

/** Where an installation is, and where its topics are: in the directory unless a cluster is given. */
export interface InstallOptions {
  readonly directory?: string
  readonly stage?: string
  readonly cluster?: ClusterSpec
}

/** Installs a pipeline; a stage of its own keeps its markers apart from those of other tests. */
export function install(pipeline: unknown, options: InstallOptions = {}): Installation {
  const { directory = mkdtempSync(join(tmpdir(), 'pawl-run-')), cluster = null } = options
  const compiled: Compiled = compile(pipeline)
  const events: ProgressEvent[] = []
  const { stage = `test-${randomUUID().slice(0, 8)}` } = options
  const telemetry = { emit: (event: ProgressEvent) => events.push(event) }
  const inPlace = async <T>(act: (place: EmbeddedPlace) => Promise<T>): Promise<T> => {
    const place = await openPlace({ directory, cluster, stage, telemetry })
    try {
      return await act(place)
    } finally {
      await place.close()
    }
  }
  return {
    events,
    append: (...values) =>
      inPlace(async (place) => {
        const { topic } = Object.values(compiled.sources)[0]!
        const log = await createSegmentLog(place.store, { topic, partitions: 1, random: place.random })
        await log.append(
          0,
          values.map((value) => ({ key: null, value, timestampMs: 0 })),
        )
      }),
    run: (options) => inPlace((place) => runPipeline(compiled, { place, until: 'caught-up', ...options })),
    async told(name, after = 0) {
      for (;;) {
        const found = events.slice(after).find(({ event }) => event === name)
        if (found !== undefined) return found
        await sleep(20)
      }
    },
    health: () =>
      inPlace(async (place) => {
        const job = { compiled, place, states: new StateCache(), warm: new Map() }
        return reportHealth(job, await place.ledger.read(compiled.topology.pipeline))
      }),
    rebuild: (next) => install(next, { ...options, directory, stage }),
    remove: () => rmSync(directory, { recursive: true, force: true, maxRetries: 5 }),
  }
}
