/**
 * What a deployment is told: the properties of `ExactlyOncePipeline`.
 */
import type { Duration } from 'aws-cdk-lib'
import type * as ec2 from 'aws-cdk-lib/aws-ec2'
import type * as lambda from 'aws-cdk-lib/aws-lambda'
import type { RetentionDays } from 'aws-cdk-lib/aws-logs'
import type { ISecret } from 'aws-cdk-lib/aws-secretsmanager'
import type { ITopic as ISnsTopic } from 'aws-cdk-lib/aws-sns'
import type { CheckpointSettings } from '../lib/model/settings.ts'

/** How functions and mapping say who they are. A secret may rotate without a deployment. */
export type Authentication =
  /** No credentials; `tls` encrypts. */
  | { readonly type: 'none' | 'tls' }
  /** `plain` is not known to MSK. The secret is JSON with `username` and `password`. */
  | { readonly type: 'scram-sha-512' | 'scram-sha-256' | 'plain'; readonly secret: ISecret }
  /** MSK only: the role of each function. */
  | { readonly type: 'iam' }

/** Where the topics are. Either an MSK cluster or bootstrap servers. */
export interface KafkaSource {
  /** Of an MSK cluster. */
  readonly clusterArn?: string
  /** host:port, separated by commas. For MSK they are looked up at deployment unless they are given. */
  readonly bootstrapServers?: string
  readonly authentication: Authentication
  /** Where the brokers are; absent only for brokers that are reached over the internet. */
  readonly vpc?: ec2.IVpc
  readonly subnets?: ec2.SubnetSelection
  /** Of the functions and the mapping; the brokers must let them in. */
  readonly securityGroups?: readonly ec2.ISecurityGroup[]
  /** PEM of the authority that signed the brokers' certificates; absent: the usual ones. */
  readonly certificateAuthority?: string
  /** False for SASL without TLS, as only test clusters have it. */
  readonly encrypted?: boolean
  /** After which the brokers abort a transaction of a sink; 60 s by default. */
  readonly transactionTimeoutMs?: number
}

/** Bucket and table: made by the stack, or there already. */
export interface Storage {
  /** Of a bucket that an earlier deployment left; absent: a new one. */
  readonly existingBucketName?: string
  /** Of a table that an earlier deployment left; absent: a new one. */
  readonly existingTableName?: string
}

/** Sizes of the functions. */
export interface FunctionSizes {
  /** Of operate; 1769 (one whole processor) by default. */
  readonly operateMb?: number
  /** Of promote, which sends the rows; 1024 by default. */
  readonly promoteMb?: number
  /** Of all others; 512 by default. */
  readonly otherMb?: number
}

/** Properties of a deployed pipeline. */
export interface ExactlyOncePipelineProps {
  /** Path of the pipeline file, whose default export is a stream with its sinks. */
  readonly entry: string
  /** Environment, such as `dev`; part of every id that lands in a shared cluster. */
  readonly stageName: string
  readonly source: KafkaSource
  /** Checkpoint settings in which this deployment differs from the file. */
  readonly checkpoint?: Partial<CheckpointSettings>
  /**
   * `brokers`: the trigger is rung by events, and epochs read their input from the brokers. `event`: the trigger lays the
   * records of each event down in the bucket, and epochs read them there; only the function `recover` reaches the
   * brokers, and the mapping. `brokers` by default.
   */
  readonly intake?: 'brokers' | 'event'
  /**
   * Where the sinks are, with intake: event. `public` takes the functions that reach sinks out of the VPC; by default
   * they stay in it unless every sink is a service of AWS.
   */
  readonly sinkNetwork?: 'vpc' | 'public'
  /**
   * `standard`: executions that are told apart by name, and whose end is told. `express`: cheaper and quicker, but a run
   * that dies is taken over only when its lease is over. `standard` by default.
   */
  readonly workflow?: 'standard' | 'express'
  /** `msk`: an event source mapping rings within its batch window. `schedule`: nothing but the schedule does. */
  readonly trigger?: 'msk' | 'schedule'
  /** Between two looks of the schedule; a minute by default. */
  readonly tick?: Duration
  /** How long the mapping gathers before it rings; a second by default. */
  readonly batchWindow?: Duration
  /** `create` makes what functions in the VPC need of AWS; `provided`: it is there, or a NAT is. */
  readonly vpcEndpoints?: 'create' | 'provided'
  readonly storage?: Storage
  readonly sizes?: FunctionSizes
  /** Is told when an alarm begins and ends; absent: alarms only change their state. */
  readonly alarmTopic?: ISnsTopic
  /** Traces single invocations of functions with X-Ray; never whole runs. False by default. */
  readonly tracing?: boolean
  /** Of the functions' logs; a month by default. */
  readonly logRetention?: RetentionDays
  /** Native packages in `nodejs/node_modules`, such as snappy and lz4-napi. */
  readonly layers?: readonly lambda.ILayerVersion[]
}
