/**
 * The deployed place: head in DynamoDB, objects in S3, topics in Kafka, runs as executions.
 *
 * Composition root. Opening it makes no call: clients and connections are made by whoever uses them first, so that a
 * function pays only for what its step needs. Functions, commands and tests open the same one.
 */
import { dynamoLedger } from '../adapters/dynamodb/ledger.ts'
import { s3Store } from '../adapters/s3/store.ts'
import { openIntakeLog } from '../adapters/segments/intake-log.ts'
import type { AwsOptions } from '../adapters/shared/aws.ts'
import { systemClock } from '../adapters/system/clock.ts'
import { systemRandom } from '../adapters/system/random.ts'
import { PawlError } from '../model/errors.ts'
import type { LogSource } from '../ports/log.ts'
import type { Place } from '../ports/place.ts'
import type { Sink } from '../ports/sink.ts'
import type { ClusterSpec, OpenContext } from '../ports/spec.ts'
import type { Launcher, Telemetry } from '../ports/system.ts'
import { closeAll, once } from './once.ts'

/** What a deployed place is made of. */
export interface DeployedOptions {
  readonly bucket: string
  readonly table: string
  /** Environment name; part of every id that lands in a shared cluster. */
  readonly stage: string
  /** Where topics live that name no cluster of their own. */
  readonly cluster: ClusterSpec
  readonly telemetry: Telemetry
  /** Absent where nothing is ever started: most steps, and commands that only look. */
  readonly launcher?: Launcher & { close(): Promise<void> }
  /** Topics that name no cluster of their own are read from what the trigger laid down of its events. */
  readonly takesEventsIn?: boolean
  /** With a meter, steps tell what their calls used; give the launcher the same one. */
  readonly aws?: AwsOptions
  /** Bucket in the path and not in the host name, as emulators want it. */
  readonly forcePathStyle?: boolean
}

/** A place that can be closed: sockets end, nothing else. */
export interface DeployedPlace extends Place {
  close(): Promise<void>
}

/** Opens the place without a call. */
export function openDeployedPlace(options: DeployedOptions): DeployedPlace {
  const { bucket, table, stage, cluster, telemetry, takesEventsIn = false, aws = {}, forcePathStyle } = options
  const { meter } = aws
  const store = s3Store({ ...aws, bucket, ...(forcePathStyle === undefined ? {} : { forcePathStyle }) })
  const ledger = dynamoLedger({ ...aws, table })
  const sources = new Map<string, Promise<LogSource>>()
  const sinks = new Map<string, Promise<Sink>>()
  const contextOf = (pipeline: string, incarnation: string): OpenContext => {
    return { pipeline, incarnation, stage, directory: null, store }
  }
  return {
    ledger,
    store,
    telemetry,
    clock: systemClock(),
    random: systemRandom(),
    launcher: options.launcher ?? nobody,
    place: `${table}/${stage}`,
    ...(meter === undefined ? {} : { usage: () => meter.take() }),
    source: (pipeline, id, spec, incarnation) =>
      once(sources, `${pipeline}/${id}`, async () =>
        takesEventsIn && spec.cluster === null
          ? openIntakeLog(store, pipeline, spec.topic)
          : (spec.cluster ?? cluster).openSource(spec, contextOf(pipeline, incarnation)),
      ),
    sink: (pipeline, id, spec, incarnation) =>
      once(sinks, `${pipeline}/${id}`, () => {
        const context = contextOf(pipeline, incarnation)
        return spec.kind === 'topic' ? (spec.cluster ?? cluster).openSink(spec, id, context) : spec.open(id, context)
      }),
    async close() {
      await closeAll(sources, sinks)
      await store.close()
      await ledger.close()
      await options.launcher?.close()
    },
  }
}

const nobody: Launcher = {
  async start({ pipeline }) {
    throw new PawlError('ASSERTION_FAILED', `this step of ${pipeline} starts no runs`)
  },
  status: async () => 'unknown',
}
