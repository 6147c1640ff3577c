/**
 * Telemetry as lines of JSON that CloudWatch Logs turns into metrics by itself.
 *
 * The embedded metric format: a line that carries `_aws` is a log entry and metrics at once, with no call and no
 * agent. Every event is one line with all that it says, by which queries find it; a metric that is split by operator,
 * sink or topic needs its dimension at the root of a line and gets a short one of its own, of `event: 'measure'`.
 * Every line says pipeline, run, epoch, attempt and task. Source:
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
 */
import type { Origin, ProgressEvent } from '../../model/event.ts'
import type { Telemetry } from '../../ports/system.ts'
import { type Measured, measure } from './measure.ts'
import { type MetricName, metrics } from './metrics.ts'

/** Where lines go and when they say they were written. */
export interface EmfTelemetryOptions {
  /** Takes a line without its end, as `console.log` does. Must not throw. */
  readonly write: (line: string) => void
  readonly namespace?: string
  readonly nowMs?: () => number
}

/** Writes each event as one line, and a line for each value by which one of its metrics is split. */
export function emfTelemetry({ write, namespace = 'Pawl', nowMs = Date.now }: EmfTelemetryOptions): Telemetry {
  return {
    emit(event) {
      const measured = measure(event)
      const ms = nowMs()
      const own = measured.filter(({ by }) => by === null)
      write(JSON.stringify({ ...emf(own[0], namespace, ms), ...event, ...originOf(event), ...own[0]?.values }))
      for (const one of measured) if (one.by !== null) write(JSON.stringify(splitLine(event, one, namespace, ms)))
    },
  }
}

/** The fields that every line has, null where there is no such thing. */
function originOf({ step = null, run = null, epoch = null, attempt = null, stage = null, task = null }: ProgressEvent) {
  return { step, run, epoch, attempt, stage, task } satisfies Origin
}

function splitLine(event: ProgressEvent, { by, values }: Measured, namespace: string, ms: number) {
  const measured = { by, values }
  const { pipeline } = event
  return {
    ...emf(measured, namespace, ms),
    event: 'measure',
    of: event.event,
    pipeline,
    ...originOf(event),
    ...(by === null ? {} : { [by.split]: by.value }),
    ...values,
  }
}

/** What makes a line metrics; nothing when there is nothing to measure. */
function emf(measured: Measured | undefined, Namespace: string, Timestamp: number) {
  if (measured === undefined) return {}
  const names = Object.keys(measured.values) as MetricName[]
  if (names.length === 0) return {}
  const Dimensions = [['pipeline', ...(measured.by === null ? [] : [measured.by.split])]]
  const Metrics = names.map((Name) => ({ Name, Unit: metrics[Name].unit }))
  return { _aws: { Timestamp, CloudWatchMetrics: [{ Namespace, Dimensions, Metrics }] } }
}
