/**
 * A job in a world of memory adapters, for tests of single steps; never a mock.
 *
 * Faults are put at its port calls by a script, as in the simulation.
 */
import type { Job } from '../../lib/epoch/job.ts'
import { compile, json, nullable, pipeline, type Settings, text, topic } from '../../lib/index.ts'
import type { ProgressEvent } from '../../lib/model/event.ts'
import type { Head } from '../../lib/model/head.ts'
import { defaultSettings } from '../../lib/model/settings.ts'
import type { RunKey } from '../../lib/model/steps.ts'
import { jobOf } from '../../lib/testing/actor.ts'
import { type FaultScript, gate } from '../../lib/testing/gate.ts'
import { World } from '../../lib/testing/world.ts'

/** Lines to counts. */
export const counting = pipeline('counting')
  .from(topic('lines', { key: nullable(text()), value: text() }))
  .keyBy('word', (word) => word)
  .count('count')
  .to('counts', topic('counts', { key: text(), value: json<number>() }))

/** A job, its world, and what it told. */
export interface Workbench {
  readonly world: World
  readonly job: Job
  readonly run: RunKey
  readonly events: ProgressEvent[]
  append(partition: number, ...values: string[]): void
  head(): Promise<Head>
}

/** A world with a job for one run in it. */
export function workbench(
  options: { partitions?: number; script?: FaultScript; settings?: Partial<Settings> } = {},
): Workbench {
  const compiled = compile(counting)
  const settings: Settings = { ...compiled.settings, ...options.settings }
  const partitions = options.partitions ?? 2
  const world = new World({ compiled: { ...compiled, settings }, seed: 1, partitions: () => partitions })
  const script = options.script ?? (() => null)
  const events: ProgressEvent[] = []
  const start = { pipeline: 'counting', sequence: 1, wakes: 0 }
  const job = jobOf(
    { world, number: 0, start, script, mortal: true, onEvent: (event) => events.push(event) },
    gate(world, 0, script),
  )
  const run: RunKey = {
    ...start,
    id: 'run-1',
    place: 'process-0',
    lingerMs: 0,
    resume: false,
    startedAtMs: world.clock.nowMs(),
  }
  return {
    world,
    job,
    run,
    events,
    append: (partition, ...values) =>
      void world.logs.get('lines')!.append(
        partition,
        values.map((value) => ({ key: null, value, timestampMs: world.clock.nowMs() })),
      ),
    head: async () => (await world.ledger.read('counting'))!,
  }
}

/** A head with the given differences from a quiet one. */
export function headWith(change: Partial<Head> = {}): Head {
  const manifest = { name: 'm', bytes: 1, sha256: 'a' }
  return {
    version: 1,
    pipeline: 'counting',
    incarnation: 'i',
    revision: 9,
    write: 'w',
    generation: 3,
    run: {
      sequence: 1,
      id: 'run-1',
      open: true,
      place: 'here',
      leaseMs: defaultSettings.leaseMs,
      renewedAtMs: 0,
      epochs: 0,
    },
    open: null,
    committed: { epoch: 4, attempt: 'a', manifest, openedAtMs: 0, atMs: 0 },
    promotedThrough: 4,
    lanes: [{ sink: 'counts', lane: 0, target: 'memory:counts' }],
    retainedFrom: 0,
    savepoints: [],
    failures: { count: 0, atMs: [], last: null, notBeforeMs: 0, spanMax: null, suspect: null, convicted: [] },
    parked: null,
    ...change,
  }
}
