/**
 * A deployment to look at: word count on an MSK cluster with IAM, in a VPC, with everything that can be switched on.
 *
 * Synthesised once for each test file that asks. Policies are shown as text, one line a statement, with the names of
 * this deployment shortened, so that a test can know them by heart.
 */
import { App, Stack } from 'aws-cdk-lib'
import { Template } from 'aws-cdk-lib/assertions'
import * as ec2 from 'aws-cdk-lib/aws-ec2'
import { ExactlyOncePipeline, type ExactlyOncePipelineProps } from '../../infra/exactly-once-pipeline.ts'

export const entry = new URL('../../examples/word-count/pipeline.ts', import.meta.url).pathname
export const clusterArn = 'arn:aws:kafka:eu-central-1:111122223333:cluster/main/0a1b2c3d-0000-4000-8000-000000000000-1'

/** CloudFormation as far as the tests look into it. */
export interface Resource {
  readonly Type: string
  readonly Properties: Readonly<Record<string, never>>
  readonly DeletionPolicy?: string
  readonly UpdateReplacePolicy?: string
}

export interface Deployment {
  readonly app: App
  readonly stack: Stack
  readonly pipeline: ExactlyOncePipeline
  readonly template: Template
  /** Resources of a type, by logical id. */
  all(type: string): Readonly<Record<string, Resource>>
}

export function deploy(props: (stack: Stack) => Partial<ExactlyOncePipelineProps> = mskInVpc): Deployment {
  const app = new App()
  const stack = new Stack(app, 'Words')
  const given = {
    entry,
    stageName: 'test',
    source: { bootstrapServers: 'a:9092,b:9092', authentication: { type: 'none' } },
  }
  const pipeline = new ExactlyOncePipeline(stack, 'WordCount', {
    ...given,
    ...props(stack),
  } as ExactlyOncePipelineProps)
  const template = Template.fromStack(stack)
  return { app, stack, pipeline, template, all: (type) => template.findResources(type) as Record<string, Resource> }
}

export function networkOf(stack: Stack) {
  const vpc = ec2.Vpc.fromVpcAttributes(stack, 'Vpc', {
    vpcId: 'vpc-0123456789abcdef0',
    vpcCidrBlock: '10.0.0.0/16',
    availabilityZones: ['eu-central-1a', 'eu-central-1b'],
    privateSubnetIds: ['subnet-0123456789abcdef0', 'subnet-0123456789abcdef1'],
    privateSubnetRouteTableIds: ['rtb-0123456789abcdef0', 'rtb-0123456789abcdef1'],
  })
  return { vpc, securityGroups: [ec2.SecurityGroup.fromSecurityGroupId(stack, 'Group', 'sg-0123456789abcdef0')] }
}

export function mskInVpc(stack: Stack): Partial<ExactlyOncePipelineProps> {
  return { vpcEndpoints: 'create', source: { clusterArn, ...networkOf(stack), authentication: { type: 'iam' } } }
}

interface Statement {
  readonly Sid: string
  readonly Effect: string
  readonly Action: string | readonly string[]
  readonly Resource: unknown
  readonly Condition?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

/** Statements of the role of a function, sorted as they stand there. */
export function policyOf(deployment: Deployment, name: string): string[] {
  const found = Object.entries(deployment.all('AWS::IAM::Role')).find(([id]) => id.includes(`Functions${name}Role`))
  const { Policies } = found![1].Properties as unknown as { Policies: { PolicyDocument: { Statement: Statement[] } }[] }
  return Policies.flatMap(({ PolicyDocument }) => PolicyDocument.Statement).map(shownStatement)
}

function shownStatement({ Sid, Effect, Action, Resource: resource, Condition = {} }: Statement): string {
  const conditions = Object.entries(Condition).flatMap(([operator, keys]) =>
    Object.entries(keys).map(([key, values]) => ` if ${operator} ${key} ${[values].flat().join(' ')}`),
  )
  const allowed = Effect === 'Allow' ? '' : `${Effect} `
  const resources = [resource].flat().map(shown)
  return `${allowed}${Sid}: ${[Action].flat().join(' ')} on ${resources.join(' ')}${conditions.join('')}`
}

const shortNames: readonly (readonly [RegExp, string])[] = [
  [/WordCountStorageBucket\w+/g, 'bucket'],
  [/WordCountStorageTable\w+/g, 'table'],
  [/WordCountFunctions(\w+?)Logs\w{8}/g, 'logs'],
  [/arn:<AWS::Partition>:states:<AWS::Region>:<AWS::AccountId>:/g, 'states:'],
  [/arn:aws:kafka:eu-central-1:111122223333:/g, 'kafka:'],
  [/\/main\/0a1b2c3d-0000-4000-8000-000000000000-1/g, '/main'],
]

/** A resource with its references in angle brackets. */
export function shown(resource: unknown): string {
  const text = textOf(resource)
  return shortNames.reduce((shortened, [name, short]) => shortened.replaceAll(name, short), text)
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  const { Ref, 'Fn::GetAtt': attribute, 'Fn::Join': join } = value as Record<string, never>
  if (join !== undefined) return (join as [string, unknown[]])[1].map(textOf).join('')
  return `<${attribute === undefined ? Ref : (attribute as string[]).join('.')}>`
}
