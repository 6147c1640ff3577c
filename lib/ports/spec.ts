/**
 * Specs: plain descriptions of sources and sinks, as a pipeline file writes them.
 *
 * A spec holds no connection. The place where the pipeline runs opens it: `topic('lines')` is a Kafka topic where
 * there are brokers, and a log of segments in a directory where there are none.
 */

import type { Header } from '../model/records.ts'
import type { AwsResource } from '../model/resources.ts'
import type { Serde } from '../model/serde.ts'
import type { LogSource, StartPosition } from './log.ts'
import type { Guarantee, RejectPolicy, Sink } from './sink.ts'
import type { Store } from './store.ts'
import type { TopicReport } from './surroundings.ts'

/** What a place gives to a spec that opens itself. */
export interface OpenContext {
  readonly pipeline: string
  readonly incarnation: string
  /** Environment name; part of every id that lands in a shared cluster. */
  readonly stage: string
  /** Directory of the embedded place, or null. */
  readonly directory: string | null
  /** Where staged output waits; promotion reads it back from here. */
  readonly store: Store
}

/** A named log. Source and sink alike. */
export interface TopicSpec<K, V> {
  readonly kind: 'topic'
  readonly topic: string
  readonly key: Serde<K>
  readonly value: Serde<V>
  /** As a source. */
  readonly start: StartPosition
  readonly isolation: 'read_committed' | 'read_uncommitted'
  readonly onLostOffsets: 'fail' | 'skip'
  /** Consumer group under which progress is published; null for none. */
  readonly group: string | null
  /** As a sink: promotion strands, each with a transaction of its own. */
  readonly lanes: number
  /** As a sink: chooses a topic per row; targets must be listed. */
  readonly route: { readonly topics: readonly string[]; readonly choose: (value: V, key: K) => string } | null
  readonly headers: ((value: V, key: K) => readonly Header[]) | null
  /** A cluster of its own; null: the place's. Opaque here, see `pawl/kafka`. */
  readonly cluster: ClusterSpec | null
}

export interface ClusterSpec {
  readonly kind: string
  openSource(spec: TopicSpec<unknown, unknown>, context: OpenContext): Promise<LogSource>
  openSink(spec: TopicSpec<unknown, unknown>, sink: string, context: OpenContext): Promise<Sink>
  /** For a doctor: what these topics are, and what the principal may do with them. */
  inspect?(topics: readonly string[]): Promise<readonly TopicReport[]>
  /** Where the markers of a sink lie. */
  controlTopic?(sink: string, context: Pick<OpenContext, 'stage' | 'pipeline'>): string
}

/** Any other sink; opens itself. */
export interface CustomSinkSpec<K, V> {
  readonly kind: 'sink'
  readonly type: string
  readonly guarantee: Guarantee
  /** `park` when absent. With `dead-letter` the sink has `refused` and `forget`. */
  readonly onReject?: RejectPolicy
  readonly lanes: number
  /** What of AWS a deployment must allow it; absent: nothing. */
  readonly resources?: readonly AwsResource[]
  /** Never called; ties key and value types to the spec. */
  readonly accepts?: (key: K, value: V) => void
  open(sink: string, context: OpenContext): Promise<Sink>
}

export type SourceSpec<K, V> = TopicSpec<K, V>
export type SinkSpec<K, V> = TopicSpec<K, V> | CustomSinkSpec<K, V>
