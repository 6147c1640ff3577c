/**
 * Runs pipelines of `examples/` where people run them: in a directory, and against a Kafka broker.
 *
 * Both take records in portions, one run each, so that the output spans several epochs and processes; both give
 * rows back as a reader of the sink sees them. Topics of the shared broker get names of their own.
 */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type KafkaClusterSpec, kafka } from '../../lib/adapters/kafka/cluster.ts'
import { createSegmentLog } from '../../lib/adapters/segments/log.ts'
import type { ProgressEvent } from '../../lib/model/event.ts'
import type { LogRecord } from '../../lib/model/records.ts'
import { openPlace } from '../../lib/places/embedded.ts'
import { runPipeline } from '../../lib/places/run.ts'
import type { ClusterSpec } from '../../lib/ports/spec.ts'
import { compile } from '../../lib/stream/compile.ts'
import type { Compiled } from '../../lib/stream/compiled.ts'
import type { Row } from '../model/record-batches.ts'
import type { Broker } from './kafka.ts'
import { openSource, readAll, until } from './kafka-source.ts'
import { asAdmin, freshTopic, send } from './kafka-topics.ts'

/** A record for a partition of the example's only source. */
export interface Given extends Partial<LogRecord> {
  readonly partition: number
  readonly value: string
}

/** A row as a reader of a sink sees it; the value is parsed. */
export interface Shown {
  readonly key: string | null
  readonly value: unknown
}

/** What a sink shows, by sink, and what was told meanwhile. */
export interface Ran {
  /** In the order of epochs. */
  readonly rows: Readonly<Record<string, readonly Shown[]>>
  readonly events: readonly ProgressEvent[]
}

const partitions = 3

/** Runs in a temporary directory, each portion until it is visible, and reads the files of the sinks. */
export async function runEmbedded(pipeline: unknown, portions: readonly (readonly Given[])[]): Promise<Ran> {
  const directory = mkdtempSync(join(tmpdir(), 'pawl-example-'))
  const compiled = compile(pipeline)
  const events: ProgressEvent[] = []
  try {
    for (const portion of portions) {
      await runOnce(compiled, directory, null, events, async (place) => {
        const { topic } = onlySource(compiled)
        const log = await createSegmentLog(place.store, { topic, partitions, random: place.random })
        for (let partition = 0; partition < partitions; partition++) {
          const records = portion.filter((given) => given.partition === partition).map(logRecord)
          if (records.length > 0) await log.append(partition, records)
        }
      })
    }
    const files = join(directory, 'files', compiled.topology.pipeline)
    const rows = Object.keys(compiled.sinks).map((sink) => [sink, readFilesSink(join(files, sink))])
    return { rows: Object.fromEntries(rows), events }
  } finally {
    rmSync(directory, { recursive: true })
  }
}

/** Runs against a broker, each portion until it is visible, and reads the topics of the sinks. */
export async function runOnKafka(
  broker: Broker,
  pipeline: unknown,
  portions: readonly (readonly Given[])[],
): Promise<Ran> {
  const directory = mkdtempSync(join(tmpdir(), 'pawl-example-'))
  const compiled = compile(pipeline)
  const events: ProgressEvent[] = []
  const names = new Map<string, string>()
  for (const topic of topicsOf(compiled)) names.set(topic, await freshTopic(broker, partitions))
  try {
    for (const portion of portions) {
      const cluster = underNames(kafka({ brokers: broker.bootstrap }), names)
      const messages = portion.map(({ key, value, partition, timestampMs }) => {
        return { key: key as string | undefined, value, partition, timestamp: timestampMs?.toString() }
      })
      await send(broker, names.get(onlySource(compiled).topic)!, messages)
      await runOnce(compiled, directory, cluster, events, async () => {})
    }
    const rows: Record<string, Shown[]> = {}
    for (const [sink, spec] of Object.entries(compiled.sinks))
      if (spec.kind === 'topic')
        rows[sink] = await readKafkaSink(broker, names.get(spec.topic)!, promotedRows(events, sink))
    return { rows, events }
  } finally {
    await asAdmin(broker, (admin) => admin.deleteTopics({ topics: [...names.values()] }))
    rmSync(directory, { recursive: true })
  }
}

