import { readFileSync } from 'node:fs'
import * as sns from 'aws-cdk-lib/aws-sns'
import { describe, expect, test } from 'vitest'
import { alarmsOf } from '../../infra/observability-alarms.ts'
import { queriesOf } from '../../infra/observability-queries.ts'
import { describePipeline } from '../../infra/topology.ts'
import { type MetricName, metricCount, metrics } from '../../lib/adapters/cloudwatch/metrics.ts'
import { deploy, entry, mskInVpc, policyOf, shown } from './deployment.ts'

const deployment = deploy()
const alarmProps = Object.values(deployment.all('AWS::CloudWatch::Alarm')).map(
  ({ Properties }) => Properties as Readonly<Record<string, unknown>>,
)
const specs = alarmsOf(describePipeline(entry).settings, 60)

interface Widget {
  readonly type: string
  readonly y: number
  readonly width: number
  readonly properties: {
    readonly title?: string
    readonly markdown?: string
    readonly query?: string
    readonly metrics?: readonly (readonly unknown[])[]
  }
}

const [{ Properties: dashboard }] = Object.values(deployment.all('AWS::CloudWatch::Dashboard'))
const body = shown((dashboard as unknown as { DashboardBody: unknown }).DashboardBody)
const { widgets } = JSON.parse(body) as { widgets: Widget[] }

/** A widget as a person sees it, one line each. */
function outline({ type, width, properties }: Widget): string {
  const { title, markdown, query, metrics: shownMetrics = [] } = properties
  if (markdown !== undefined) return `text ${width}: ${markdown.split('\n')[0]}`
  const names = shownMetrics.map((metric) =>
    metric
      .filter((part) => typeof part === 'string')
      .slice(1)
      .join(' '),
  )
  return `${type} ${width}: ${title}${query === undefined ? '' : ` (query)`}${names.map((name) => `\n  ${name}`).join('')}`
}

describe('the dashboard', () => {
  test('reads from top to bottom: alive, behind, correct, cost', () => {
    const sorted = widgets.toSorted((a, b) => a.y - b.y)
    const p = 'pipeline word-count'
    expect(sorted.map(outline).join('\n').split('\n')).toEqual([
      'text 24: # word-count (test)',
      'alarm 24: Alarms; each says what to do',
      'text 6: ## 1. Is it alive?',
      'metric 9: Epochs; runs that died',
      ...['AttemptsOpened', 'AttemptsAborted', 'EpochsCommitted', 'EpochsPromoted', 'RunsDied'].map(
        (m) => `  ${m} ${p}`,
      ),
      'metric 9: Seconds without a commit, without a promotion; parked',
      ...['StalledSeconds', 'UnpromotedSeconds', 'Parked'].map((m) => `  ${m} ${p}`),
      'log 24: What failed last (query)',
      'text 6: ## 2. Is it behind?',
      'metric 9: Records that wait',
      `  LagRecords ${p} topic lines`,
      'metric 9: Seconds behind',
      `  LagSeconds ${p} topic lines`,
      `  WatermarkLagSeconds ${p}`,
      'text 6: ## 3. Is it correct?',
      'metric 9: Records in, rows out',
      `  RecordsIn ${p}`,
      `  RecordsOut ${p} sink word-counts`,
      'metric 9: Left out',
      ...['RecordsRejected', 'RecordsLate', 'RowsUnconfirmed'].map((m) => `  ${m} ${p}`),
      'text 6: ## 4. What does it cost?',
      'metric 6: 90 of 100 take at most, ms',
      ...['Epoch', 'Plan', 'Operate', 'Precommit', 'Commit', 'Promote', 'Finalize'].map((m) => `  ${m}Duration ${p}`),
      'metric 6: Billed',
      ...['Transitions', 'StoreWrites', 'StoreReads', 'ReadUnits', 'WriteUnits'].map((m) => `  ${m} ${p}`),
      'metric 6: State; throttles',
      `  StateBytes operator count ${p}`,
      `  Throttles ${p}`,
      expect.stringMatching(/^ {2}Throttles FunctionName <WordCountFunctionsOperate\w+>$/),
    ])
  })

  test('says what to type, with the name of this stack', () => {
    const words = widgets.map(({ properties }) => properties.markdown ?? '').join('\n')
    for (const command of ['status', 'resume', 'show last', 'verify'])
      expect(words).toContain(`\`pawl ${command} word-count --stack Words\``)
  })

  test('shows every metric that is emitted, and alarms watch no other', () => {
    const onIt = widgets.flatMap(({ properties }) => properties.metrics ?? [])
    const own = onIt.filter(([namespace]) => namespace === 'Pawl/test').map(([, name]) => String(name))
    expect([...new Set(own)].sort()).toEqual(Object.keys(metrics).sort())
    const watched = alarmProps.filter(({ Namespace }) => Namespace === 'Pawl/test').map(({ MetricName }) => MetricName)
    expect(watched.every((name) => name !== undefined && metrics[name as MetricName]?.by === null)).toBe(true)
    const theirs = alarmProps.filter(({ Namespace }) => Namespace !== 'Pawl/test')
    expect(theirs.map(({ Namespace, MetricName }) => `${Namespace} ${MetricName}`).sort()).toEqual([
      'AWS/Lambda Errors',
      'AWS/Lambda Throttles',
    ])
  })
})

