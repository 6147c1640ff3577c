/**
 * A right, and what rights are about.
 *
 * Plain values, so that roles are made from them and tests compare them.
 */
import type { FunctionName } from './function-names.ts'
import type { KafkaSource } from './props.ts'
import type { Description } from './topology.ts'

/** One statement of a policy. */
export interface Right {
  readonly sid: string
  readonly actions: readonly string[]
  readonly resources: readonly string[]
  readonly conditions?: Readonly<Record<string, Readonly<Record<string, string | readonly string[]>>>>
}

/** What the rights are about; ARNs may be tokens. */
export interface Subject {
  readonly bucketArn: string
  readonly tableArn: string
  readonly machineArn: string
  readonly executionsArn: string
  readonly logGroupArn: string
  /** Where resources are that have no ARN of their own here: partition, region and account. */
  readonly home: { readonly partition: string; readonly region: string; readonly account: string }
  readonly stageName: string
  readonly description: Description
  readonly source: KafkaSource
  readonly workflow?: 'standard' | 'express'
  readonly intake: 'brokers' | 'event'
  /** Functions that run in the VPC. */
  readonly inVpc: (name: FunctionName) => boolean
  /** Whether a mapping reads the topics. */
  readonly mapped: boolean
  /** Whether invocations are traced. */
  readonly tracing: boolean
}
