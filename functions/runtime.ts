/**
 * What every function stands on: the pipeline, compiled once, at a place that outlives the invocation.
 *
 * State and manifests stay warm in memory; what is warm is trusted only where a manifest names it. A sandbox may be
 * frozen between two invocations for minutes, and what was connected may be gone without a sign: after a longer pause
 * all connections are dropped and opened again by whoever needs them, instead of being waited for.
 */
import userPipeline from 'pawl:pipeline'
import { emfTelemetry } from '../lib/adapters/cloudwatch/telemetry.ts'
import { kafka } from '../lib/adapters/kafka/cluster.ts'
import { secretCredentials } from '../lib/adapters/secretsmanager/credentials.ts'
import { type CallMeter, callMeter } from '../lib/adapters/shared/meter.ts'
import { type AnyInput, call, type Step } from '../lib/epoch/execute.ts'
import type { Job } from '../lib/epoch/job.ts'
import type { StepName } from '../lib/epoch/machine.ts'
import { expressSettings } from '../lib/model/settings.ts'
import { type DeployedOptions, type DeployedPlace, openDeployedPlace } from '../lib/places/deployed.ts'
import type { ClusterSpec, OpenContext } from '../lib/ports/spec.ts'
import { StateCache } from '../lib/state/cache.ts'
import { compile } from '../lib/stream/compile.ts'
import type { Compiled } from '../lib/stream/compiled.ts'
import { kafkaOptionsOf } from './brokers.ts'
import { environmentOf, type FunctionEnvironment, type ParsedEnvironment } from './environment.ts'

/** Connections that rested for longer are not trusted. Load balancers forget after 350 s, brokers after 600 s. */
const restMsMax = 30_000

/** Makes what starts runs, for the functions that do. */
export type LauncherOf = (
  environment: FunctionEnvironment,
  meter: CallMeter,
) => NonNullable<DeployedOptions['launcher']>

const compiled = asDeployed(compile(userPipeline), environmentOf(process.env))
const states = new StateCache()
const warm = new Map<string, unknown>()
let place: DeployedPlace | null = null
let usedAtMs = 0

/** A function that is one step of the epoch machine. */
export function step<I extends AnyInput, O>(
  name: StepName,
  run: Step<I, O>,
  launcherOf?: LauncherOf,
): (input: I) => Promise<O> {
  return onJob((job, input) => call(name, run, job, input), launcherOf)
}

/** A function that is given the job. */
export function onJob<I, O>(run: Step<I, O>, launcherOf?: LauncherOf): (input: I) => Promise<O> {
  return async (input) => {
    try {
      return await run({ compiled, place: await awake(launcherOf), states, warm }, input)
    } finally {
      usedAtMs = Date.now()
    }
  }
}

/** The deployment may set checkpoints and kind of executions otherwise than the file; they decide no result. */
function asDeployed(given: Compiled, { checkpoint, PAWL_WORKFLOW }: ParsedEnvironment): Compiled {
  const settings = { ...given.settings, checkpoint: { ...given.settings.checkpoint, ...checkpoint } }
  return { ...given, settings: PAWL_WORKFLOW === 'express' ? expressSettings(settings) : settings }
}

/** True where the trigger lays events down. */
export const takesEventsIn = environmentOf(process.env).PAWL_INTAKE === 'event'

/** The brokers, as this function reaches them. No call is made before it is used. */
export function brokers(): ClusterSpec {
  return kafka(kafkaOptionsOf(environmentOf(process.env).kafka, secretCredentials))
}

/** What a source or sink of its own is opened with. */
export function contextOf({ place: { store } }: Job): OpenContext {
  const { pipeline } = compiled.topology
  return { pipeline, incarnation: '', stage: environmentOf(process.env).PAWL_STAGE, directory: null, store }
}

async function awake(launcherOf: LauncherOf | undefined): Promise<Job['place']> {
  // Sockets whose end arrived during the freeze are heard of before they are used.
  await new Promise((resolve) => setImmediate(resolve))
  if (place !== null && Date.now() - usedAtMs > restMsMax) {
    place.close().catch(() => {})
    place = null
  }
  place ??= openPlace(launcherOf)
  return place
}

function openPlace(launcherOf: LauncherOf | undefined): DeployedPlace {
  const environment = environmentOf(process.env)
  const { PAWL_BUCKET: bucket, PAWL_TABLE: table, PAWL_STAGE: stage } = environment
  const meter = callMeter()
  const launcher = launcherOf?.(environment, meter)
  return openDeployedPlace({
    bucket,
    table,
    stage,
    cluster: brokers(),
    takesEventsIn,
    // Not by the console, which puts a prefix before each line that CloudWatch would not see through.
    telemetry: emfTelemetry({ write: (line) => process.stdout.write(`${line}\n`), namespace: `Pawl/${stage}` }),
    aws: { meter },
    ...(launcher === undefined ? {} : { launcher }),
  })
}
