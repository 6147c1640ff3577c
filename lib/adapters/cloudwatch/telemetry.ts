/**
 * Telemetry as lines of JSON that CloudWatch Logs turns into metrics by itself.
 *
 * The embedded metric format: a line that carries `_aws` is a log entry and metrics at once, with no call and no
 * agent. Everything an event says stays in the line as plain fields; only a few of them are dimensions, since each
 * combination of dimensions is a metric that costs: pipeline, operator, sink, topic. Source:
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
 */
import type { ProgressEvent } from '../../model/event.ts'
import type { Telemetry } from '../../ports/system.ts'

/** What may be a dimension. */
type Dimension = 'pipeline' | 'operator' | 'sink' | 'topic'
type Unit = 'Count' | 'Milliseconds'
/** Value and unit by name of the metric. */
type Metrics = Readonly<Record<string, readonly [number, Unit]>>
type Fields = Readonly<Record<string, unknown>>

/** Metrics with the fields that are their dimensions. */
interface Measured {
  readonly dimensions: readonly Dimension[]
  readonly metrics: Metrics
  readonly fields?: Fields
}

/** Where lines go and when they say they were written. */
export interface EmfTelemetryOptions {
  /** Takes a line without its end, as `console.log` does. Must not throw. */
  readonly write: (line: string) => void
  readonly namespace?: string
  readonly nowMs?: () => number
}

/** Writes each event as one line, or as one line for each combination of dimensions. */
export function emfTelemetry({ write, namespace = 'Pawl', nowMs = Date.now }: EmfTelemetryOptions): Telemetry {
  return {
    emit(event) {
      const measured = measure(event)
      if (measured.length === 0) write(JSON.stringify(event))
      for (const one of measured) write(line(event, one, namespace, nowMs()))
    },
  }
}

const count = (value: number) => [value, 'Count'] as const
const milliseconds = (value: number) => [value, 'Milliseconds'] as const

/** A metric shares its line with no other of the same name. */
function line(event: ProgressEvent, { dimensions, metrics, fields }: Measured, Namespace: string, ms: number): string {
  const Metrics = Object.entries(metrics).map(([Name, [, Unit]]) => ({ Name, Unit }))
  const values = Object.fromEntries(Object.entries(metrics).map(([name, [value]]) => [name, value]))
  const CloudWatchMetrics = [{ Namespace, Dimensions: [dimensions], Metrics }]
  return JSON.stringify({ _aws: { Timestamp: ms, CloudWatchMetrics }, ...event, ...fields, ...values })
}

function measure(event: ProgressEvent): readonly Measured[] {
  const ofPipeline = (metrics: Metrics): Measured => ({ dimensions: ['pipeline'], metrics })
  switch (event.event) {
    case 'committed':
      return measureCommit(event)
    case 'promoted':
      return [{ dimensions: ['pipeline', 'sink'], metrics: { RowsPromoted: count(event.rows) } }]
    case 'aborted':
      return [ofPipeline({ AttemptsAborted: count(1) })]
    case 'parked':
      return [ofPipeline({ Parked: count(1) })]
    case 'taken-over':
      return [ofPipeline({ TakeOvers: count(1) })]
    case 'healed':
      return [
        { dimensions: ['pipeline', 'sink'], metrics: { EpochsHealed: count(event.toEpoch - event.fromEpoch + 1) } },
      ]
    case 'unconfirmed':
      return [{ dimensions: ['pipeline', 'sink'], metrics: { RowsUnconfirmed: count(event.rows) } }]
    case 'offsets-unpublished':
      return [ofPipeline({ OffsetsUnpublished: count(1) })]
    case 'lag':
      return measureLag(event)
    default:
      return []
  }
}

function measureCommit(event: Extract<ProgressEvent, { event: 'committed' }>): readonly Measured[] {
  const { counts, atMs, openedAtMs } = event
  return [
    {
      dimensions: ['pipeline'],
      metrics: {
        EpochsCommitted: count(1),
        EpochDuration: milliseconds(atMs - openedAtMs),
        RecordsIn: count(counts.in),
        RecordsLate: count(counts.late),
        RecordsRejected: count(counts.rejected),
      },
    },
    ...Object.entries(counts.out).map(
      ([sink, rows]): Measured => ({
        dimensions: ['pipeline', 'sink'],
        metrics: { RowsCommitted: count(rows) },
        fields: { sink },
      }),
    ),
  ]
}

/** Of the whole pipeline, and of each source, which is an operator like any other. Lag beyond 2^53 is rounded. */
function measureLag({ lag }: Extract<ProgressEvent, { event: 'lag' }>): readonly Measured[] {
  const total = (parts: typeof lag) => Number(parts.reduce((sum, { records }) => sum + BigInt(records), 0n))
  const sources = [...new Set(lag.map(({ source }) => source))]
  return [
    { dimensions: ['pipeline'], metrics: { Lag: count(total(lag)) } },
    ...sources.map((operator): Measured => {
      const own = lag.filter(({ source }) => source === operator)
      const highest = own.reduce((max, { records }) => Math.max(max, Number(records)), 0)
      return {
        dimensions: ['pipeline', 'operator'],
        metrics: { SourceLag: count(total(own)), HighestPartitionLag: count(highest) },
        fields: { operator, lag: own },
      }
    }),
  ]
}