/** Rows of a files sink: whole files in the order of their names, which is the order of epochs. */
export function readFilesSink(directory: string): Shown[] {
  const names = readdirSync(directory).filter((name) => name.endsWith('.jsonl'))
  return names.sort().flatMap((name) =>
    readFileSync(join(directory, name), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => {
        const { key, value } = JSON.parse(line) as Shown
        return { key, value }
      }),
  )
}

/** The last value of each key: what a table of the sink's rows would hold. */
export function lastByKey(rows: readonly Shown[]): Record<string, unknown> {
  return Object.fromEntries(rows.map(({ key, value }) => [key, value]))
}

async function runOnce(
  compiled: Compiled,
  directory: string,
  cluster: ClusterSpec | null,
  events: ProgressEvent[],
  before: (place: Awaited<ReturnType<typeof openPlace>>) => Promise<void>,
): Promise<void> {
  const telemetry = { emit: (event: ProgressEvent) => events.push(event) }
  const place = await openPlace({ directory, cluster, stage: `test-${stageOf(directory)}`, telemetry })
  try {
    await before(place)
    const { reason, code, message } = await runPipeline(compiled, { place, until: 'caught-up' })
    if (reason !== 'caught-up') throw new Error(`${reason}: ${code} ${message}`)
  } finally {
    await place.close()
  }
}

/** A stage of its own for each directory, so that nobody else uses its transactional ids. */
const stages = new Map<string, string>()
function stageOf(directory: string): string {
  const stage = stages.get(directory) ?? randomUUID()
  stages.set(directory, stage)
  return stage
}

function onlySource(compiled: Compiled) {
  const [source, ...others] = Object.values(compiled.sources)
  if (source === undefined || others.length > 0) throw new Error('the examples have one source each')
  return source
}

function topicsOf(compiled: Compiled): string[] {
  const sinks = Object.values(compiled.sinks).flatMap((spec) => (spec.kind === 'topic' ? [spec.topic] : []))
  return [onlySource(compiled).topic, ...sinks]
}

function underNames(cluster: KafkaClusterSpec, names: ReadonlyMap<string, string>): ClusterSpec {
  return {
    kind: cluster.kind,
    openSource: (spec, context) => cluster.openSource({ ...spec, topic: names.get(spec.topic)! }, context),
    openSink: (spec, id, context) => cluster.openSink({ ...spec, topic: names.get(spec.topic)! }, id, context),
  }
}

function logRecord({ key = null, value, timestampMs = 0, headers }: Given): LogRecord {
  return { key, value, timestampMs, headers }
}

function promotedRows(events: readonly ProgressEvent[], sink: string): number {
  return events.reduce((rows, event) => rows + (event.event === 'promoted' && event.sink === sink ? event.rows : 0), 0)
}

/** Committed rows; waits until so many are there, since a commit is seen by readers a little later. */
async function readKafkaSink(broker: Broker, topic: string, count: number): Promise<Shown[]> {
  const source = await openSource(broker, topic)
  const readAllPartitions = async () => {
    const rows: Row[] = []
    for (let partition = 0; partition < partitions; partition++) rows.push(...(await readAll(source, { partition })))
    return rows
  }
  try {
    const rows = await until(readAllPartitions, ({ length }) => length >= count)
    const utf8 = (latin1: string | null) => (latin1 === null ? null : Buffer.from(latin1, 'latin1').toString())
    return rows.map(({ key, value }) => ({ key: utf8(key), value: JSON.parse(utf8(value)!) }))
  } finally {
    await source.close()
  }
}
