/**
 * What `pawl cost` is asked: the shape of the pipeline, and how it is fed and deployed.
 *
 * Limits of mappings and of Express executions stand here; what they cost does not.
 */
import { PawlError } from '../model/errors.ts'
import type { Compiled } from '../stream/compiled.ts'
import type { EpochShape } from '../testing/epoch-calls.ts'
import type { Options } from './parse-arguments.ts'
import type { Load } from './price-epochs.ts'

/** What a pipeline is to be reckoned for. */
export interface Question {
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

/** From options and the compiled pipeline, with the interval between two epochs. Throws `COMMAND_INVALID`. */
export function questionOf(
  { topology, settings, sinks, stateful }: Compiled,
  options: Options,
  intervalMs: number,
): Question {
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
  const eventsPerSecond = eventsPerSecondOf(options, recordsPerSecond * recordBytes, recordsPerSecond, sources.length)
  const intake = choiceOf(options, 'intake', ['brokers', 'event'])
  if (intake === 'event' && eventsPerSecond === 0)
    throw new PawlError('COMMAND_INVALID', '--intake event needs the mapping: leave --trigger schedule out')
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
      blind: workflow === 'express',
      ...(intake === 'event'
        ? { events: Math.max(1, Math.round((eventsPerSecond * records) / recordsPerSecond)) }
        : {}),
    },
    load: {
      recordsPerSecond,
      epochsPerSecond: recordsPerSecond / records,
      eventsPerSecond,
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
