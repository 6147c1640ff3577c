/**
 * The sink contract against tables: what both databases' tests share.
 *
 * A table of its own holds key, value, timestamp and an ordinal; a backup is a copy of the rows and the markers,
 * taken and put back in one transaction as a dump would be.
 */
import { randomUUID } from 'node:crypto'
import { type MemoryStore, memoryStore } from '../../lib/adapters/memory/store.ts'
import type { TableOptions } from '../../lib/adapters/shared/table-options.ts'
import type { SqlRow } from '../../lib/adapters/shared/table-rows.ts'
import type { Committable } from '../../lib/model/manifest.ts'
import type { RejectPolicy, Sink } from '../../lib/ports/sink.ts'
import type { CustomSinkSpec } from '../../lib/ports/spec.ts'
import type { Store } from '../../lib/ports/store.ts'
import { refusedValue } from '../../lib/testing/contracts/sink-refusals.ts'
import {
  contractLanes,
  contractRowSpec,
  type SinkControls,
  type SinkSubject,
  type VisibleRow,
} from '../../lib/testing/contracts/sink-subject.ts'

/** Columns of the contract's rows. */
export const contractRow = (value: unknown, key: unknown, timestampMs: number): SqlRow => ({
  k: key as string | null,
  v: contractRowSpec.value.encode(value),
  ts: timestampMs,
})

/** What the contract needs of a database. */
export interface ContractDatabase {
  /** Makes the table of one case, which refuses a value if one is given. */
  createTable(table: string, refused: string | null): Promise<void>
  spec(options: TableOptions<unknown, unknown>): CustomSinkSpec<unknown, unknown>
  visible(table: string): Promise<readonly VisibleRow[]>
  /** Without it all rows are fetched to be counted. */
  count?(table: string): Promise<number>
  backup(table: string, markerTable: string): Promise<() => Promise<void>>
  dropMarker(markerTable: string, lane: number): Promise<void>
}

/** A place for one case. */
export async function freshTable(
  database: ContractDatabase,
  { onReject = 'park', ...more }: Pick<SinkControls, 'disturb'> & { readonly onReject?: RejectPolicy } = {},
) {
  const id = randomUUID().slice(0, 8)
  const table = `rows_${id}`
  const markerTable = `markers_${id}`
  await database.createTable(table, onReject === 'park' ? null : refusedValue)
  const store = memoryStore()
  const spec = database.spec({ table, markerTable, onReject, lanes: contractLanes, row: contractRow })
  const opened: Sink[] = []
  const controls: SinkControls = {
    visible: () => database.visible(table),
    backup: () => database.backup(table, markerTable),
    dropMarker: (lane) => database.dropMarker(markerTable, lane),
    ...stagingControls(store),
    ...more,
    ...(database.count === undefined ? {} : { count: () => database.count!(table) }),
  }
  const over = async (other: Store) => {
    const context = { pipeline: `p-${id}`, incarnation: 'unused', stage: 'test', directory: null, store: other }
    const sink = await spec.open('rows', context)
    opened.push(sink)
    return sink
  }
  return {
    async open(): Promise<SinkSubject> {
      return { sink: await over(store), store, controls, over }
    },
    async dispose() {
      for (const sink of opened) await sink.close()
    },
  }
}

/** Loses and damages what waits in a store. */
export function stagingControls(store: MemoryStore): Pick<SinkControls, 'loseStaging' | 'damageStaging'> {
  const objectsOf = (committable: Committable) =>
    committable.parts.flatMap(({ objects }) => objects.map(({ name }) => name))
  return {
    loseStaging: (committable) => store.delete(objectsOf(committable)),
    damageStaging: async (committable) => store.damage(objectsOf(committable)[0]!),
  }
}
