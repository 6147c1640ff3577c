/**
 * The dashboard: four questions from top to bottom, each with a sentence on what to do about the answer.
 *
 * Is it alive, is it behind, is it correct, what does it cost: the order in which a person asks at 3 a.m. Every metric
 * that the pipeline emits is on it, and nothing else but the throttles of its tasks.
 */
import type { Duration } from 'aws-cdk-lib'
import * as cloudwatch from 'aws-cdk-lib/aws-cloudwatch'
import { type MetricName, metrics, type Split } from '../lib/adapters/cloudwatch/metrics.ts'
import { failures } from './observability-queries.ts'

/** What the dashboard shows. */
export interface DashboardSubject {
  readonly pipeline: string
  readonly stageName: string
  readonly stack: string
  readonly namespace: string
  /** Values of each split, as they stand in the topology. */
  readonly values: Readonly<Record<Split, readonly string[]>>
  readonly period: Duration
  readonly alarms: readonly cloudwatch.Alarm[]
  readonly logGroupNames: readonly string[]
  readonly taskThrottles: cloudwatch.IMetric
}

type Statistic = 'Sum' | 'Maximum' | 'p90'

/** Rows of widgets, from top to bottom. */
export function dashboardRows(subject: DashboardSubject): cloudwatch.IWidget[][] {
  const { pipeline, stageName, stack, alarms } = subject
  const command = (words: string) => `\`pawl ${words} ${pipeline} --stack ${stack}\``
  const title = [
    `# ${pipeline} (${stageName})`,
    `First ${command('status')}. A pipeline that stands still loses nothing.`,
  ]
  const states = { title: 'Alarms; each says what to do', alarms: [...alarms], width: 24, height: 3 }
  return [
    [text(24, 2, ...title)],
    [new cloudwatch.AlarmStatusWidget(states)],
    ...aliveRows(subject, command),
    behindRow(subject),
    correctRow(subject, command),
    costRow(subject),
  ]
}

/** A command with the name of the deployment. */
type CommandOf = (words: string) => string

function aliveRows(subject: DashboardSubject, command: CommandOf): cloudwatch.IWidget[][] {
  const show = shownOf(subject)
  const failed = new cloudwatch.LogQueryWidget({
    title: 'What failed last',
    logGroupNames: [...subject.logGroupNames],
    queryLines: [...failures(`filter pipeline = "${subject.pipeline}" and event != "measure"`), 'limit 10'],
    width: 24,
    height: 5,
  })
  const advice = [
    '## 1. Is it alive?',
    'Epochs commit and are promoted. **Aborted only**: read what failed last, below.',
    `**Parked**: mend what ${command('status')} names, then ${command('resume')}.`,
    '**Committed, not promoted**: a sink is gone; mend it, the pipeline goes on by itself.',
  ]
  const epochs = show('Sum', 'AttemptsOpened', 'AttemptsAborted', 'EpochsCommitted', 'EpochsPromoted')
  const waiting = show('Maximum', 'StalledSeconds', 'UnpromotedSeconds')
  const graphs = [
    graph('Epochs; runs that died', 9, epochs, show('Sum', 'RunsDied')),
    graph('Seconds without a commit, without a promotion; parked', 9, waiting, show('Maximum', 'Parked')),
  ]
  return [[text(6, 6, ...advice), ...graphs], [failed]]
}

function behindRow(subject: DashboardSubject): cloudwatch.IWidget[] {
  const show = shownOf(subject)
  const advice = [
    '## 2. Is it behind?',
    '**Lag grows, epochs commit**: it is slower than its input. More shards or lanes, larger epochs.',
    '**Watermark lags, records do not**: event times are old, or a partition is idle.',
  ]
  return [
    text(6, 6, ...advice),
    graph('Records that wait', 9, show('Maximum', 'LagRecords')),
    graph('Seconds behind', 9, show('Maximum', 'LagSeconds', 'WatermarkLagSeconds')),
  ]
}

function correctRow(subject: DashboardSubject, command: CommandOf): cloudwatch.IWidget[] {
  const show = shownOf(subject)
  const advice = [
    '## 3. Is it correct?',
    `**Rejected**: read the dead letters; ${command('show last')} counts them. **Late**: raise the out-of-orderness.`,
    `In doubt: ${command('verify')} audits the whole chain.`,
  ]
  return [
    text(6, 6, ...advice),
    graph('Records in, rows out', 9, show('Sum', 'RecordsIn', 'RecordsOut')),
    graph('Left out', 9, show('Sum', 'RecordsRejected', 'RecordsLate', 'RowsUnconfirmed')),
  ]
}

function costRow(subject: DashboardSubject): cloudwatch.IWidget[] {
  const show = shownOf(subject)
  const advice = [
    '## 4. What does it cost?',
    'Fewer, larger epochs cost less: raise the checkpoint interval.',
    '**One phase grows**: operate by state and input, promote by the sink. **Throttles**: raise the quota.',
  ]
  const throttles = [...show('Sum', 'Throttles'), subject.taskThrottles]
  return [
    text(6, 6, ...advice),
    graph('90 of 100 take at most, ms', 6, show('p90', 'EpochDuration', ...phases)),
    graph('Billed', 6, show('Sum', 'Transitions', 'StoreWrites', 'StoreReads', 'ReadUnits', 'WriteUnits')),
    graph('State; throttles', 6, show('Maximum', 'StateBytes'), throttles),
  ]
}

function shownOf(subject: DashboardSubject) {
  return (statistic: Statistic, ...names: readonly MetricName[]) =>
    names.flatMap((name) => metricsOf(subject, name, statistic))
}

const phases: readonly MetricName[] = [
  'PlanDuration',
  'OperateDuration',
  'PrecommitDuration',
  'CommitDuration',
  'PromoteDuration',
  'FinalizeDuration',
]

/** The metric, or one for each value of its split. */
function metricsOf(subject: DashboardSubject, metricName: MetricName, statistic: Statistic): cloudwatch.Metric[] {
  const { namespace, pipeline, period, values } = subject
  const { by } = metrics[metricName]
  const of = (dimensionsMap: Record<string, string>, label: string) =>
    new cloudwatch.Metric({ namespace, metricName, statistic, period, label, dimensionsMap })
  if (by === null) return [of({ pipeline }, metricName)]
  return values[by].map((value) => of({ pipeline, [by]: value }, `${metricName} ${value}`))
}

function graph(title: string, width: number, left: cloudwatch.IMetric[], right: cloudwatch.IMetric[] = []) {
  return new cloudwatch.GraphWidget({
    title,
    width,
    height: 6,
    left,
    right,
    leftYAxis: { min: 0 },
    rightYAxis: { min: 0 },
  })
}

function text(width: number, height: number, ...paragraphs: readonly string[]): cloudwatch.TextWidget {
  return new cloudwatch.TextWidget({ markdown: paragraphs.join('\n\n'), width, height })
}
