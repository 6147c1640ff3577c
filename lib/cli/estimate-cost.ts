/**
 * `pawl cost`: what a pipeline would cost on AWS, before it is deployed.
 *
 * Requests are counted, on a pipeline of the same shape that runs in memory; durations are assumed and marked as such;
 * prices are a table with its date. Next to it stands the least that Managed Flink costs.
 */
import { metricCount } from '../adapters/cloudwatch/metrics.ts'
import { emfTelemetry } from '../adapters/cloudwatch/telemetry.ts'
import { awsPrices, dollarsFor, managedFlinkMonth, monthHours, pricesAsOf } from '../model/aws-prices.ts'
import type { Compiled } from '../stream/compiled.ts'
import type { CountedIntake, countEpochCalls, EpochCalls } from '../testing/epoch-calls.ts'
import { type Question, questionOf } from './gather-load.ts'
import type { Call, Command, Options } from './parse-arguments.ts'
import { assumedMs, billOf, epochSeconds, type FixedParts, fixedLines, type Load, shareOf } from './price-epochs.ts'
import { pairs, table } from './print-values.ts'
import { exitCodes } from './report-error.ts'
import type { Output } from './write-output.ts'

/** `pawl cost FILE --rate N --record-bytes B`. */
export const costCommand: Command = {
  name: 'cost',
  summary: 'what a pipeline would cost on AWS',
  positionals: ['FILE'],
  options: {
    rate: { value: 'N', help: 'records a second' },
    'record-bytes': { value: 'B', help: 'bytes of an average record; 100 by default' },
    interval: { value: 'MS', help: "checkpoint interval; the file's by default" },
    partitions: { value: 'N', help: 'partitions of each source; 4 by default' },
    shards: { value: 'N', help: "tasks a keyed stage; the file's by default" },
    workflow: { value: 'TYPE', help: 'standard (the default) or express' },
    intake: { value: 'FROM', help: 'brokers (the default) or event' },
    trigger: { value: 'WHAT', help: 'msk (a mapping, the default) or schedule' },
    'batch-window': { value: 'S', help: 'how long a mapping gathers; 1 s by default' },
    endpoints: {
      value: 'N',
      help: 'interface endpoints that the stack makes; 0 by default, 3 with vpcEndpoints: create',
    },
    zones: { value: 'N', help: 'availability zones of each endpoint; 2 by default' },
    'task-rate': { value: 'N', help: 'records a second that one task does; 200000 by default' },
    export: { value: 'NAME', help: 'export of the file; default by default' },
  },
  notes: ['requests are counted, durations assumed; free tiers, MSK, storage and traffic between zones are not in it'],
  examples: [
    'pawl cost pipeline.ts --rate 1000 --record-bytes 200',
    'pawl cost pipeline.ts --rate 50000 --interval 10000 --partitions 32 --workflow express',
  ],
  run: cost,
}

async function cost({ output, options, positionals: [file] }: Call): Promise<number> {
  const [{ loadPipeline }, { countEpochCalls }] = await Promise.all([
    import('../places/load.ts'),
    import('../testing/epoch-calls.ts'),
  ])
  const compiled = await loadPipeline(file, options.text('export'))
  const { answer, calls } = await settled(compiled, options, countEpochCalls)
  output.record({ ...answer, calls, assumedMs, prices: awsPrices })
  print(output, answer)
  return exitCodes.success
}

/** How often the interval is stretched before the load is called too much. */
const stretchesMax = 6

/** An epoch cannot come before the one before it is over: then each takes in more, and takes longer for it. */
async function settled(compiled: Compiled, options: Options, count: typeof countEpochCalls) {
  let intervalMs = options.number('interval', 0) ?? compiled.settings.checkpoint.intervalMs
  for (let stretches = 0; ; stretches++) {
    const question = questionOf(compiled, options, intervalMs)
    const lines: string[] = []
    const telemetry = emfTelemetry({ write: (line) => lines.push(line), namespace: 'Pawl/cost', nowMs: () => 0 })
    const intake = question.shape.events === undefined ? {} : { intake: await intakeOf() }
    const calls = await count(question.shape, { telemetry, ...intake })
    const load = { ...question.load, logBytes: logBytesOf(lines) }
    const answer = answerOf({ ...question, load }, calls)
    const takesMs = Math.ceil(answer.epochSeconds * 1000)
    if (takesMs <= 1010 / load.epochsPerSecond || takesMs <= intervalMs || stretches === stretchesMax)
      return { answer, calls }
    intervalMs = takesMs
  }
}

/** The intake of events as a deployment has it; the brokers are those of the count. */
async function intakeOf(): Promise<CountedIntake> {
  const [{ openIntakeLog }, { layDown, recover }] = await Promise.all([
    import('../adapters/segments/intake-log.ts'),
    import('../places/intake.ts'),
  ])
  return { open: openIntakeLog, lay: layDown, recover: (job, open) => recover(job, { open, ends: new Map() }) }
}

