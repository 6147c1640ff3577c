/**
 * A deployed pipeline to test: the app of `infra/`, by plain `cdk bootstrap` and `cdk deploy`, on an emulator and a
 * broker of its own.
 *
 * For tests and scripts alike. What the deployment is made of is read from the outputs of its stack; the pipeline's
 * job is opened from outside, over the same adapters as the functions use, to see what they did.
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda'
import { GetExecutionHistoryCommand, ListExecutionsCommand, SFNClient } from '@aws-sdk/client-sfn'
import { kafka } from '../../lib/adapters/kafka/cluster.ts'
import { stepFunctionsLauncher } from '../../lib/adapters/stepfunctions/launcher.ts'
import type { Job } from '../../lib/epoch/job.ts'
import { openSink } from '../../lib/epoch/job.ts'
import { look } from '../../lib/epoch/look.ts'
import { type Verified, verify } from '../../lib/epoch/verify.ts'
import { type DeployedPlace, openDeployedPlace } from '../../lib/places/deployed.ts'
import { loadPipeline } from '../../lib/places/load.ts'
import { StateCache } from '../../lib/state/cache.ts'
import type { Emulator } from './aws-emulator.ts'
import type { Broker } from './kafka-broker.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const deployMs = 240_000

/** What is deployed, and where. */
export interface DeployOptions {
  readonly emulator: Emulator
  readonly broker: Pick<Broker, 'bootstrap'>
  readonly stageName?: string
  /** Path of the pipeline file; the word count by default. */
  readonly entry?: string
  readonly intake?: 'brokers' | 'event'
  /** The stack of docs/getting-started.md. */
  readonly quickStart?: boolean
  readonly workflow?: 'standard' | 'express'
}

/** Names out of the stack's outputs. */
export type OutputName =
  | 'BucketName'
  | 'CollectName'
  | 'FeederName'
  | 'Pipeline'
  | 'RecoverName'
  | 'StateMachineArn'
  | 'TableName'
  | 'TriggerName'

export interface Deployed {
  readonly job: Job & { readonly place: DeployedPlace }
  output(name: OutputName): string
  /** Invokes a function as AWS would; rejects with what it threw. */
  invoke(name: 'TriggerName' | 'CollectName' | 'FeederName' | 'RecoverName', event: unknown): Promise<unknown>
  /** Executions of the state machine, newest first. */
  executions(): Promise<readonly { readonly arn: string; readonly name: string; readonly status: string }[]>
  /** Names of the states that an execution entered, in order. */
  states(executionArn: string): Promise<readonly string[]>
  /** Resolves once nothing is left to do and no run holds the pipeline. */
  untilAtRest(withinMs: number): Promise<void>
  verify(): Promise<Verified>
  close(): Promise<void>
}

/** Bootstraps the emulator's account, once for each emulator. */
export async function bootstrap({ emulator, broker }: DeployOptions): Promise<void> {
  await cdk(emulator, { BOOTSTRAP_SERVERS: broker.bootstrap }, ['bootstrap', 'aws://000000000000/us-east-1'])
}

/** Deploys, or deploys again. The topics must exist. */
export async function deploy(options: DeployOptions): Promise<Deployed> {
  const entry = options.entry ?? join(root, 'examples/word-count/pipeline.ts')
  const outputs = await deployStack(options, entry)
  return open(options, entry, outputs)
}

/** Deploys several pipelines in one stack. */
export async function deployBeside(options: DeployOptions, entries: readonly string[]): Promise<Deployed[]> {
  const outputs = await deployStack(options, entries.join(','))
  const ofPipeline = (at: number) => (id: string) => id.startsWith(at === 0 ? 'WordCount' : `Beside${at}`)
  return Promise.all(
    entries.map((entry, at) =>
      open(options, entry, Object.fromEntries(Object.entries(outputs).filter(([id]) => ofPipeline(at)(id)))),
    ),
  )
}

async function deployStack(
  { emulator, broker, stageName = 'dev', intake = 'brokers', quickStart = false, workflow = 'standard' }: DeployOptions,
  entry: string,
): Promise<Readonly<Record<string, string>>> {
  const directory = mkdtempSync(join(tmpdir(), 'pawl-deploy-'))
  const file = join(directory, 'outputs.json')
  const environment = {
    BOOTSTRAP_SERVERS: broker.bootstrap,
    STAGE_NAME: stageName,
    ENTRY: entry,
    INTAKE: intake,
    ...(quickStart ? { QUICK_START: 'yes' } : {}),
    WORKFLOW: workflow,
  }
  try {
    await cdk(emulator, environment, ['deploy', '--require-approval', 'never', '--outputs-file', file])
    const [outputs = {}] = Object.values(
      JSON.parse(readFileSync(file, 'utf8')) as Record<string, Record<string, string>>,
    )
    return outputs
  } finally {
    rmSync(directory, { recursive: true })
  }
}

