/**
 * `topic(name, …)`: the spec of a named log, for sources and sinks alike.
 *
 * Plain data with every default filled in; nothing is opened. Without serdes a topic carries bytes, null included,
 * so that a copy of it is a faithful copy.
 */
import { bytes, nullable, type Serde } from '../model/serde.ts'
import type { TopicSpec } from '../ports/spec.ts'

/** What may be said of a topic; see `TopicSpec` for each. */
export interface TopicOptions<K, V> extends Partial<Omit<TopicSpec<K, V>, 'kind' | 'topic'>> {}

/** A key or value as it stands in the log; null is a tombstone. */
export type RawBytes = Uint8Array | null

/**
 * A topic. Reads from the earliest offset, only committed records; writes through one lane. Keys and values are
 * bytes or null unless serdes are given.
 */
export function topic<K = RawBytes, V = RawBytes>(name: string, options: TopicOptions<K, V> = {}): TopicSpec<K, V> {
  const raw = nullable(bytes())
  const spec: TopicSpec<K, V> = {
    kind: 'topic',
    topic: name,
    key: options.key ?? (raw as Serde<unknown> as Serde<K>),
    value: options.value ?? (raw as Serde<unknown> as Serde<V>),
    start: options.start ?? { at: 'earliest' },
    isolation: options.isolation ?? 'read_committed',
    onLostOffsets: options.onLostOffsets ?? 'fail',
    group: options.group ?? null,
    lanes: options.lanes ?? 1,
    route: options.route ?? null,
    headers: options.headers ?? null,
    cluster: options.cluster ?? null,
  }
  return Object.freeze(spec)
}