describe('alarms', () => {
  test('look at one metric each, without an expression', () => {
    expect(alarmProps).toHaveLength(Object.keys(specs).length)
    for (const alarm of alarmProps) expect([typeof alarm.MetricName, alarm.Metrics]).toEqual(['string', undefined])
    expect(Object.keys(deployment.all('AWS::CloudWatch::CompositeAlarm'))).toEqual([])
  })

  test('say what they mean, what to do and what to type, within what CloudWatch takes', () => {
    for (const { AlarmDescription } of alarmProps) {
      expect(String(AlarmDescription)).toMatch(/^word-count: .+\. Do: .+\. Type: pawl .+ word-count --stack Words/)
      expect(String(AlarmDescription).length).toBeLessThanOrEqual(1024)
    }
  })

  test('silence of the tick is bad news for one of them alone', () => {
    const breaching = alarmProps.filter(({ TreatMissingData }) => TreatMissingData === 'breaching')
    expect(breaching).toMatchObject([
      { MetricName: 'StalledSeconds', Period: 60, EvaluationPeriods: 3, Threshold: 62, Statistic: 'Minimum' },
    ])
  })

  test('have periods that hold a tick, however rare it is', () => {
    const { settings } = describePipeline(entry)
    expect(alarmsOf(settings, 3600).stalled.periodSeconds).toBe(3600)
    expect(alarmsOf(settings, 90).parked.periodSeconds).toBe(120)
  })

  test('call nobody by default, and the topic when there is one', () => {
    expect(alarmProps.every(({ AlarmActions }) => AlarmActions === undefined)).toBe(true)
    const arn = 'arn:aws:sns:eu-central-1:111122223333:night'
    const called = deploy((stack) => ({ alarmTopic: sns.Topic.fromTopicArn(stack, 'Night', arn) }))
    for (const { Properties } of Object.values(called.all('AWS::CloudWatch::Alarm')))
      expect(Properties).toMatchObject({ AlarmActions: [arn], OKActions: [arn] })
  })

  test('stand in the table of docs/operations.md, word for word', () => {
    const page = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8')
    const table = /<!-- alarms -->\n([\s\S]*?)\n<!-- end of alarms -->/.exec(page)?.[1]
    const rows = Object.entries(specs).map(([name, { meaning, action, commands }]) => {
      const typed = commands.map((command) => `\`pawl ${command} --stack NAME\``).join(', ')
      return `| \`${name}\` | ${meaning} | ${action} | ${typed} |`
    })
    expect(page).toContain(`A pipeline has ${metricCount({ topic: 0, sink: 0, operator: 0 })} metrics`)
    expect(table?.split('\n')).toEqual(['| alarm | means | do | type |', '| --- | --- | --- | --- |', ...rows])
  })
})

describe('saved queries', () => {
  test('are part of the stack, over the logs of all functions', () => {
    const saved = Object.values(deployment.all('AWS::Logs::QueryDefinition')).map(
      ({ Properties }) => Properties as unknown as { Name: string; QueryString: string; LogGroupNames: unknown[] },
    )
    expect(saved.map(({ Name, QueryString }) => [Name, QueryString])).toEqual(
      queriesOf('word-count').map(({ name, text }) => [`pawl/test/word-count/${name}`, text]),
    )
    const groups = Object.keys(deployment.all('AWS::Logs::LogGroup')).length
    for (const { LogGroupNames } of saved) expect(LogGroupNames).toHaveLength(groups)
  })
})

describe('X-Ray', () => {
  test('is off unless it is asked for, and never follows a run', () => {
    const traced = deploy((stack) => ({ ...mskInVpc(stack), tracing: true }))
    const modes = (from: typeof deployment) =>
      Object.entries(from.all('AWS::Lambda::Function'))
        .filter(([id]) => id.startsWith('WordCount'))
        .map(([, { Properties }]) => (Properties as { TracingConfig?: { Mode: string } }).TracingConfig?.Mode)
    expect(new Set(modes(deployment))).toEqual(new Set([undefined]))
    expect(new Set(modes(traced))).toEqual(new Set(['Active']))
    expect(policyOf(traced, 'Plan')).toContain('Trace: xray:PutTraceSegments xray:PutTelemetryRecords on *')
    for (const from of [deployment, traced])
      for (const { Properties } of Object.values(from.all('AWS::StepFunctions::StateMachine')))
        expect(Properties).not.toHaveProperty('TracingConfiguration')
  })
})
