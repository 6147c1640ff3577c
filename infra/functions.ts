/**
 * The functions: one for each step, with a role, a log group and a published version each.
 *
 * The state machine calls versions, so that an epoch in flight never mixes two builds; older versions stay for
 * executions that began with them.
 */
import { Annotations, Duration, RemovalPolicy, Stack } from 'aws-cdk-lib'
import * as iam from 'aws-cdk-lib/aws-iam'
import * as lambda from 'aws-cdk-lib/aws-lambda'
import * as logs from 'aws-cdk-lib/aws-logs'
import { Construct } from 'constructs'
import type { FunctionEnvironment } from '../functions/environment.ts'
import { stepTimeoutSeconds } from '../lib/epoch/machine.ts'
import { limits } from '../lib/model/limits.ts'
import { type Bundle, bundleFunctions, operateBytesMax } from './bundle.ts'
import { type FunctionName, functionNames } from './function-names.ts'
import { because } from './nag.ts'
import type { ExactlyOncePipelineProps } from './props.ts'
import type { Subject } from './right.ts'
import { duties, rightsOf } from './rights.ts'
import { sinkWildcards } from './sink-rights.ts'
import { functionSpareMs, settingsOf } from './validate.ts'

/** What all functions are made of. */
export interface FunctionsProps {
  readonly pipeline: ExactlyOncePipelineProps
  readonly subject: Omit<Subject, 'logGroupArn' | 'tracing'>
  readonly environment: FunctionEnvironment
}

/** The functions of a deployment by name, as far as its intake needs them. */
export type MadeFunctions = Readonly<Record<Exclude<FunctionName, 'recover'>, lambda.Function>> & {
  readonly recover?: lambda.Function
}

/** The functions of a deployment, by name. */
export class Functions extends Construct {
  readonly byName: MadeFunctions

  constructor(scope: Construct, id: string, props: FunctionsProps) {
    super(scope, id)
    const bundles = bundleFunctions(props.pipeline.entry)
    const { bytes, startBytes } = bundles.operate
    const size = `operate is bundled to ${bytes} of ${operateBytesMax} bytes, ${startBytes} of them loaded at its start`
    Annotations.of(this).addInfo(size)
    const names = functionNames.filter((name) => name !== 'recover' || props.subject.intake === 'event')
    const made = names.map((name) => [name, newFunction(this, name, props, bundles[name])] as const)
    this.byName = Object.fromEntries(made) as MadeFunctions
  }
}

function newFunction(scope: Construct, name: FunctionName, props: FunctionsProps, bundle: Bundle): lambda.Function {
  const { pipeline, subject, environment } = props
  const { pipeline: pipelineId } = subject.description.topology
  const own = new Construct(scope, name[0].toUpperCase() + name.slice(1))
  const logGroup = new logs.LogGroup(own, 'Logs', {
    retention: pipeline.logRetention ?? logs.RetentionDays.ONE_MONTH,
    removalPolicy: RemovalPolicy.DESTROY,
  })
  const { tracing = false } = pipeline
  const role = newRole(own, name, { ...subject, logGroupArn: logGroup.logGroupArn, tracing })
  const { PAWL_STATE_MACHINE, ...shared } = environment
  const starts = duties[name].rings && PAWL_STATE_MACHINE !== undefined
  const { vpc, subnets, securityGroups } = pipeline.source
  const made = new lambda.Function(own, 'Function', {
    description: `pawl ${pipelineId} (${pipeline.stageName}): ${name}`,
    runtime: lambda.Runtime.NODEJS_24_X,
    architecture: lambda.Architecture.ARM_64,
    code: lambda.Code.fromAsset(bundle.directory),
    handler: `${name}.run`,
    memorySize: memoryOf(name, pipeline),
    timeout: Duration.millis(timeoutMsOf(name, props)),
    role,
    logGroup,
    environment: { ...shared, ...(starts ? { PAWL_STATE_MACHINE } : {}) },
    layers: [...(pipeline.layers ?? [])],
    ...(subject.inVpc(name) ? { vpc, securityGroups: [...(securityGroups ?? [])] } : {}),
    ...(subject.inVpc(name) && subnets !== undefined ? { vpcSubnets: subnets } : {}),
    currentVersionOptions: { removalPolicy: RemovalPolicy.RETAIN },
  })
  made.node.addDependency(role)
  // Not by the property of the construct, which would give the role a policy of its own making.
  if (pipeline.tracing) (made.node.defaultChild as lambda.CfnFunction).tracingConfig = { mode: 'Active' }
  return made
}

