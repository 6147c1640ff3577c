/**
 * Replay: what must be visible, from the committed plans alone.
 *
 * One thread, one shard, state in memory, no protocol: each committed epoch's ranges are read from the log again and
 * pushed through the operators in order. Whatever crashed in between, the sinks must show exactly this.
 */

import { memoryStageWriter, readStagedRows } from '../adapters/memory/staged-rows.ts'
import { memoryStore } from '../adapters/memory/store.ts'
import type { MemoryRow } from '../adapters/memory/table.ts'
import { lettersOf } from '../epoch/gather-refused.ts'
import type { Committable, Manifest, RefusedLane } from '../model/manifest.ts'
import type { StageWriter } from '../ports/sink.ts'
import type { Store } from '../ports/store.ts'
import type { Compiled } from '../stream/compiled.ts'
import type { OperatorState } from '../stream/program.ts'
import { rowSpecOf, type World } from './world.ts'

/** What a single-threaded run of the same plans shows and holds. */
export interface Replayed {
  /** Rows by sink, in the order of epochs. */
  readonly rows: ReadonlyMap<string, readonly MemoryRow[]>
  /** Entries of state by operator, after the last epoch. */
  readonly entries: ReadonlyMap<string, number>
}

/** The epochs to replay, and the refused rows that each carried. */
export interface ReplayedChain {
  readonly manifests: readonly Manifest[]
  readonly carried: readonly (readonly RefusedLane[])[]
}

/** Replays the epochs of `manifests`, which begin with the genesis manifest, each by the build that committed it. */
export async function replay(world: World, { manifests, carried }: ReplayedChain): Promise<Replayed> {
  const states = new Map<string, OperatorState>()
  const rows = new Map<string, MemoryRow[]>([...world.sinks.keys()].map((id) => [id, []]))
  for (let i = 1; i < manifests.length; i++)
    await replayEpoch(world, manifests[i - 1], manifests[i], carried[i], states, rows)
  return { rows, entries: new Map([...states].map(([operator, state]) => [operator, state.entries])) }
}

async function replayEpoch(
  world: World,
  parent: Manifest,
  manifest: Manifest,
  carried: readonly RefusedLane[],
  states: Map<string, OperatorState>,
  rows: Map<string, MemoryRow[]>,
): Promise<void> {
  const compiled = world.compiledOf(manifest.build)
  const store = memoryStore()
  const writers = writersOf(compiled, manifest, store)
  const program = compiled.program({
    stage: 'fused',
    shards: 1,
    shard: 0,
    processingTimeMs: manifest.processingTimeMs,
    watermarkMs: parent.watermarkMs,
    writers,
    states: compiled.stateful.map(({ operator }) => stateOf(compiled, operator, states)),
    convicted: manifest.convicted,
  })
  for (const letter of lettersOf(carried, manifest.processingTimeMs)) program.carry(letter)
  for (const { source, partition, start, end } of manifest.progress) {
    if (start === end) continue
    const batches = world.logs.get(source)!.read({ partition, start: BigInt(start), end: BigInt(end) })
    for await (const batch of batches) program.consume(source, batch)
  }
  program.finish(manifest.watermarkMs)
  for (const state of states.values()) state.settle()
  for (const id in writers) {
    for (const part of await writers[id].seal()) {
      const committable = { parts: [part], epoch: manifest.epoch, lane: part.lane } as unknown as Committable
      rows.get(id)!.push(...(await readStagedRows(store, committable)))
    }
  }
}

function writersOf(compiled: Compiled, manifest: Manifest, store: Store): Record<string, StageWriter> {
  const { incarnation, epoch } = manifest
  const writers: Record<string, StageWriter> = {}
  for (const [id, spec] of Object.entries(compiled.sinks)) {
    const context = { store, prefix: `replay/${id}/`, incarnation, epoch, lanes: spec.lanes }
    writers[id] = memoryStageWriter(context, rowSpecOf(compiled, id))
  }
  return writers
}

function stateOf(compiled: Compiled, operator: string, states: Map<string, OperatorState>): OperatorState {
  const found = states.get(operator) ?? compiled.state(operator, [0, compiled.settings.keyGroups], null, [])
  states.set(operator, found)
  return found
}