/** CloudWatch bills a line with 26 bytes more than it has. */
function logBytesOf(lines: readonly string[]): number {
  const commits = lines.filter(
    (line) => line.includes('"event":"committed"') && line.includes('EpochsCommitted'),
  ).length
  return lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 26, 0) / Math.max(1, commits)
}

type Answer = ReturnType<typeof answerOf>

/** Alarms and dashboards of the construct; a test holds them against the template. */
export const fixedOfDeployment = Object.freeze({ alarms: 8, dashboards: 1 })

function answerOf(
  { pipeline, shape, load, recordBytes, endpointZones }: Question & { readonly load: Load },
  calls: EpochCalls,
) {
  const share = shareOf(calls, load)
  const epochsPerMonth = load.epochsPerSecond * 3600 * monthHours
  const epochsPerMillion = (1e6 * load.epochsPerSecond) / load.recordsPerSecond
  const variable = billOf(share, load).map(({ what, perEpoch, price }) => ({
    what,
    perEpoch,
    perMillion: perEpoch * epochsPerMillion,
    dollarsPerMillion: dollarsFor(price, perEpoch * epochsPerMillion),
    dollarsPerMonth: dollarsFor(price, perEpoch * epochsPerMonth),
  }))
  const splits = { topic: shape.sources, sink: shape.lanes.length, operator: shape.stateful }
  const parts: FixedParts = { metrics: metricCount(splits), ...fixedOfDeployment, endpointZones }
  const fixed = fixedLines(parts)
  const sumOf = (all: readonly number[]) => all.reduce((sum, one) => sum + one, 0)
  const tasks = shape.split ? shape.shards : 1
  return {
    pipeline,
    shape,
    load,
    recordBytes,
    recordsPerEpoch: load.recordsPerSecond / load.epochsPerSecond,
    epochSeconds: epochSeconds(calls.epoch, load, tasks, sumOf(shape.lanes)),
    variable,
    fixed,
    dollarsPerMillion: sumOf(variable.map((line) => line.dollarsPerMillion)),
    variablePerMonth: sumOf(variable.map((line) => line.dollarsPerMonth)),
    fixedPerMonth: sumOf(fixed.map((line) => line.month)),
    managedFlinkPerMonth: managedFlinkMonth(),
    pricesAsOf,
  }
}

function print(output: Output, answer: Answer): void {
  const { shape, load, variable, fixed } = answer
  const lanes = shape.lanes.reduce((sum, one) => sum + one, 0)
  const slow = answer.epochSeconds > 1.02 / load.epochsPerSecond
  output.print([
    ...pairs([
      ['pipeline', answer.pipeline],
      [
        'shape',
        `${shape.sources} source(s) of ${shape.partitions} partitions, ${shape.stateful} operator(s) with state, ` +
          `${lanes} lane(s), ${shape.split ? `${shape.shards} shards` : 'one task'}`,
      ],
      ['load', `${load.recordsPerSecond} records/s of ${answer.recordBytes} bytes`],
      [
        'epochs',
        `one in ${figure(1 / load.epochsPerSecond)} s with ${figure(answer.recordsPerEpoch)} records, ` +
          `each takes about ${figure(answer.epochSeconds)} s${slow ? ': TOO SLOW for this load' : ''}`,
      ],
    ]),
    '',
    ...table(
      ['what grows', '>an epoch', '>a million records', '>$ a million', '>$ a month'],
      variable.map((line) => [
        line.what,
        figure(line.perEpoch),
        figure(line.perMillion),
        dollars(line.dollarsPerMillion),
        dollars(line.dollarsPerMonth),
      ]),
    ),
    '',
    ...table(
      ['what is fixed', '>how many', '>$ a month'],
      fixed.map((line) => [line.what, `${line.amount}`, dollars(line.month)]),
    ),
    '',
    ...pairs([
      ['a million records', `$${dollars(answer.dollarsPerMillion)}`],
      [
        'a month',
        `$${dollars(answer.variablePerMonth + answer.fixedPerMonth)} ` +
          `($${dollars(answer.variablePerMonth)} with the load, $${dollars(answer.fixedPerMonth)} fixed)`,
      ],
      ['Managed Flink', `$${dollars(answer.managedFlinkPerMonth)} a month at least (2 KPU, 50 GB)`],
      [
        'prices',
        `${answer.pricesAsOf.region}, list prices of ${answer.pricesAsOf.date}, no free tier; --json names their pages`,
      ],
    ]),
  ])
}

/** Four significant digits, whole above a thousand. */
function figure(value: number): string {
  return value >= 1000 ? Math.round(value).toString() : `${Number(value.toPrecision(4))}`
}

function dollars(value: number): string {
  return value >= 0.01 || value === 0 ? value.toFixed(2) : value.toPrecision(2)
}
