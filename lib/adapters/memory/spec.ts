/**
 * `memory()`: a sink for tests and first steps, whose rows can be looked at.
 *
 * The spec itself holds what is visible, so that a test reads it from where it wrote the pipeline. Exactly once
 * within the life of the process, unless it is to be weaker.
 */
import { type Serde, text } from '../../model/serde.ts'
import type { Guarantee, RejectPolicy } from '../../ports/sink.ts'
import type { CustomSinkSpec } from '../../ports/spec.ts'
import type { RowSpec } from '../shared/row-encoding.ts'
import { type MemorySink, memorySink, type RowRefusal } from './sink.ts'
import type { MemoryRow } from './table.ts'

/** A sink spec whose rows can be looked at. */
export interface MemorySinkSpec<K, V> extends CustomSinkSpec<K, V> {
  /** Rows that are visible, in the order in which they became so. */
  rows(): readonly MemoryRow[]
  readonly refuses?: (row: MemoryRow) => RowRefusal | null
  /** Visible keys and values, decoded; null for a missing key and for a tombstone. */
  entries(): readonly { readonly key: K | null; readonly value: V | null; readonly timestampMs: number }[]
}

/** What a memory sink is to be. */
export interface MemoryOptions<K, V> {
  readonly value: Serde<V>
  /** Text by default. */
  readonly key?: Serde<K>
  readonly lanes?: number
  /** `at-least-once`: without a marker; rows become visible one by one, and again with each try. */
  readonly guarantee?: Guarantee
  readonly onReject?: RejectPolicy
  /** Says why a row is refused; null for rows that are welcome. */
  readonly refuses?: (row: MemoryRow) => RowRefusal | null
}

/** A sink in memory; keys are text unless said otherwise. Each sink id of a pipeline needs a spec of its own. */
export function memory<V, K = string>(options: MemoryOptions<K, V>): MemorySinkSpec<K, V> {
  const key = options.key ?? (text() as Serde<unknown> as Serde<K>)
  const { value, lanes = 1, guarantee = 'exactly-once', onReject = 'park', refuses } = options
  const sinks = new Map<string, MemorySink>()
  const rows = () => [...sinks.values()].flatMap((sink) => [...sink.visible()])
  return {
    kind: 'sink',
    type: 'memory',
    guarantee,
    onReject,
    refuses,
    lanes,
    async open(id, { pipeline, store }) {
      const name = `${pipeline}/${id}`
      const spec: RowSpec = {
        topic: id,
        key: key as Serde<unknown>,
        value: value as Serde<unknown>,
        route: null,
        headers: null,
      }
      const sink = sinks.get(name) ?? memorySink({ id, spec, marked: guarantee === 'exactly-once', onReject, refuses })
      sinks.set(name, sink)
      return sink.open(store)
    },
    rows,
    entries: () =>
      rows().map((row) => ({
        key: row.key === null ? null : key.decode(row.key, 0, row.key.length),
        value: row.value === null ? null : value.decode(row.value, 0, row.value.length),
        timestampMs: row.timestampMs,
      })),
  }
}
