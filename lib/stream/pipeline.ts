/**
 * Where a pipeline starts: its id, its settings, its sources.
 *
 * `pipeline(id, options)` fills in every default and touches nothing; `compile` checks.
 */
import type { RejectedRecord } from '../model/manifest.ts'
import {
  type CheckpointSettings,
  defaultSettings,
  type EpochSettings,
  type RetainSettings,
  type Settings,
} from '../model/settings.ts'
import type { SinkSpec, SourceSpec } from '../ports/spec.ts'
import { streamOf } from './builder.ts'
import type { AnyMapper, Graph } from './graph.ts'
import { type Fits, type Mapper, type Stream, streamBrand } from './language.ts'
import { letterHeaders } from './letter-headers.ts'

/** Settings of a pipeline; what is left out has the default of `defaultSettings`. */
export interface PipelineOptions extends Partial<Omit<Settings, 'checkpoint' | 'epoch' | 'retain' | 'onError'>> {
  readonly checkpoint?: Partial<CheckpointSettings>
  readonly epoch?: Partial<EpochSettings>
  readonly retain?: Partial<RetainSettings>
  /** What happens to a record that does not decode, whose operator throws, or that does not encode. */
  readonly onError?: 'fail' | 'skip' | DeadLetter
}

/** Sends rejected records to a sink of their own; made by `deadLetter`. */
export interface DeadLetter {
  readonly policy: 'dead-letter'
  readonly id: string
  readonly sink: SinkSpec<unknown, unknown>
}

/** How a topic is read. */
export interface FromOptions<T, K> {
  /** Id of the source; the topic's name by default. */
  readonly id?: string
  /** Event time in milliseconds since the Unix epoch; the record's own timestamp by default. */
  readonly timestamp?: Mapper<T, K, number>
  /** How far behind the newest record of its partition a record may be without being late. 0 by default. */
  readonly maxOutOfOrdernessMs?: number
  /** A partition without records for this long holds no watermark back; null: it always does. 30 s by default. */
  readonly idleAfterMs?: number | null
}

/** A pipeline without a source yet. */
export interface Pipeline {
  readonly [streamBrand]: unknown
  from<K, T>(source: SourceSpec<K, T>, options?: FromOptions<T, K>): Stream<T, K>
}

/** Begins a pipeline. `id` names its state for ever: keep it. */
export function pipeline(id: string, options: PipelineOptions = {}): Pipeline {
  const { onError = defaultSettings.onError, checkpoint, epoch, retain, ...rest } = options
  const dead = typeof onError === 'object' ? onError : null
  const settings: Settings = {
    ...defaultSettings,
    ...rest,
    checkpoint: { ...defaultSettings.checkpoint, ...checkpoint },
    epoch: { ...defaultSettings.epoch, ...epoch },
    retain: { ...defaultSettings.retain, ...retain },
    onError: typeof onError === 'object' ? onError.policy : onError,
  }
  const deadLetter = dead && Object.freeze({ id: dead.id, spec: dead.sink })
  const graph: Graph = {
    head: Object.freeze({ pipeline: id, settings, deadLetter }),
    tip: null,
    otherTips: [],
    sinks: [],
    strangers: [],
  }
  return Object.freeze({
    [streamBrand]: graph,
    from: <K, T>(source: SourceSpec<K, T>, from?: FromOptions<T, K>) => fromSource(graph, source, from),
  })
}

function fromSource<K, T>(graph: Graph, spec: SourceSpec<K, T>, options: FromOptions<T, K> = {}): Stream<T, K> {
  return streamOf({
    ...graph,
    tip: Object.freeze({
      kind: 'source',
      id: options.id ?? spec.topic,
      inputs: [],
      spec: spec as SourceSpec<unknown, unknown>,
      timestamp: (options.timestamp as AnyMapper | undefined) ?? null,
      maxOutOfOrdernessMs: options.maxOutOfOrdernessMs ?? 0,
      idleAfterMs: options.idleAfterMs === undefined ? 30_000 : options.idleAfterMs,
    }),
  })
}

/**
 * An error policy: rejected records become rows of a sink, with null as their key. Rows that a sink refused say in
 * headers where they stand, unless the topic has headers of its own.
 */
export function deadLetter<K, V>(
  id: string,
  sink: SinkSpec<K, V> &
    Fits<null, K, 'the key type of a dead-letter sink must take null'> &
    Fits<RejectedRecord, V, 'the value type of a dead-letter sink must take a RejectedRecord'>,
): DeadLetter {
  const spec = sink as SinkSpec<unknown, unknown>
  const named = spec.kind === 'topic' && spec.headers === null ? { ...spec, headers: letterHeaders } : spec
  return Object.freeze({ policy: 'dead-letter', id, sink: named })
}
