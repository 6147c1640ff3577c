/**
 * The embedded place: one machine, a directory and nothing but Node.
 *
 * Composition root. `ledger.db` holds the head, `store/` the objects, `files/` what sinks show; topics are logs of
 * segments in the store unless a cluster is given, then they are Kafka topics. Several processes may open one
 * directory; the ledger decides who goes on.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { openFileSink } from '../adapters/file/sink.ts'
import { fileStore } from '../adapters/file/store.ts'
import { openSegmentLog } from '../adapters/segments/log.ts'
import { sqliteLedger } from '../adapters/sqlite/ledger.ts'
import { systemClock } from '../adapters/system/clock.ts'
import { partMark, placeStatus, processPlace } from '../adapters/system/liveness.ts'
import { systemRandom } from '../adapters/system/random.ts'
import type { LogSource } from '../ports/log.ts'
import type { Place } from '../ports/place.ts'
import type { Sink } from '../ports/sink.ts'
import type { ClusterSpec, OpenContext, SinkSpec, TopicSpec } from '../ports/spec.ts'
import type { RunStart, Telemetry } from '../ports/system.ts'
import { closeAll, once } from './once.ts'

/** What an embedded place is made of. */
export interface EmbeddedOptions {
  /** Made when it is absent. */
  readonly directory: string
  /** Where topics live that name no cluster of their own; null: in the directory. */
  readonly cluster: ClusterSpec | null
  /** Environment name; part of every id that lands in a shared cluster. */
  readonly stage: string
  readonly telemetry: Telemetry
}

/** A place with its queue of started runs. */
export interface EmbeddedPlace extends Place {
  readonly directory: string
  /** Runs that were started here and wait to be taken up. */
  readonly starts: RunStart[]
  close(): Promise<void>
}

/** Opens a directory. Throws what store and ledger throw: `LEDGER_TOO_NEW`, `LEDGER_DAMAGED`, `STORE_UNAVAILABLE`. */
export async function openPlace(options: EmbeddedOptions): Promise<EmbeddedPlace> {
  const { directory, telemetry } = options
  mkdirSync(directory, { recursive: true })
  const store = fileStore(join(directory, 'store'))
  const ledger = sqliteLedger(join(directory, 'ledger.db'))
  const random = systemRandom()
  const starts: RunStart[] = []
  const here = `${processPlace()}${partMark}${random.id()}`
  const sources = new Map<string, Promise<LogSource>>()
  const sinks = new Map<string, Promise<Sink>>()
  const contextOf = (pipeline: string, incarnation: string): OpenContext => {
    return { pipeline, incarnation, stage: options.stage, directory, store }
  }
  const openTopicSink = (id: string, spec: TopicSpec<unknown, unknown>, context: OpenContext): Promise<Sink> | Sink => {
    const cluster = spec.cluster ?? options.cluster
    if (cluster !== null) return cluster.openSink(spec, id, context)
    return openFileSink({ sink: id, directory: join(directory, 'files', context.pipeline), within: directory, spec })
  }
  const openSink = async (id: string, spec: SinkSpec<unknown, unknown>, context: OpenContext): Promise<Sink> =>
    spec.kind === 'topic' ? openTopicSink(id, spec, context) : spec.open(id, context)
  const openSource = async (spec: TopicSpec<unknown, unknown>, context: OpenContext): Promise<LogSource> => {
    const cluster = spec.cluster ?? options.cluster
    return cluster === null ? openSegmentLog(store, spec.topic, random) : cluster.openSource(spec, context)
  }
  return {
    directory,
    ledger,
    store,
    random,
    telemetry,
    clock: systemClock(),
    place: here,
    starts,
    launcher: {
      async start(run) {
        starts.push(run)
        return 'started'
      },
      // A run that ended here without closing itself is gone, although the process is not.
      status: async (place) => (place === here ? 'gone' : placeStatus(place)),
    },
    source: (pipeline, id, spec, incarnation) =>
      once(sources, `${pipeline}/${id}`, () => openSource(spec, contextOf(pipeline, incarnation))),
    sink: (pipeline, id, spec, incarnation) =>
      once(sinks, `${pipeline}/${id}`, () => openSink(id, spec, contextOf(pipeline, incarnation))),
    async close() {
      await closeAll(sources, sinks)
      await store.close()
      await ledger.close()
    },
  }
}
