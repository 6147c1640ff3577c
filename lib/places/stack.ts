/**
 * What a stack's outputs say of the pipelines deployed with it, and their ledger and store, opened.
 *
 * Composition root for commands that look at a deployment. The construct prints one set of outputs a pipeline; CDK
 * puts its path before each name and a hash behind it.
 */
import { stackOutputs } from '../adapters/cloudformation/outputs.ts'
import { dynamoLedger } from '../adapters/dynamodb/ledger.ts'
import { s3Store } from '../adapters/s3/store.ts'
import { stepFunctionsLauncher } from '../adapters/stepfunctions/launcher.ts'
import { PawlError } from '../model/errors.ts'
import type { Ledger } from '../ports/ledger.ts'
import type { Store } from '../ports/store.ts'
import type { Launcher } from '../ports/system.ts'

/** One deployed pipeline. */
export interface Deployment {
  readonly pipeline: string
  readonly stage: string
  readonly bucket: string
  readonly table: string
  /** Of the epoch machine; like the next three null in a stack from before its construct printed it. */
  readonly stateMachineArn: string | null
  /** `standard` or `express`. */
  readonly workflow: string | null
  readonly trigger: string | null
  readonly doctor: string | null
}

/** A deployment that commands look at. */
export interface OpenedDeployment extends Deployment {
  readonly ledger: Ledger
  readonly store: Store
  readonly launcher: Launcher
  close(): Promise<void>
}

/** Names of `CfnOutput`s in `infra/exactly-once-pipeline.ts`, and what they mean here. */
const fields = { Pipeline: 'pipeline', StageName: 'stage', BucketName: 'bucket', TableName: 'table' } as const
const laterFields = {
  StateMachineArn: 'stateMachineArn',
  Workflow: 'workflow',
  TriggerName: 'trigger',
  DoctorName: 'doctor',
} as const
const allFields: Readonly<Record<string, keyof Deployment>> = { ...fields, ...laterFields }
const outputName = new RegExp(`^(.*?)(${Object.keys(allFields).join('|')})[0-9A-F]{8}$`)

/** The deployments that a stack's outputs describe. */
export function deploymentsOf(outputs: ReadonlyMap<string, string>): readonly Deployment[] {
  const found = new Map<string, Record<string, string>>()
  for (const [name, value] of outputs) {
    const [, path, field] = outputName.exec(name) ?? []
    if (path === undefined || field === undefined) continue
    found.set(path, { ...found.get(path), [allFields[field]!]: value })
  }
  return [...found.values()]
    .filter(isWhole)
    .map((whole) => ({ stateMachineArn: null, workflow: null, trigger: null, doctor: null, ...whole }))
}

type Whole = Pick<Deployment, (typeof fields)[keyof typeof fields]>

function isWhole(found: Record<string, string>): found is Record<string, string> & Whole {
  return Object.values(fields).every((field) => field in found)
}

/**
 * Opens the deployment of a pipeline, or the only one. Endpoint, region and credentials come from the environment.
 * Throws `PIPELINE_NOT_FOUND`, `COMMAND_INVALID` when several are meant, and what `stackOutputs` throws.
 */
export async function openDeployment(stack: string, pipeline: string | undefined): Promise<OpenedDeployment> {
  const all = deploymentsOf(await stackOutputs(stack))
  const names = all.map((deployment) => deployment.pipeline).join(', ')
  const meant = all.filter((deployment) => pipeline === undefined || deployment.pipeline === pipeline)
  const [only] = meant
  if (only === undefined) {
    const fault = all.length === 0 ? `stack ${stack} deploys none` : `stack ${stack} deploys ${names}`
    throw new PawlError('PIPELINE_NOT_FOUND', `${pipeline ?? 'a pipeline'}: ${fault}`, { stack })
  }
  if (meant.length > 1) {
    throw new PawlError('COMMAND_INVALID', `stack ${stack} deploys ${meant.length} pipelines, name one of ${names}`)
  }
  const { bucket, table, stateMachineArn } = only
  const workflow = only.workflow === 'express' ? 'express' : 'standard'
  const ledger = dynamoLedger({ table })
  const store = s3Store({ bucket })
  const launcher =
    stateMachineArn === null ? unknownMachine(stack) : stepFunctionsLauncher({ stateMachineArn, workflow })
  return {
    ...only,
    ledger,
    store,
    launcher,
    async close() {
      await store.close()
      await ledger.close()
      await launcher.close()
    },
  }
}

function unknownMachine(stack: string): Launcher & { close(): Promise<void> } {
  return {
    async start() {
      throw new PawlError('AWS_RESOURCE_MISSING', `stack ${stack} does not name its state machine: deploy it again`)
    },
    status: async () => 'unknown',
    close: async () => undefined,
  }
}
