/**
 * A simulated world whose ledger and store are the real adapters on an emulator of AWS.
 *
 * Logs, sinks, clock and processes are those of the simulation, so that a process can die at any port call and the
 * checker sees everything. What the store holds is mirrored in memory, since the audit looks at it in one moment.
 */
import { memoryLedger } from '../../lib/adapters/memory/ledger.ts'
import { type MemoryStore, memoryStore } from '../../lib/adapters/memory/store.ts'
import { prng } from '../../lib/model/prng.ts'
import type { Settings } from '../../lib/model/settings.ts'
import type { Ledger } from '../../lib/ports/ledger.ts'
import type { Store } from '../../lib/ports/store.ts'
import { compile } from '../../lib/stream/compile.ts'
import { auditedLedger } from '../../lib/testing/audit.ts'
import { createDriver } from '../../lib/testing/drive.ts'
import type { FaultScript } from '../../lib/testing/gate.ts'
import { checkWorld } from '../../lib/testing/simulate.ts'
import { arrivalsOf } from '../../lib/testing/workload.ts'
import { World } from '../../lib/testing/world.ts'
import type { Sample } from '../simulation/pipelines.ts'

/** One run of a sample over real parts. */
export interface AwsRun {
  readonly sample: Sample
  readonly settings: Partial<Settings>
  readonly ledger: Ledger
  readonly store: Store
  /** The faults of each process, by its number. */
  readonly script: (actor: number) => FaultScript
  /** False where a write may succeed although its answer says otherwise: then only the end is checked. */
  readonly audited: boolean
}

const ringsMax = 30

/** Runs until all input is visible and every process is over, checks everything; returns the port calls made. */
export async function runOnAws({ sample, settings, ledger, store, script, audited }: AwsRun): Promise<number> {
  const compiled = compile(sample.pipeline)
  const fixed = { ...compiled, settings: { ...compiled.settings, ...settings } }
  const world = new World({ compiled: fixed, seed: 7, partitions: () => 2 })
  const whole = { ...memoryLedger(), ...ledger }
  const watched = audited ? auditedLedger(whole, world) : { ...whole, committed: Number.POSITIVE_INFINITY }
  Object.assign(world, { store: mirrored(store), ledger: watched })
  const driver = createDriver({ world, mortal: true, script })
  for (const { source, partition, record } of arrivalsOf(fixed, sample.input, prng(11), () => 2)) {
    await world.logs.get(source)!.append(partition, [record])
  }
  try {
    await driver.untilDone({ rings: ringsMax })
    let left = driver.actors.length
    for (const actor of driver.actors) actor.ended.then(() => left--)
    while (left > 0) {
      world.releaseAll()
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    await driver.untilDone({ rings: ringsMax })
    if (!audited) {
      // What was sent late has arrived by then, and is no orphan that collect has missed.
      await new Promise((resolve) => setTimeout(resolve, 200))
      await rememberManifests(world)
    }
    await checkWorld(world)
  } catch (error) {
    throw new Error(world.trace.slice(-60).join('\n'), { cause: error })
  }
  return world.calls
}

/** What the audit would have noted at each commit. */
async function rememberManifests({ ledger, store, manifests, compiled }: World): Promise<void> {
  for (const { manifest } of await ledger.histories(compiled.topology.pipeline, 0, 1_000)) {
    manifests.set(manifest.sha256, JSON.parse((await store.read(manifest.name))!.toString()))
  }
}

/** The store, with a copy of what it holds beside it. */
function mirrored(store: Store): MemoryStore {
  const copy = memoryStore()
  return {
    ...copy,
    async create(name, chunks) {
      const answer = await store.create(name, chunks)
      if (answer === 'created' || !copy.names().includes(name)) await copy.create(name, chunks)
      return answer
    },
    read: (name, range) => store.read(name, range),
    list: (prefix) => store.list(prefix),
    async delete(names) {
      await store.delete(names)
      await copy.delete(names)
    },
  }
}