async function cdk(
  emulator: Emulator,
  environment: Readonly<Record<string, string>>,
  words: readonly string[],
): Promise<void> {
  const bin = join(root, 'node_modules/.bin')
  const output = mkdtempSync(join(tmpdir(), 'pawl-cdk-'))
  try {
    await promisify(execFile)(join(bin, 'cdk'), [...words, '--output', output, '--ci'], {
      cwd: root,
      timeout: deployMs,
      maxBuffer: 1 << 26,
      env: { ...process.env, ...emulator.environment, ...environment, PATH: `${bin}:${process.env.PATH}` },
    })
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    throw new Error(`cdk ${words[0]} failed:\n${(stdout + stderr).slice(-4000)}`)
  } finally {
    rmSync(output, { recursive: true, force: true })
  }
}

async function open(
  { emulator, broker, stageName = 'dev', intake = 'brokers', workflow = 'standard' }: DeployOptions,
  entry: string,
  outputs: Readonly<Record<string, string>>,
): Promise<Deployed> {
  const output = (name: OutputName) => {
    const found = Object.entries(outputs).find(([id]) => new RegExp(`${name}(?:[0-9A-F]{8})?$`).test(id))
    if (found === undefined) throw new Error(`the stack has no output ${name}`)
    return found[1]
  }
  const machines = new SFNClient(emulator.client)
  const functions = new LambdaClient({ ...emulator.client, maxAttempts: 1 })
  const stateMachineArn = output('StateMachineArn')
  const place = openDeployedPlace({
    bucket: output('BucketName'),
    table: output('TableName'),
    stage: stageName,
    cluster: kafka({ brokers: broker.bootstrap }),
    telemetry: { emit: () => {} },
    launcher: stepFunctionsLauncher({ ...emulator.client, stateMachineArn, workflow }),
    aws: emulator.client,
    forcePathStyle: true,
    takesEventsIn: intake === 'event',
  })
  const job = { compiled: await loadPipeline(entry), place, states: new StateCache(), warm: new Map() }
  return {
    job,
    output,
    invoke: (name, event) => invoke(functions, output(name), event),
    async executions() {
      const { executions = [] } = await machines.send(new ListExecutionsCommand({ stateMachineArn, maxResults: 1000 }))
      return executions.map(({ executionArn = '', name = '', status = '' }) => ({ arn: executionArn, name, status }))
    },
    states: (executionArn) => statesOf(machines, executionArn),
    untilAtRest: (withinMs) => untilAtRest(job, withinMs),
    verify: () => verifyJob(job),
    async close() {
      await place.close()
      machines.destroy()
      functions.destroy()
    },
  }
}

async function invoke(client: LambdaClient, name: string, event: unknown): Promise<unknown> {
  const answer = await client.send(new InvokeCommand({ FunctionName: name, Payload: JSON.stringify(event) }))
  const payload = answer.Payload?.transformToString() || 'null'
  if (answer.FunctionError === undefined) return JSON.parse(payload)
  throw new Error(`${name}: ${payload}`)
}

async function statesOf(client: SFNClient, executionArn: string): Promise<readonly string[]> {
  const entered: string[] = []
  let nextToken: string | undefined
  do {
    const page = await client.send(new GetExecutionHistoryCommand({ executionArn, nextToken, maxResults: 1000 }))
    for (const { stateEnteredEventDetails } of page.events ?? [])
      if (stateEnteredEventDetails?.name !== undefined) entered.push(stateEnteredEventDetails.name)
    nextToken = page.nextToken
  } while (nextToken !== undefined)
  return entered
}

async function untilAtRest(job: Job, withinMs: number): Promise<void> {
  const deadline = Date.now() + withinMs
  for (;;) {
    const { head, due, lag } = await look(job)
    if (!due && lag !== null && head?.run.open === false) return
    if (Date.now() > deadline)
      throw new Error(`not at rest after ${withinMs} ms: ${JSON.stringify({ due, lag, head })}`)
    await job.place.clock.sleep(100)
  }
}

async function verifyJob(job: Job): Promise<Verified> {
  const { pipeline } = job.compiled.topology
  const { ledger, store } = job.place
  const head = await ledger.read(pipeline)
  return verify({
    ledger,
    store,
    pipeline,
    readMarker: async ({ sink, lane }) => (await openSink(job, sink, head?.incarnation ?? '')).marker(lane),
  })
}
