/**
 * The alarms, as a table: few, each one for a person, each with what it means, what to do and what to type.
 *
 * One cause, one alarm: what stalls because it is parked or because a sink is gone is told by those alarms alone.
 * All of them look at a single metric, so that none needs an expression: code computes what is to be compared, and
 * the scheduled tick tells it, whether or not any run is alive. `docs/operations.md` shows the same table.
 */
import type { MetricName } from '../lib/adapters/cloudwatch/metrics.ts'
import type { Settings } from '../lib/model/settings.ts'

/** Names of the alarms. */
export type AlarmName =
  | 'stalled'
  | 'parked'
  | 'promotionStuck'
  | 'recordsRejected'
  | 'triggerFails'
  | 'runsDied'
  | 'callsThrottled'
  | 'functionsThrottled'

/** Whose metric it is: the pipeline's own, or that of a function. */
export type AlarmMetric =
  | { readonly of: 'pipeline'; readonly name: MetricName }
  | { readonly of: 'trigger' | 'operate'; readonly name: 'Errors' | 'Throttles' }

/** One alarm. */
export interface AlarmSpec extends AlarmWords {
  readonly metric: AlarmMetric
  readonly statistic: 'Sum' | 'Minimum' | 'Maximum'
  readonly periodSeconds: number
  /** So many periods in a row. */
  readonly periods: number
  /** At least. */
  readonly threshold: number
  readonly missing: 'breaching' | 'notBreaching'
}

/** Checkpoint intervals without a commit, on top of the longest that one may take, after which a pipeline stalls. */
export const stalledIntervals = 10
/** A sink that is restarted is no reason to wake anybody. */
export const promotionStuckSeconds = 300
/** Some throttles in five minutes are repeated without harm. */
export const throttlesMin = 10

const ticks = 3

interface AlarmWords {
  readonly meaning: string
  readonly action: string
  /** Commands without `pawl` and without the name of the deployment; the first is to be typed first. */
  readonly commands: readonly string[]
}

const words: Readonly<Record<AlarmName, AlarmWords>> = {
  stalled: {
    meaning: 'records wait and nothing is committed, or nobody can tell: the tick is silent or cannot read the topics',
    action: 'read what failed last; if nothing failed, start a run; then look at brokers and network',
    commands: ['status', 'run-now', 'doctor'],
  },
  parked: {
    meaning: 'the pipeline has stopped and waits for a person; nothing is lost by waiting',
    action: 'read the code, mend what it names or deploy a new build, then lift the park',
    commands: ['status', 'resume'],
  },
  promotionStuck: {
    meaning: 'an epoch is committed and a sink does not take it; its output waits in the bucket and is safe',
    action: 'mend the sink that the status names; the pipeline goes on by itself, at once after a resume',
    commands: ['status', 'resume'],
  },
  recordsRejected: {
    meaning: 'records were left out of the result: they lie in the dead letters, or were skipped as onError says',
    action: 'read the dead letters; each names topic, partition, offset, operator and error',
    commands: ['show last'],
  },
  triggerFails: {
    meaning: 'the function that wakes the pipeline fails; until it works only the lease of a run keeps it going',
    action: 'read its error in its log group and mend rights, network or table; the next tick tries again',
    commands: ['doctor', 'run-now'],
  },
  runsDied: {
    meaning: 'a run was ended from outside, or died instead of leaving; the next one takes over, which costs only time',
    action: 'if it happens again, read the history of the execution and the query "what failed"',
    commands: ['status', 'epochs'],
  },
  callsThrottled: {
    meaning: 'DynamoDB, S3 or Step Functions answer "not now"; calls are repeated, epochs take longer',
    action: 'find the step in the query "what it used"; lengthen the checkpoint interval or raise the quota',
    commands: ['doctor'],
  },
  functionsThrottled: {
    meaning: 'the account has no room for tasks: its concurrency is used up',
    action: 'raise the quota of concurrent executions, reserve some for this pipeline, or use fewer shards',
    commands: ['doctor'],
  },
}

type AlarmRule = Omit<AlarmSpec, keyof AlarmWords>

/** All alarms of a deployment with these settings and so many seconds between two ticks. */
export function alarmsOf(settings: Settings, tickSeconds: number): Readonly<Record<AlarmName, AlarmSpec>> {
  const rules = rulesOf(settings, tickSeconds)
  const specs = (Object.keys(rules) as AlarmName[]).map((name) => [name, { ...rules[name], ...words[name] }] as const)
  return Object.fromEntries(specs) as Record<AlarmName, AlarmSpec>
}

function rulesOf({ checkpoint }: Settings, tickSeconds: number): Readonly<Record<AlarmName, AlarmRule>> {
  // Periods are whole minutes, and each must hold a tick.
  const periodSeconds = Math.ceil(Math.max(60, tickSeconds) / 60) * 60
  const atTicks = (statistic: 'Minimum' | 'Maximum', periods: number) => ({ statistic, periodSeconds, periods })
  const fine = { missing: 'notBreaching' } as const
  const fiveMinutes = { ...fine, periodSeconds: 300, periods: 1, statistic: 'Sum' } as const
  const ofPipeline = (name: MetricName): AlarmMetric => ({ of: 'pipeline', name })
  const stalledSeconds = Math.ceil((checkpoint.timeoutMs + stalledIntervals * checkpoint.intervalMs) / 1000)
  return {
    stalled: {
      metric: ofPipeline('StalledSeconds'),
      ...atTicks('Minimum', ticks),
      threshold: stalledSeconds,
      // A tick that is silent, or cannot read the logs, is the same trouble.
      missing: 'breaching',
    },
    parked: { metric: ofPipeline('Parked'), ...atTicks('Maximum', 1), ...fine, threshold: 1 },
    promotionStuck: {
      metric: ofPipeline('UnpromotedSeconds'),
      ...atTicks('Minimum', ticks),
      ...fine,
      threshold: promotionStuckSeconds,
    },
    recordsRejected: { metric: ofPipeline('RecordsRejected'), ...fiveMinutes, threshold: 1 },
    triggerFails: { metric: { of: 'trigger', name: 'Errors' }, ...fiveMinutes, threshold: 1 },
    runsDied: { metric: ofPipeline('RunsDied'), ...fiveMinutes, threshold: 1 },
    callsThrottled: { metric: ofPipeline('Throttles'), ...fiveMinutes, threshold: throttlesMin },
    functionsThrottled: { metric: { of: 'operate', name: 'Throttles' }, ...fiveMinutes, threshold: 1 },
  }
}

/** What the alarm says to whoever it wakes. */
export function alarmText(spec: AlarmSpec, pipeline: string, stack: string): string {
  const commands = spec.commands.map((command) => `pawl ${commandOf(command, pipeline)} --stack ${stack}`)
  return `${pipeline}: ${spec.meaning}. Do: ${spec.action}. Type: ${commands.join(' ; ')}`
}

/** The id of the pipeline comes last among the words of a command. */
function commandOf(command: string, pipeline: string): string {
  return `${command} ${pipeline}`
}
