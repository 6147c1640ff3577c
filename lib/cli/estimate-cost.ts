/**
 * `pawl cost`: what a pipeline would cost on AWS, before it is deployed.
 *
 * Requests are counted, on a pipeline of the same shape that runs in memory; durations are assumed and marked as such;
 * prices are a table with its date. Next to it stands the least that Managed Flink costs.
 */
import { metricCount } from '../adapters/cloudwatch/metrics.ts'
import { emfTelemetry } from '../adapters/cloudwatch/telemetry.ts'
import { awsPrices, dollarsFor, managedFlinkMonth, monthHours, pricesAsOf } from '../model/aws-prices.ts'
import { PawlError } from '../model/errors.ts'
import type { Compiled } from '../stream/compiled.ts'
import type { countEpochCalls, EpochCalls, EpochShape } from '../testing/epoch-calls.ts'
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
    const calls = await count(question.shape, telemetry)
    const load = { ...question.load, logBytes: logBytesOf(lines) }
    const answer = answerOf({ ...question, load }, calls)
    const takesMs = Math.ceil(answer.epochSeconds * 1000)
    if (takesMs <= 1010 / load.epochsPerSecond || takesMs <= intervalMs || stretches === stretchesMax)
      return { answer, calls }
    intervalMs = takesMs
  }
}

/** CloudWatch bills a line with 26 bytes more than it has. */
function logBytesOf(lines: readonly string[]): number {
  const commits = lines.filter(
    (line) => line.includes('"event":"committed"') && line.includes('EpochsCommitted'),
  ).length
  return lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 26, 0) / Math.max(1, commits)
}

interface Question {
  readonly pipeline: string
  readonly shape: EpochShape
  readonly load: Omit<Load, 'logBytes'>
  readonly recordBytes: number
  readonly endpointZones: number
}

/** Shorter intervals than an epoch takes are never waited for. */
const waitMsMin = 500
/** An Express execution hands over before its five minutes are over. */
const expressSeconds = 240

/** Bytes of a batch that a mapping hands over, in base64, and records of one. */
const eventBytesMax = 6 * 1024 * 1024
const eventRecordsMax = 10_000

function questionOf({ topology, settings, sinks, stateful }: Compiled, options: Options, intervalMs: number): Question {
  const recordsPerSecond = options.number('rate', 1)
  if (recordsPerSecond === undefined)
    throw new PawlError('COMMAND_INVALID', 'pawl cost needs --rate N, records a second')
  const recordBytes = options.number('record-bytes', 1) ?? 100
  const shards = options.number('shards', 1) ?? settings.shards
  const taskRecordsPerSecond = options.number('task-rate', 1) ?? 200_000
  const wanted = (recordsPerSecond * Math.max(intervalMs, 1)) / 1000
  const records = Math.max(1, Math.min(wanted, settings.epoch.spanMax))
  const taskMs = (records / taskRecordsPerSecond) * 1000
  const cheap = topology.stages > 1 && taskMs <= settings.epoch.fuseMs
  const split = shards > 1 && records > settings.epoch.fuseSpanMax && !cheap
  const workflow = choiceOf(options, 'workflow', ['standard', 'express'])
  const expressEpochs = Math.max(1, Math.floor((expressSeconds * recordsPerSecond) / records))
  const sources = topology.nodes.filter((node) => node.kind === 'source')
  const busy = Object.entries(sinks).filter(([id]) => id !== topology.deadLetterSink)
  return {
    pipeline: topology.pipeline,
    shape: {
      sources: sources.length,
      partitions: options.number('partitions', 1) ?? 4,
      stateful: stateful.length,
      lanes: busy.map(([, { lanes }]) => lanes),
      shards,
      split,
      intervalMs,
      backlog: wanted > settings.epoch.spanMax || intervalMs < waitMsMin,
    },
    load: {
      recordsPerSecond,
      epochsPerSecond: recordsPerSecond / records,
      eventsPerSecond: eventsPerSecondOf(options, recordsPerSecond * recordBytes, recordsPerSecond, sources.length),
      taskRecordsPerSecond,
      workflow,
      runEpochs: workflow === 'express' ? Math.min(settings.runEpochsMax, expressEpochs) : settings.runEpochsMax,
    },
    recordBytes,
    endpointZones: (options.number('endpoints', 0) ?? 0) * (options.number('zones', 1) ?? 2),
  }
}

/** A mapping invokes when its window is over, or as soon as a batch is full. */
function eventsPerSecondOf(options: Options, bytesPerSecond: number, records: number, mappings: number): number {
  if (choiceOf(options, 'trigger', ['msk', 'schedule']) === 'schedule') return 0
  const windowSeconds = Math.max(options.number('batch-window', 0) ?? 1, 0.5)
  const full = Math.max(records / eventRecordsMax, (bytesPerSecond * 4) / 3 / eventBytesMax)
  return Math.max(full, Math.min(records, mappings / windowSeconds))
}

function choiceOf<T extends string>(options: Options, name: string, choices: readonly [T, ...T[]]): T {
  const given = options.text(name) ?? choices[0]
  const found = choices.find((choice) => choice === given)
  if (found !== undefined) return found
  throw new PawlError('COMMAND_INVALID', `--${name} is ${choices.join(' or ')}, not ${JSON.stringify(given)}`)
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
