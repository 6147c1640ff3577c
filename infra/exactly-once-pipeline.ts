/**
 * `ExactlyOncePipeline`: a pipeline file, deployed.
 *
 * Reads the compiled topology at synthesis, refuses what cannot work, and makes storage, functions, state machine and
 * triggers. Everything that lands in a shared cluster carries the stage name, so that two environments can share one.
 */
import { CfnOutput, Stack } from 'aws-cdk-lib'
import type * as dynamodb from 'aws-cdk-lib/aws-dynamodb'
import { RetentionDays } from 'aws-cdk-lib/aws-logs'
import type * as s3 from 'aws-cdk-lib/aws-s3'
import type { CfnStateMachine } from 'aws-cdk-lib/aws-stepfunctions'
import { Construct } from 'constructs'
import type { FunctionEnvironment } from '../functions/environment.ts'
import { EpochMachine } from './epoch-machine.ts'
import { Functions, type MadeFunctions } from './functions.ts'
import { kafkaEnvironment } from './kafka-environment.ts'
import { opensSinks } from './kafka-rights.ts'
import { Network } from './network.ts'
import { Observability } from './observability.ts'
import type { ExactlyOncePipelineProps } from './props.ts'
import type { Subject } from './right.ts'
import { Storage } from './storage.ts'
import { type Description, describePipeline } from './topology.ts'
import { Trigger, tickDefault } from './trigger.ts'
import { machineName, mustBeDeployable, settingsOf } from './validate.ts'

export type { Authentication, ExactlyOncePipelineProps, FunctionSizes, KafkaSource } from './props.ts'

/**
 * A pipeline on AWS. Throws `PIPELINE_FILE_INVALID`, `PIPELINE_INVALID`, and `DEPLOYMENT_INVALID` that lists every
 * mistake of the deployment.
 */
export class ExactlyOncePipeline extends Construct {
  readonly bucket: s3.IBucket
  readonly table: dynamodb.ITable
  readonly functions: MadeFunctions
  readonly stateMachine: CfnStateMachine
  /** By name; add actions to them as you like. */
  readonly alarms: Observability['alarms']
  readonly dashboard: Observability['dashboard']

  constructor(scope: Construct, id: string, props: ExactlyOncePipelineProps) {
    super(scope, id)
    const description = describePipeline(props.entry)
    mustBeDeployable(props, description)
    const { pipeline } = description.topology
    const { stageName } = props
    const name = machineName(stageName, pipeline)
    const arns = machineArns(Stack.of(this), name)
    const { bucket, table } = new Storage(this, 'Storage', props.storage ?? {})
    const subject = subjectOf(Stack.of(this), props, description, { bucket, table, ...arns })
    const functions = new Functions(this, 'Functions', {
      pipeline: props,
      subject,
      environment: this.#environment(props, bucket, table, arns.machineArn),
    })
    const settings = settingsOf(description, props)
    const { stateMachine } = new EpochMachine(this, 'EpochMachine', {
      name,
      settings,
      functions,
      workflow: props.workflow ?? 'standard',
      logRetention: props.logRetention ?? RetentionDays.ONE_MONTH,
    })
    const { machineArn } = arns
    const trigger = new Trigger(this, 'Trigger', {
      pipeline: props,
      description,
      functions: functions.byName,
      machineArn,
    })
    trigger.node.addDependency(stateMachine)
    if (props.vpcEndpoints === 'create')
      new Network(this, 'Network', props, {
        starts: subject.inVpc('plan') || subject.inVpc('trigger'),
        secrets: description.sinks.some(({ resources = [] }) => resources.some(({ of }) => of === 'secretsmanager')),
      })
    const { tick = tickDefault, alarmTopic } = props
    const { alarms, dashboard } = new Observability(this, 'Observability', {
      stageName,
      description,
      settings,
      functions: functions.byName,
      tick,
      ...(alarmTopic === undefined ? {} : { alarmTopic }),
    })
    this.alarms = alarms
    this.dashboard = dashboard
    this.bucket = bucket
    this.table = table
    this.functions = functions.byName
    this.stateMachine = stateMachine
    this.#print({ pipeline, stageName, machineArn, workflow: props.workflow ?? 'standard' })
  }

