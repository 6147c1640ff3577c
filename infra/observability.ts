/**
 * What a deployment shows of itself: alarms, one dashboard, saved queries.
 *
 * Alarms call `alarmTopic` when there is one. Step Functions tracing stays off: one trace would span the hundreds of
 * epochs of a run. Functions are traced one invocation at a time where `tracing` asks for it.
 */
import { Duration, Stack } from 'aws-cdk-lib'
import * as cloudwatch from 'aws-cdk-lib/aws-cloudwatch'
import * as actions from 'aws-cdk-lib/aws-cloudwatch-actions'
import * as logs from 'aws-cdk-lib/aws-logs'
import type * as sns from 'aws-cdk-lib/aws-sns'
import { Construct } from 'constructs'
import type { Splits } from '../lib/adapters/cloudwatch/metrics.ts'
import type { Settings } from '../lib/model/settings.ts'
import type { MadeFunctions } from './functions.ts'
import { type AlarmMetric, type AlarmName, type AlarmSpec, alarmsOf, alarmText } from './observability-alarms.ts'
import { type DashboardSubject, dashboardRows } from './observability-dashboard.ts'
import { queriesOf } from './observability-queries.ts'
import type { Description } from './topology.ts'

/** What is watched. */
export interface ObservabilityProps {
  readonly stageName: string
  readonly description: Description
  readonly settings: Settings
  readonly functions: MadeFunctions
  readonly tick: Duration
  readonly alarmTopic?: sns.ITopic
}

/** The alarms of a deployment by name, its dashboard and its queries. Add actions of your own to alarms as you like. */
export class Observability extends Construct {
  readonly alarms: Readonly<Record<AlarmName, cloudwatch.Alarm>>
  readonly dashboard: cloudwatch.Dashboard

  constructor(scope: Construct, id: string, props: ObservabilityProps) {
    super(scope, id)
    const specs = Object.entries(alarmsOf(props.settings, props.tick.toSeconds())) as [AlarmName, AlarmSpec][]
    const made = specs.map(([name, spec]) => [name, this.#alarm(name, spec, props)] as const)
    this.alarms = Object.fromEntries(made) as Record<AlarmName, cloudwatch.Alarm>
    this.dashboard = this.#dashboard(props)
    this.#saveQueries(props)
  }

  #alarm(name: AlarmName, spec: AlarmSpec, props: ObservabilityProps): cloudwatch.Alarm {
    const { pipeline } = props.description.topology
    const alarm = new cloudwatch.Alarm(this, name[0].toUpperCase() + name.slice(1), {
      metric: metricOf(spec, props),
      alarmDescription: alarmText(spec, pipeline, Stack.of(this).stackName),
      threshold: spec.threshold,
      evaluationPeriods: spec.periods,
      comparisonOperator: cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      treatMissingData:
        spec.missing === 'breaching'
          ? cloudwatch.TreatMissingData.BREACHING
          : cloudwatch.TreatMissingData.NOT_BREACHING,
    })
    if (props.alarmTopic === undefined) return alarm
    const action = new actions.SnsAction(props.alarmTopic)
    alarm.addAlarmAction(action)
    alarm.addOkAction(action)
    return alarm
  }

  #dashboard(props: ObservabilityProps): cloudwatch.Dashboard {
    const { stageName, description, functions, tick } = props
    const { pipeline } = description.topology
    const periodSeconds = Math.ceil(Math.max(60, tick.toSeconds()) / 60) * 60
    const period = Duration.seconds(periodSeconds)
    return new cloudwatch.Dashboard(this, 'Dashboard', {
      dashboardName: `pawl-${stageName}-${pipeline}`,
      defaultInterval: Duration.hours(3),
      widgets: dashboardRows({
        pipeline,
        stageName,
        stack: Stack.of(this).stackName,
        namespace: namespaceOf(stageName),
        values: valuesOf(description),
        period,
        alarms: Object.values(this.alarms),
        logGroupNames: logGroupNamesOf(functions),
        taskThrottles: functions.operate.metricThrottles({ period, label: 'Tasks throttled' }),
      }),
    })
  }

  #saveQueries({ stageName, description, functions }: ObservabilityProps): void {
    const { pipeline } = description.topology
    for (const { name, text } of queriesOf(pipeline))
      new logs.CfnQueryDefinition(this, `Query-${name.replaceAll(' ', '-')}`, {
        name: `pawl/${stageName}/${pipeline}/${name}`,
        queryString: text,
        logGroupNames: logGroupNamesOf(functions),
      })
  }
}

/** Namespace of a stage's metrics; functions emit under the same. */
export function namespaceOf(stageName: string): string {
  return `Pawl/${stageName}`
}

/** What splits the metrics of a pipeline: bounded by its topology, never by its input. */
export function valuesOf({ topology, sources, sinks }: Description): DashboardSubject['values'] {
  return {
    topic: [...new Set(sources.map(({ topic }) => topic))].sort(),
    sink: sinks.map(({ id }) => id),
    operator: topology.nodes.filter((node) => 'stateVersion' in node).map(({ id }) => id),
  }
}

/** How many values each split has, for `metricCount`. */
export function splitsOf(description: Description): Splits {
  const { topic, sink, operator } = valuesOf(description)
  return { topic: topic.length, sink: sink.length, operator: operator.length }
}

function logGroupNamesOf(functions: ObservabilityProps['functions']): string[] {
  return Object.values(functions).map(({ logGroup }) => logGroup.logGroupName)
}

function metricOf({ metric, statistic, periodSeconds }: AlarmSpec, props: ObservabilityProps): cloudwatch.Metric {
  const { stageName, description, functions } = props
  const how = { statistic, period: Duration.seconds(periodSeconds) }
  const of = (name: string, namespace: string, dimensionsMap: Record<string, string>) =>
    new cloudwatch.Metric({ metricName: name, namespace, dimensionsMap, ...how })
  const { pipeline } = description.topology
  const places: Readonly<Record<AlarmMetric['of'], () => cloudwatch.Metric>> = {
    pipeline: () => of(metric.name, namespaceOf(stageName), { pipeline }),
    trigger: () => functions.trigger.metric(metric.name, how),
    operate: () => functions.operate.metric(metric.name, how),
  }
  return places[metric.of]()
}
