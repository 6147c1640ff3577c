/**
 * `pawl run FILE`: keeps a pipeline going in this process.
 *
 * Sources are asked once before the start, so that a wrong address or a missing topic is an error at once; later
 * outages are waited for. The first Ctrl-C ends after the epoch under way, the second abandons it: the next run
 * takes over, and nothing is lost or repeated either way.
 */
import type { KafkaOptions } from '../adapters/kafka/cluster.ts'
import { errorRegistry, PawlError } from '../model/errors.ts'
import type { EmbeddedPlace } from '../places/embedded.ts'
import type { RunOutcome } from '../places/run.ts'
import type { Invoker } from '../ports/system.ts'
import type { Compiled } from '../stream/compiled.ts'
import { clusterNotes, clusterOf, clusterOptions, defaultStage, kafkaOptionsOf } from './load-cluster.ts'
import { directoryOf } from './open-directory.ts'
import { type Call, type Command, directoryOption, misused } from './parse-arguments.ts'
import { exitCodes } from './report-error.ts'
import { type Reporter, reportRun } from './report-run.ts'
import { type Interrupts, watchInterrupts } from './watch-interrupts.ts'

/** `pawl run FILE`. */
export const runCommand: Command = {
  name: 'run',
  summary: 'run a pipeline file, embedded or against Kafka',
  positionals: ['FILE'],
  options: {
    ...directoryOption,
    ...clusterOptions,
    until: {
      value: 'caught-up',
      help: 'end when all input is visible; by default the run goes on until it is stopped',
    },
    resume: { help: 'lift a park that waits for a person' },
    export: { value: 'NAME', help: 'export of the file; default by default' },
  },
  notes: [
    ...clusterNotes,
    'Ctrl-C ends after the epoch under way, Ctrl-C again abandons it; nothing is lost either way',
  ],
  examples: [
    'pawl run totals.ts',
    'pawl run totals.ts --until caught-up --json',
    'pawl run totals.ts --bootstrap 127.0.0.1:9092 --stage prod',
    'pawl run totals.ts --bootstrap b-1:9096,b-2:9096 --kafka-config kafka.json',
  ],
  run,
}

interface Plan {
  readonly compiled: Compiled
  readonly file: string
  readonly exportName: string
  readonly directory: string
  readonly stage: string
  readonly kafka: KafkaOptions | null
}

async function run(call: Call): Promise<number> {
  const { options, positionals, output } = call
  const until = options.text('until')
  if (until !== undefined && until !== 'caught-up')
    throw misused(runCommand, `--until takes caught-up, not ${JSON.stringify(until)}`)
  const { loadPipeline } = await import('../places/load.ts')
  const [file] = positionals
  const exportName = options.text('export') ?? 'default'
  const compiled = await loadPipeline(file, exportName)
  const stage = options.text('stage') ?? defaultStage
  const plan: Plan = { compiled, file, exportName, directory: directoryOf(options), stage, kafka: kafkaOptionsOf(call) }
  await askSources(plan)
  const interrupts = watchInterrupts()
  const reporter = reportRun(output, compiled.topology.pipeline)
  try {
    const outcome = await keepGoing(
      plan,
      reporter,
      interrupts,
      until === undefined ? 'stopped' : 'caught-up',
      options.flag('resume'),
    )
    reporter.end(outcome)
    if (outcome.reason === 'parked') throw parked(plan, outcome)
    if (outcome.reason === 'paused') throw paused(plan, outcome)
    return outcome.reason === 'stopped' && interrupts.by() === 'SIGINT' ? exitCodes.interrupted : exitCodes.success
  } finally {
    reporter.close()
    interrupts.close()
  }
}

async function keepGoing(
  plan: Plan,
  reporter: Reporter,
  interrupts: Interrupts,
  until: 'stopped' | 'caught-up',
  resume: boolean,
): Promise<RunOutcome> {
  const { runPipeline } = await import('../places/run.ts')
  const place = await open(plan, reporter)
  reporter.watch(place)
  interrupts.onFirst(reporter.stopping)
  interrupts.onSecond(reporter.close)
  const invoker = await threadsOf(plan)
  try {
    return await runPipeline(plan.compiled, {
      place,
      until,
      resume,
      signal: interrupts.signal,
      ...(invoker ? { invoker } : {}),
    })
  } finally {
    await invoker?.close()
    await place.close()
  }
}

async function open(
  { directory, stage, kafka }: Plan,
  telemetry: Pick<Reporter, 'emit'>,
  patienceMs?: number,
): Promise<EmbeddedPlace> {
  const { openPlace } = await import('../places/embedded.ts')
  const options = kafka && patienceMs !== undefined ? { ...kafka, patienceMs: kafka.patienceMs ?? patienceMs } : kafka
  return openPlace({ directory, cluster: await clusterOf(options), stage, telemetry })
}

/** Threads pay where there is more than one shard. */
async function threadsOf({ compiled, directory, stage, file, exportName, kafka }: Plan): Promise<Invoker | null> {
  const { shards } = compiled.settings
  if (shards === 1) return null
  const { pipelineThreads } = await import('../places/threads.ts')
  return pipelineThreads({ directory, stage, file, exportName, kafka }, shards)
}

/** How long to wait for brokers at the start. */
const firstPatienceMs = 5000

/** Throws what sources throw: `BROKER_UNREACHABLE`, `AUTHENTICATION_FAILED`, `TOPIC_MISSING`. */
async function askSources(plan: Plan): Promise<void> {
  const place = await open(plan, { emit: () => undefined }, firstPatienceMs)
  try {
    const { pipeline } = plan.compiled.topology
    const head = await place.ledger.read(pipeline)
    for (const [id, spec] of Object.entries(plan.compiled.sources)) {
      await (await place.source(pipeline, id, spec, head?.incarnation ?? 'none')).bounds()
    }
  } finally {
    await place.close()
  }
}

function paused({ compiled }: Plan, { message }: RunOutcome): PawlError {
  const { pipeline } = compiled.topology
  return new PawlError('PIPELINE_PAUSED', message === null ? pipeline : `${pipeline}: ${message}`, { pipeline })
}

function parked({ compiled, file }: Plan, { code, message }: RunOutcome): PawlError {
  const { pipeline } = compiled.topology
  const why = (message ?? 'for an unknown reason').replace(/\.? Next: .*$/s, '')
  const action =
    code !== null && code in errorRegistry ? ` (${errorRegistry[code as keyof typeof errorRegistry].action})` : ''
  return new PawlError('PIPELINE_PARKED', `${pipeline}: ${why}${action}`, { pipeline, file, reason: code })
}