  #environment(
    props: ExactlyOncePipelineProps,
    bucket: s3.IBucket,
    table: dynamodb.ITable,
    machineArn: string,
  ): FunctionEnvironment {
    const kafka = kafkaEnvironment(this, props.source)
    return {
      PAWL_BUCKET: bucket.bucketName,
      PAWL_TABLE: table.tableName,
      PAWL_STAGE: props.stageName,
      PAWL_KAFKA: Stack.of(this).toJsonString(kafka),
      ...(props.checkpoint === undefined ? {} : { PAWL_CHECKPOINT: JSON.stringify(props.checkpoint) }),
      ...(props.intake === 'event' ? { PAWL_INTAKE: props.intake } : {}),
      ...(props.workflow === 'express' ? { PAWL_WORKFLOW: props.workflow } : {}),
      PAWL_STATE_MACHINE: machineArn,
    }
  }

  /** What commands need to look at the deployment, and a later one to take its storage up again. */
  #print({ pipeline, stageName, machineArn, workflow }: Printed): void {
    const outputs = {
      Pipeline: pipeline,
      StageName: stageName,
      BucketName: this.bucket.bucketName,
      TableName: this.table.tableName,
      StateMachineArn: machineArn,
      Workflow: workflow,
      TriggerName: this.functions.trigger.functionName,
      CollectName: this.functions.collect.functionName,
      DoctorName: this.functions.doctor.functionName,
    }
    const { recover } = this.functions
    if (recover !== undefined) Object.assign(outputs, { RecoverName: recover.functionName })
    for (const [name, value] of Object.entries(outputs)) new CfnOutput(this, name, { value })
  }
}

/** What outputs say that no construct does. */
interface Printed {
  readonly pipeline: string
  readonly stageName: string
  readonly machineArn: string
  readonly workflow: 'standard' | 'express'
}

/** The machine has a name of its own, since its functions must know it before it exists. */
function machineArns(stack: Stack, name: string): Pick<Subject, 'machineArn' | 'executionsArn'> {
  const arn = (resource: string, resourceName: string) =>
    `arn:${stack.partition}:states:${stack.region}:${stack.account}:${resource}:${resourceName}`
  return { machineArn: arn('stateMachine', name), executionsArn: arn('execution', `${name}:*`) }
}

interface Made extends Pick<Subject, 'machineArn' | 'executionsArn'> {
  readonly bucket: s3.IBucket
  readonly table: dynamodb.ITable
}

function subjectOf(
  { partition, region, account }: Stack,
  props: ExactlyOncePipelineProps,
  description: Description,
  made: Made,
): Omit<Subject, 'logGroupArn' | 'tracing'> {
  const { bucket, table, machineArn, executionsArn } = made
  return {
    bucketArn: bucket.bucketArn,
    tableArn: table.tableArn,
    machineArn,
    executionsArn,
    home: { partition, region, account },
    stageName: props.stageName,
    description,
    source: props.source,
    mapped: props.trigger !== 'schedule',
    intake: props.intake ?? 'brokers',
    workflow: props.workflow ?? 'standard',
    inVpc: inVpcOf(props, description),
  }
}

/** Sinks that are services of AWS, reached from anywhere. */
const publicSinks: ReadonlySet<string> = new Set(['console', 'delta', 'dynamodb'])

/** With intake: event only what reaches brokers or sinks need be where they are. */
function inVpcOf(
  { source: { vpc }, intake, sinkNetwork }: ExactlyOncePipelineProps,
  { sinks }: Description,
): Subject['inVpc'] {
  if (vpc === undefined) return () => false
  if (intake !== 'event') return () => true
  const network = sinkNetwork ?? (sinks.every(({ type }) => publicSinks.has(type)) ? 'public' : 'vpc')
  return (name) => name === 'recover' || name === 'doctor' || (network === 'vpc' && opensSinks.has(name))
}