function newRole(scope: Construct, name: FunctionName, subject: Subject): iam.Role {
  const rights = rightsOf(name, subject)
  const statements = rights.map(
    ({ sid, actions, resources, conditions }) =>
      new iam.PolicyStatement({ sid, actions: [...actions], resources: [...resources], conditions: conditions ?? {} }),
  )
  const role = new iam.Role(scope, 'Role', {
    assumedBy: new iam.ServicePrincipal('lambda.amazonaws.com'),
    inlinePolicies: { Duties: new iam.PolicyDocument({ statements }) },
  })
  for (const { sid, resources } of rights)
    for (const resource of resources)
      if (resource.includes('*'))
        because(role, {
          [`AwsSolutions-IAM5[Resource::${shown(scope, resource)}]`]: wildcards[sid] ?? sinkWildcards[sid],
        })
  return role
}

/** Why a resource has a star in it, by the statement that has it. */
export const wildcards: Readonly<Record<string, string>> = {
  ReadStore: 'Objects of this pipeline alone; names below it are random.',
  CreateObjects: 'Objects of this pipeline alone; names below it are random, and the bucket refuses to replace one.',
  DeleteObjects: 'Objects of this pipeline alone; what may be deleted is decided by what the head reaches.',
  ReadIntake: 'Input of this pipeline alone; names below it are made of what is inside.',
  CreateIntake: 'Input of this pipeline alone; names below it are made of what is inside.',
  DeleteIntake: 'Input of this pipeline alone; what may be deleted is decided by what the head reaches.',
  SeeRuns: 'Executions of this state machine alone; their names are made as they start.',
  SeeLambda: 'Lambda knows no narrower resource for the quota and for a list of mappings.',
  Network: 'EC2 knows no narrower resource for the network interfaces of functions in a VPC.',
  Trace: 'X-Ray knows no resource for the segments of a trace.',
  MappingNetwork: 'EC2 knows no narrower resource for what a mapping looks up.',
}

/** As cdk-nag shows a resource: with references in angle brackets. */
function shown(scope: Construct, resource: string): string {
  const resolved: unknown = Stack.of(scope).resolve(resource)
  if (typeof resolved === 'string') return resolved
  const joined = (resolved as { 'Fn::Join'?: [string, unknown[]] })['Fn::Join']
  const parts: unknown[] = joined?.[1] ?? [resolved]
  return parts.map(shownPart).join('')
}

function shownPart(part: unknown): string {
  if (typeof part === 'string') return part
  const { Ref, 'Fn::GetAtt': attribute } = part as { Ref?: string; 'Fn::GetAtt'?: readonly string[] }
  return `<${attribute === undefined ? Ref : attribute.join('.')}>`
}

function memoryOf(name: FunctionName, { sizes = {} }: ExactlyOncePipelineProps): number {
  if (name === 'operate') return sizes.operateMb ?? 1769
  return name === 'promote' ? (sizes.promoteMb ?? 1024) : (sizes.otherMb ?? 512)
}

/** A little beyond the step's own limit, so that the machine ends it and knows why. */
function timeoutMsOf(name: FunctionName, { pipeline, subject }: FunctionsProps): number {
  const settings = settingsOf(subject.description, pipeline)
  const stepMs = name === 'operate' ? settings.checkpoint.timeoutMs : stepTimeoutSeconds(settings) * 1000
  const limitMs = name === 'trigger' ? limits.mappedFunctionMs : limits.functionMs
  return Math.min(limitMs, Math.ceil((stepMs + functionSpareMs) / 1000) * 1000)
}
