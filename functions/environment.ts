/**
 * What a function is told by its environment; written by the construct, read here.
 *
 * Names and addresses only: a secret is named by its ARN and read when a connection opens.
 */
import type { CheckpointSettings } from '../lib/model/settings.ts'

/** How a function says who it is to the brokers. */
export type KafkaAuthentication =
  | { readonly type: 'none' | 'tls' }
  | {
      readonly type: 'sasl'
      readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'
      readonly secretArn: string
    }
  | { readonly type: 'iam'; readonly region: string }

/** Where the topics are, as JSON in `PAWL_KAFKA`. */
export interface KafkaEnvironment {
  /** host:port, separated by commas. */
  readonly brokers: string
  readonly authentication: KafkaAuthentication
  /** PEM of a private authority; absent: the system's. */
  readonly authority?: string
  /** False for SASL without TLS. */
  readonly encrypted?: boolean
  readonly transactionTimeoutMs?: number
}

/** Variables of every function. */
export interface FunctionEnvironment {
  readonly PAWL_BUCKET: string
  readonly PAWL_TABLE: string
  readonly PAWL_STAGE: string
  readonly PAWL_KAFKA: string
  /** JSON of the checkpoint settings in which the deployment differs from the pipeline file. */
  readonly PAWL_CHECKPOINT?: string
  /** Only where the trigger lays events down and epochs read them there. */
  readonly PAWL_INTAKE?: 'event'
  /** Only where runs are Express executions. */
  readonly PAWL_WORKFLOW?: 'express'
  /** Only where runs are started. */
  readonly PAWL_STATE_MACHINE?: string
}

/** The environment, with what is JSON in it. */
export interface ParsedEnvironment extends FunctionEnvironment {
  readonly kafka: KafkaEnvironment
  readonly checkpoint: Partial<CheckpointSettings>
}

/** The environment of this process. Throws when the construct did not write it. */
export function environmentOf(env: NodeJS.ProcessEnv): ParsedEnvironment {
  const {
    PAWL_BUCKET,
    PAWL_TABLE,
    PAWL_STAGE,
    PAWL_KAFKA,
    PAWL_CHECKPOINT = '{}',
    PAWL_STATE_MACHINE,
    PAWL_INTAKE,
    PAWL_WORKFLOW,
  } = env
  if (!PAWL_BUCKET || !PAWL_TABLE || !PAWL_STAGE || !PAWL_KAFKA)
    throw new Error('PAWL_BUCKET, PAWL_TABLE, PAWL_STAGE and PAWL_KAFKA are needed; the construct sets them')
  return {
    PAWL_BUCKET,
    PAWL_TABLE,
    PAWL_STAGE,
    PAWL_KAFKA,
    ...(PAWL_STATE_MACHINE === undefined ? {} : { PAWL_STATE_MACHINE }),
    ...(PAWL_INTAKE === 'event' ? { PAWL_INTAKE } : {}),
    ...(PAWL_WORKFLOW === 'express' ? { PAWL_WORKFLOW } : {}),
    kafka: JSON.parse(PAWL_KAFKA),
    checkpoint: JSON.parse(PAWL_CHECKPOINT),
  }
}
