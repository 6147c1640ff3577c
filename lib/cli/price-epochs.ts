/**
 * From what an epoch asks for to dollars: how often, for how long, at which price.
 *
 * Counts come from `countEpochCalls`. Durations are assumed, since only an account of AWS could tell them: a call of
 * each kind takes what is published of it, and a task takes so many records a second. All assumptions stand here.
 */
import { awsPrices, dollarsFor, monthHours, type Price } from '../model/aws-prices.ts'
import type { Asked, Calls } from '../testing/counted.ts'
import type { EpochCalls } from '../testing/epoch-calls.ts'

/** Milliseconds that a call takes, warm: medians published for DynamoDB, "tens of milliseconds" for S3. */
export const assumedMs: Readonly<Partial<Record<Asked, number>>> = Object.freeze({
  GetItem: 8,
  Query: 8,
  PutItem: 8,
  UpdateItem: 8,
  TransactWriteItems: 25,
  GetObject: 30,
  PutObject: 30,
  ListObjects: 30,
  DeleteObjects: 30,
})

/** Milliseconds of an invocation beside its calls, and of the transaction of a lane in its sink. */
const invocationMs = 5
const sinkMs = 15

/** Memory of the functions, as the construct sets it. */
const memoryMb: Readonly<Record<string, number>> = { operate: 1769, promote: 1024 }
const otherMemoryMb = 512

/** How a pipeline is deployed and fed. */
export interface Load {
  readonly recordsPerSecond: number
  readonly epochsPerSecond: number
  /** Events of mappings a second; 0 without a mapping. */
  readonly eventsPerSecond: number
  /** What one task does. */
  readonly taskRecordsPerSecond: number
  readonly workflow: 'standard' | 'express'
  readonly runEpochs: number
  /** Bytes of log lines an epoch. */
  readonly logBytes: number
}

/** One line of the bill that grows with the load. */
export interface BillLine {
  readonly what: string
  /** How much of it an epoch takes, with its share of everything else. */
  readonly perEpoch: number
  readonly price: Price
}

/** Everything that an average epoch stands for: itself, its share of a run, of events and of ticks. */
export function shareOf(calls: EpochCalls, load: Load): Calls {
  const eventsPerEpoch = load.eventsPerSecond / load.epochsPerSecond
  const ticksPerEpoch = 1 / 60 / load.epochsPerSecond
  const parts: readonly (readonly [Calls, number])[] = [
    [calls.epoch, 1],
    [calls.run, 1 / load.runEpochs],
    [calls.event, eventsPerEpoch],
    [calls.tick, ticksPerEpoch],
  ]
  const sum: Record<string, Partial<Record<Asked, number>>> = {}
  for (const [part, weight] of parts) {
    for (const [who, asked] of Object.entries(part)) {
      sum[who] ??= {}
      const own = sum[who]
      for (const [one, count] of Object.entries(asked) as [Asked, number][]) own[one] = (own[one] ?? 0) + count * weight
    }
  }
  return sum
}

/** How long an epoch takes from its plan to its last promotion, when tasks and lanes run side by side. */
export function epochSeconds(calls: Calls, load: Load, tasks: number, lanes: number): number {
  const ms = ['plan', 'operate', 'precommit', 'commit', 'promote'].map((step) => {
    const atOnce = step === 'operate' ? tasks : step === 'promote' ? lanes : 1
    return stepMs(step, calls[step] ?? {}, load) / Math.max(1, atOnce)
  })
  return ms.reduce((sum, one) => sum + one, 0) / 1000
}

function stepMs(step: string, asked: Partial<Record<Asked, number>>, load: Load): number {
  const { invocation = 0 } = asked
  const called = Object.entries(assumedMs).reduce((sum, [one, ms]) => sum + ms * (asked[one as Asked] ?? 0), 0)
  const recordsMs = (load.recordsPerSecond / load.epochsPerSecond / load.taskRecordsPerSecond) * 1000
  if (step === 'operate') return called + invocation * invocationMs + recordsMs
  // Sending what was encoded before takes a quarter of the time.
  if (step === 'promote') return called + invocation * (invocationMs + sinkMs) + recordsMs / 4
  return called + invocation * invocationMs
}

/** What grows with the load, by what it is paid for. `calls` are those of an average epoch. */
export function billOf(calls: Calls, load: Load): BillLine[] {
  const steps = Object.entries(calls).filter(([who]) => who !== 'machine')
  const sum = (...asked: Asked[]) =>
    Object.values(calls).reduce((all, own) => all + asked.reduce((one, name) => one + (own[name] ?? 0), 0), 0)
  const gbSeconds = steps.reduce((all, [step, asked]) => {
    return all + (stepMs(step, asked, load) / 1000) * ((memoryMb[step] ?? otherMemoryMb) / 1024)
  }, 0)
  return [
    ...workflowLines(calls, load),
    { what: 'Lambda invocations', perEpoch: sum('invocation'), price: awsPrices.invocation },
    { what: 'Lambda GB-seconds (assumed)', perEpoch: gbSeconds, price: awsPrices.gbSecond },
    { what: 'DynamoDB write units', perEpoch: sum('writeUnit'), price: awsPrices.writeUnit },
    { what: 'DynamoDB read units', perEpoch: sum('readUnit'), price: awsPrices.readUnit },
    { what: 'S3 PUT and LIST requests', perEpoch: sum('PutObject', 'ListObjects'), price: awsPrices.putRequest },
    { what: 'S3 GET requests', perEpoch: sum('GetObject'), price: awsPrices.getRequest },
    { what: 'CloudWatch GB of logs', perEpoch: load.logBytes / 1e9, price: awsPrices.logGb },
  ]
}

/** Memory of an Express execution is billed in pieces of 64 MB, for as long as it runs. */
const expressGb = 64 / 1024

function workflowLines(calls: Calls, load: Load): BillLine[] {
  const { transition = 0, execution = 0 } = calls.machine ?? {}
  if (load.workflow === 'standard')
    return [{ what: 'Step Functions transitions', perEpoch: transition, price: awsPrices.transition }]
  const seconds = 1 / load.epochsPerSecond
  return [
    { what: 'Step Functions Express executions', perEpoch: execution, price: awsPrices.expressRequest },
    { what: 'Step Functions Express GB-seconds', perEpoch: seconds * expressGb, price: awsPrices.expressGbSecond },
  ]
}

/** What is paid each month whether or not anything comes in. */
export interface FixedParts {
  readonly metrics: number
  readonly alarms: number
  readonly dashboards: number
  /** Interface endpoints times zones. */
  readonly endpointZones: number
}

/** Fixed lines: what, how many, dollars a month. */
export function fixedLines({ metrics, alarms, dashboards, endpointZones }: FixedParts) {
  return [
    { what: 'custom metrics', amount: metrics, month: dollarsFor(awsPrices.metricMonth, metrics) },
    { what: 'alarms', amount: alarms, month: dollarsFor(awsPrices.alarmMonth, alarms) },
    { what: 'dashboards', amount: dashboards, month: dollarsFor(awsPrices.dashboardMonth, dashboards) },
    {
      what: 'interface endpoints × zones',
      amount: endpointZones,
      month: dollarsFor(awsPrices.endpointHour, endpointZones * monthHours),
    },
    { what: 'mapping pollers (on demand)', amount: 0, month: 0 },
    { what: 'rules of the schedule', amount: 3, month: 0 },
  ]
}
