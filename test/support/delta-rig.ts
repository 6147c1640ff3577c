/**
 * A Delta sink driven through epochs, for tests that look at its table from outside or disturb its calls.
 */
import type { TablePlace } from '../../lib/adapters/delta/sink.ts'
import { type DeltaTableOptions, deltaSpec } from '../../lib/adapters/delta/spec.ts'
import { diskTableFiles } from '../../lib/adapters/file/table-files.ts'
import { type MemoryStore, memoryStore } from '../../lib/adapters/memory/store.ts'
import type { TableFiles } from '../../lib/adapters/shared/table-files.ts'
import type { Committable } from '../../lib/model/manifest.ts'
import type { PromoteResult } from '../../lib/ports/sink.ts'
import { type InputRow, SinkDriver, type SinkSubject } from '../../lib/testing/contracts/sink-subject.ts'

/** A row of a value. */
export type Row = Readonly<Record<string, unknown>>

/** One process with a sink of a table; `restart` is the next process. */
export interface DeltaRig {
  readonly store: MemoryStore
  driver: SinkDriver
  /** Commits an epoch and promotes it. */
  run(epoch: number, rows: readonly Row[]): Promise<Committable[]>
  commit(epoch: number, rows: readonly Row[]): Promise<Committable[]>
  promote(committable: Committable): Promise<PromoteResult>
  /** Another process over the same store and table, with the markers that the ledger would know. */
  restart(options?: Partial<DeltaTableOptions<unknown, unknown>>): Promise<void>
}

/** A rig of a table; `files` opens it, a directory unless said otherwise. */
export async function deltaRig(
  options: DeltaTableOptions<unknown, unknown>,
  files: (located: string) => TableFiles = diskTableFiles,
): Promise<DeltaRig> {
  const store = memoryStore()
  const place: TablePlace = { locate: (table) => table, open: files }
  let used = options
  const open = async (): Promise<SinkDriver> => {
    const context = { pipeline: 'p', incarnation: 'unused', stage: 'test', directory: null, store }
    const sink = await deltaSpec(used, place).open('rows', context)
    return new SinkDriver({ sink, store } as unknown as SinkSubject)
  }
  const rig: DeltaRig = {
    store,
    driver: await open(),
    run: (epoch, rows) => rig.driver.run(epoch, inputs(rows)),
    commit: (epoch, rows) => rig.driver.commit(epoch, inputs(rows)),
    promote: (committable) => rig.driver.promote(committable),
    async restart(changed = {}) {
      used = { ...used, ...changed }
      const markers = rig.driver.markers
      rig.driver = await open()
      for (const [lane, marker] of markers) rig.driver.markers.set(lane, marker)
    },
  }
  return rig
}

/** Rows without a key take the lane of their partition: the first. */
function inputs(rows: readonly Row[]): InputRow[] {
  return rows.map((value) => ({ value: value as unknown as string }))
}
