/**
 * `memory()`: a sink for tests and first steps, whose rows can be looked at.
 *
 * The spec itself holds what is visible, so that a test reads it from where it wrote the pipeline. Exactly once
 * within the life of the process.
 */
import { type Serde, text } from '../../model/serde.ts'
import type { CustomSinkSpec } from '../../ports/spec.ts'
import type { RowSpec } from '../shared/row-encoding.ts'
import { type MemorySink, memorySink } from './sink.ts'
import type { MemoryRow } from './table.ts'

/** A sink spec whose rows can be looked at. */
export interface MemorySinkSpec<K, V> extends CustomSinkSpec<K, V> {
  /** Rows that are visible, in the order in which they became so. */
  rows(): readonly MemoryRow[]
  /** Visible keys and values, decoded; null for a missing key and for a tombstone. */
  entries(): readonly { readonly key: K | null; readonly value: V | null; readonly timestampMs: number }[]
}

/** A sink in memory; keys are text unless said otherwise. Each sink id of a pipeline needs a spec of its own. */
export function memory<V, K = string>(options: {
  readonly value: Serde<V>
  readonly key?: Serde<K>
  readonly lanes?: number
}): MemorySinkSpec<K, V> {
  const key = options.key ?? (text() as Serde<unknown> as Serde<K>)
  const { value, lanes = 1 } = options
  const sinks = new Map<string, MemorySink>()
  const rows = () => [...sinks.values()].flatMap((sink) => [...sink.visible()])
  return {
    kind: 'sink',
    type: 'memory',
    guarantee: 'exactly-once',
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
      const sink = sinks.get(name) ?? memorySink({ id, spec })
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
