/**
 * What tests of table sinks share: a database of either kind, and a rig that stages and promotes epochs as the
 * engine would, with values of any type.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type MemoryStore, memoryStore } from '../../lib/adapters/memory/store.ts'
import type { DatabaseConnection } from '../../lib/adapters/shared/database-address.ts'
import type { TableOptions } from '../../lib/adapters/shared/table-options.ts'
import { isPawlError } from '../../lib/model/errors.ts'
import type { CommitPermit, Committable, Marker } from '../../lib/model/manifest.ts'
import type { PromoteResult, Sink } from '../../lib/ports/sink.ts'
import type { CustomSinkSpec } from '../../lib/ports/spec.ts'
import type { Server } from './server.ts'

// biome-ignore lint/suspicious/noExplicitAny: rows of tests are of any shape
export type AnyRow = Record<string, any>

/** A database of either kind. */
export interface TableDatabase {
  readonly server: Server
  readonly url: string
  query(text: string): Promise<readonly AnyRow[]>
  /** A connection that holds a lock until it is released. */
  lockTable(table: string): Promise<() => Promise<void>>
  /** Action of ALTER TABLE that makes an int column a bigint. */
  widen(column: string): string
  spec(
    options: TableOptions<unknown, unknown> & { readonly connection: DatabaseConnection },
  ): CustomSinkSpec<unknown, unknown>
}

/** One row: value, key, timestamp. */
export type RigRow = readonly [value: unknown, key?: unknown, timestampMs?: number]

/** A sink of one lane with a store and, in place of a ledger, the marker that it ought to have. */
export interface TableRig {
  readonly sink: Sink
  readonly store: MemoryStore
  readonly incarnation: string
  base(): Promise<Marker>
  /** Stages an epoch, flushing every `flushEvery` rows, and takes it for committed. */
  stage(rows: Iterable<RigRow>, flushEvery?: number): Promise<Committable>
  promote(committable: Committable): Promise<PromoteResult>
  /** Stages and promotes. */
  run(rows: Iterable<RigRow>, flushEvery?: number): Promise<void>
}

export function markerOf(incarnation: string, epoch: number): Marker {
  return { incarnation, epoch, hash: `hash-of-${epoch}` }
}

/** A rig on a sink of one lane. */
export async function tableRig(
  spec: CustomSinkSpec<unknown, unknown>,
  options: { readonly store?: MemoryStore; readonly pipeline?: string } = {},
): Promise<TableRig> {
  const { store = memoryStore(), pipeline = randomUUID() } = options
  const incarnation = randomUUID()
  const sink = await spec.open('rows', { pipeline, incarnation, stage: 'test', directory: null, store })
  let prev = markerOf(incarnation, 0)
  let epoch = 0
  const rig: TableRig = {
    sink,
    store,
    incarnation,
    base: () => sink.base(0, markerOf(incarnation, 0)),
    async stage(rows, flushEvery = 1000) {
      epoch++
      const writer = await sink.stage({ store, prefix: `${randomUUID()}/`, incarnation, epoch, lanes: 1 })
      let count = 0
      for (const [value, key = null, timestampMs = 0] of rows) {
        writer.add(key, value, timestampMs, 0)
        if (++count % flushEvery === 0) await writer.flush()
      }
      const parts = await writer.seal()
      const bytes = parts.reduce((sum, part) => sum + part.bytes, 0)
      const committable = { sink: 'rows', lane: 0, target: sink.target, epoch, prev, parts, rows: count, bytes }
      prev = markerOf(incarnation, epoch)
      return committable
    },
    promote: (committable) => {
      const manifest = { name: 'manifest', bytes: 1, sha256: `hash-of-${committable.epoch}` }
      return sink.promote(committable, { incarnation, epoch: committable.epoch, manifest } as CommitPermit)
    },
    async run(rows, flushEvery) {
      const { result } = await rig.promote(await rig.stage(rows, flushEvery))
      if (result !== 'promoted') throw new Error(result)
    },
  }
  return rig
}

/** Promotes until it is clear what became of it, for as long as the errors are such that one may. */
export async function settled(rig: TableRig, committable: Committable): Promise<PromoteResult> {
  for (let tries = 0; ; tries++) {
    try {
      return await rig.promote(committable)
    } catch (error) {
      if (!isPawlError(error) || error.kind !== 'Retryable' || tries > 600) throw error
      await sleep(50)
    }
  }
}

/** A name that no other test uses. */
export function freshName(prefix: string): string {
  return `${prefix}_${randomUUID().slice(0, 8)}`
}
