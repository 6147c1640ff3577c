/**
 * Opens the sinks of a pipeline file at a directory or a deployment, for commands about their markers.
 *
 * A pipeline that has no head yet (or none any more) has sinks all the same: they can be prepared before its first run
 * and reset after its last one.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { PawlError } from '../model/errors.ts'
import type { Head } from '../model/head.ts'
import type { Marker } from '../model/manifest.ts'
import type { Place } from '../ports/place.ts'
import type { Sink } from '../ports/sink.ts'
import type { ClusterSpec } from '../ports/spec.ts'
import type { Compiled } from '../stream/compiled.ts'
import { clusterOf, defaultStage, kafkaOptionsOf } from './load-cluster.ts'
import { directoryOf } from './open-directory.ts'
import type { Call } from './parse-arguments.ts'

/** The sinks of one pipeline, and what its ledger says. */
export interface OpenedSinks {
  readonly compiled: Compiled
  readonly place: Place
  /** Null before the first run, and where the ledger is gone. */
  readonly head: Head | null
  /** Ids of the sinks that are meant, each opened. */
  readonly sinks: readonly { readonly id: string; readonly sink: Sink; readonly lanes: readonly number[] }[]
}

type ClosingPlace = Place & { close(): Promise<void> }

/** Runs `act` on the sinks that the options name, and closes them. `makes`: the directory may be made. */
export async function withSinks<T>(
  call: Call,
  file: string,
  makes: boolean,
  act: (opened: OpenedSinks) => Promise<T>,
): Promise<T> {
  const { loadPipeline } = await import('../places/load.ts')
  const compiled = await loadPipeline(file, call.options.text('export'))
  const ids = chosen(call, compiled)
  const { pipeline } = compiled.topology
  const place = await openPlaceOf(call, pipeline, makes)
  try {
    const head = await place.ledger.read(pipeline)
    const incarnation = head?.incarnation ?? ''
    const sinks = await Promise.all(
      ids.map(async (id) => {
        const spec = compiled.sinks[id]!
        return { id, sink: await place.sink(pipeline, id, spec, incarnation), lanes: lanesOf(id, spec.lanes, head) }
      }),
    )
    return await act({ compiled, place, head, sinks })
  } finally {
    await place.close()
  }
}

function chosen({ options }: Call, { sinks, topology }: Compiled): string[] {
  const known = Object.keys(sinks).sort()
  const wanted = options.texts('sink')
  for (const id of wanted) {
    if (known.includes(id)) continue
    throw new PawlError(
      'COMMAND_INVALID',
      `pipeline ${topology.pipeline} has no sink ${id}, but ${known.join(', ')} (pawl sinks)`,
    )
  }
  return wanted.length === 0 ? known : [...new Set(wanted)]
}

/** Those of the file, and those that the head knows from before. */
function lanesOf(sink: string, lanes: number, head: Head | null): readonly number[] {
  const registered = (head?.lanes ?? []).filter((known) => known.sink === sink).map(({ lane }) => lane)
  return [...new Set([...Array.from({ length: lanes }, (_, lane) => lane), ...registered])].sort((a, b) => a - b)
}

async function openPlaceOf(call: Call, pipeline: string, makes: boolean): Promise<ClosingPlace> {
  const { options } = call
  const cluster = await clusterOf(kafkaOptionsOf(call))
  const telemetry = { emit: () => undefined }
  const stack = options.text('stack')
  if (stack !== undefined) {
    const [{ openDeployment }, { openDeployedPlace }] = await Promise.all([
      import('../places/stack.ts'),
      import('../places/deployed.ts'),
    ])
    const { ledger, store, bucket, table, stage } = await openDeployment(stack, pipeline)
    await store.close()
    await ledger.close()
    const forcePathStyle = call.env.AWS_ENDPOINT_URL !== undefined || call.env.AWS_ENDPOINT_URL_S3 !== undefined
    return openDeployedPlace({ bucket, table, stage, cluster: cluster ?? noCluster, telemetry, forcePathStyle })
  }
  const directory = directoryOf(options)
  if (!makes && !existsSync(join(directory, 'ledger.db')))
    throw new PawlError('PIPELINE_NOT_FOUND', `${directory} is no pipeline directory`, { directory })
  const { openPlace } = await import('../places/embedded.ts')
  return openPlace({ directory, cluster, stage: options.text('stage') ?? defaultStage, telemetry })
}

async function refuse(): Promise<never> {
  throw new PawlError('COMMAND_INVALID', 'a topic needs brokers: add --bootstrap (pawl sinks)')
}

/** Stands for the brokers of a deployment, which its stack does not tell. */
const noCluster: ClusterSpec = { kind: 'none', openSource: refuse, openSink: refuse }

/** A marker as a person reads it. */
export function shown(marker: Marker | null): string {
  return marker === null ? 'no marker' : `epoch ${marker.epoch} of incarnation ${marker.incarnation}`
}
