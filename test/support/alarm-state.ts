/**
 * Evaluates an alarm of a template on what a pipeline wrote: for emulators, which make no metrics of log lines.
 *
 * Follows CloudWatch as far as our alarms use it: one metric, whole periods, a basic statistic, the last periods all
 * breaching, missing ones taken as the alarm says. Sources: the user guide on evaluating alarms, and the embedded
 * metric format.
 */

/** Properties of `AWS::CloudWatch::Alarm`, or what DescribeAlarms answers: the fields are the same. */
export interface AlarmProps {
  readonly Namespace?: string
  readonly MetricName?: string
  readonly Dimensions?: readonly { readonly Name?: string; readonly Value?: unknown }[]
  readonly Statistic?: string
  readonly Period?: number
  readonly EvaluationPeriods?: number
  readonly DatapointsToAlarm?: number
  readonly Threshold?: number
  readonly ComparisonOperator?: string
  readonly TreatMissingData?: string
  readonly AlarmDescription?: string
}

/** One value of one metric. */
export interface Datapoint {
  readonly namespace: string
  readonly name: string
  readonly dimensions: Readonly<Record<string, unknown>>
  readonly value: number
  readonly atMs: number
}

interface EmfLine {
  readonly _aws?: {
    readonly Timestamp: number
    readonly CloudWatchMetrics: readonly {
      readonly Namespace: string
      readonly Dimensions: readonly (readonly string[])[]
      readonly Metrics: readonly { readonly Name: string }[]
    }[]
  }
  readonly [field: string]: unknown
}

/** What CloudWatch makes of lines; `atMs` instead of the lines' own time where it is given. */
export function datapointsOf(lines: readonly string[], atMs?: number): Datapoint[] {
  return lines.flatMap((text) => {
    if (!text.includes('"_aws"')) return []
    const line = JSON.parse(text) as EmfLine
    return (line._aws?.CloudWatchMetrics ?? []).flatMap(({ Namespace, Dimensions, Metrics }) =>
      Dimensions.flatMap((names) =>
        Metrics.map(({ Name }) => ({
          namespace: Namespace,
          name: Name,
          dimensions: Object.fromEntries(names.map((name) => [name, line[name]])),
          value: line[Name] as number,
          atMs: atMs ?? line._aws!.Timestamp,
        })),
      ),
    )
  })
}

/** True when the alarm is in ALARM at `atMs`, a multiple of its period. */
export function isAlarming(alarm: AlarmProps, points: readonly Datapoint[], atMs: number): boolean {
  const { Period = 60, EvaluationPeriods = 1, DatapointsToAlarm = EvaluationPeriods, TreatMissingData } = alarm
  if (alarm.ComparisonOperator !== 'GreaterThanOrEqualToThreshold')
    throw new Error(`${alarm.ComparisonOperator} is not evaluated here`)
  const own = points.filter((point) => isOf(alarm, point))
  const breaching = Array.from({ length: EvaluationPeriods }, (_, i) => {
    const endMs = atMs - i * Period * 1000
    const values = own.filter((point) => point.atMs >= endMs - Period * 1000 && point.atMs < endMs)
    if (values.length === 0) return TreatMissingData === 'breaching'
    return (
      statisticOf(
        alarm,
        values.map(({ value }) => value),
      ) >= (alarm.Threshold ?? 0)
    )
  })
  return breaching.filter(Boolean).length >= DatapointsToAlarm
}

function isOf({ Namespace, MetricName, Dimensions = [] }: AlarmProps, point: Datapoint): boolean {
  if (point.namespace !== Namespace || point.name !== MetricName) return false
  if (Object.keys(point.dimensions).length !== Dimensions.length) return false
  // What is only known once it is deployed is a reference in a template.
  return Dimensions.every(({ Name = '', Value }) => typeof Value !== 'string' || point.dimensions[Name] === Value)
}

function statisticOf({ Statistic }: AlarmProps, values: readonly number[]): number {
  switch (Statistic) {
    case 'Sum':
      return values.reduce((sum, value) => sum + value, 0)
    case 'Minimum':
      return Math.min(...values)
    case 'Maximum':
      return Math.max(...values)
    default:
      throw new Error(`${Statistic} is not evaluated here`)
  }
}
