/**
 * What a stack's outputs say of the pipelines deployed with it, and their ledger and store, opened.
 *
 * Composition root for commands that look at a deployment. The construct prints one set of outputs a pipeline; CDK
 * puts its path before each name and a hash behind it.
 */
import { stackOutputs } from '../adapters/cloudformation/outputs.ts'
import { dynamoLedger } from '../adapters/dynamodb/ledger.ts'
import { s3Store } from '../adapters/s3/store.ts'
import { PawlError } from '../model/errors.ts'
import type { Ledger } from '../ports/ledger.ts'
import type { Store } from '../ports/store.ts'

/** One deployed pipeline. */
export interface Deployment {
  readonly pipeline: string
  readonly stage: string
  readonly bucket: string
  readonly table: string
}

/** A deployment that commands look at. */
export interface OpenedDeployment extends Deployment {
  readonly ledger: Ledger
  readonly store: Store
}

/** Names of `CfnOutput`s in `infra/exactly-once-pipeline.ts`, and what they mean here. */
const fields = { Pipeline: 'pipeline', StageName: 'stage', BucketName: 'bucket', TableName: 'table' } as const
const outputName = /^(.*?)(Pipeline|StageName|BucketName|TableName)[0-9A-F]{8}$/

/** The deployments that a stack's outputs describe. */
export function deploymentsOf(outputs: ReadonlyMap<string, string>): readonly Deployment[] {
  const found = new Map<string, Record<string, string>>()
  for (const [name, value] of outputs) {
    const [, path, field] = outputName.exec(name) ?? []
    if (path === undefined || field === undefined) continue
    found.set(path, { ...found.get(path), [fields[field as keyof typeof fields]]: value })
  }
  return [...found.values()].filter(isWhole)
}

function isWhole(found: Record<string, string>): found is Record<string, string> & Deployment {
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
  const { bucket, table } = only
  return { ...only, ledger: dynamoLedger({ table }), store: s3Store({ bucket }) }
}
