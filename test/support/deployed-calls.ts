/**
 * What functions ask of AWS, as IAM sees it, and whether their roles allow it.
 *
 * Requests are read as they pass the proxy: action, resource and, for DynamoDB, the partition keys that a condition
 * may name. Roles are those of the stack as it was deployed, with references resolved. Sources: service authorization
 * reference of S3, DynamoDB and Step Functions; IAM policy evaluation logic for one identity policy.
 */
import { CloudFormationClient, DescribeStackResourcesCommand, GetTemplateCommand } from '@aws-sdk/client-cloudformation'
import type { EmulatorClientOptions } from './aws-emulator.ts'
import type { ProxiedCall } from './fault-proxy.ts'

/** One thing that a function wanted to do. */
export interface Ask {
  /** In small letters, as in `operate`. */
  readonly caller: string
  /** As in `s3:PutObject`. */
  readonly action: string
  readonly resource: string
  /** Partition key in DynamoDB, else null. */
  readonly leadingKey: string | null
}

/** One thing that a role allows: an action on a resource, for DynamoDB on one partition. */
export interface Grant {
  readonly caller: string
  readonly action: string
  /** With `*` as IAM means it. */
  readonly resource: string
  readonly leadingKey: string | null
}

const region = 'us-east-1'
const account = '000000000000'

/** What a request asks for; several for a transaction or a deletion of many objects. */
export function asksOf(call: ProxiedCall, body: Buffer): Ask[] {
  const { caller, operation } = call
  if (operation === '') return s3Asks(call, body)
  const input = JSON.parse(body.toString()) as Fields
  if (operation === 'StartExecution')
    return [{ caller, action: 'states:StartExecution', resource: String(input.stateMachineArn), leadingKey: null }]
  if (operation === 'DescribeExecution')
    return [{ caller, action: 'states:DescribeExecution', resource: String(input.executionArn), leadingKey: null }]
  return dynamoAsks(caller, operation, input)
}

type Fields = Readonly<Record<string, unknown>>

function s3Asks({ caller, method, path }: ProxiedCall, body: Buffer): Ask[] {
  const url = new URL(path, 'http://s3')
  const [, bucket = '', key] = /^\/([^/]+)\/?(.*)$/.exec(decodeURIComponent(url.pathname)) ?? []
  const of = (action: string, name = key ?? ''): Ask => {
    const resource = name === '' ? `arn:aws:s3:::${bucket}` : `arn:aws:s3:::${bucket}/${name}`
    return { caller, action: `s3:${action}`, resource, leadingKey: null }
  }
  const query = url.searchParams
  if (query.has('delete'))
    return [...body.toString().matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, name]) => of('DeleteObject', name))
  if (method === 'GET' && query.has('list-type')) return [of('ListBucket')]
  if (method === 'GET' || method === 'HEAD') return [of('GetObject')]
  if (method === 'DELETE') return [of(query.has('uploadId') ? 'AbortMultipartUpload' : 'DeleteObject')]
  return [of('PutObject')]
}

function dynamoAsks(caller: string, operation: string, input: Fields): Ask[] {
  const ask = (action: string, { TableName, Key, Item }: Fields): Ask => ({
    caller,
    action: `dynamodb:${action}`,
    resource: `arn:aws:dynamodb:${region}:${account}:table/${TableName}`,
    leadingKey: ((Key ?? Item) as { pk?: { S?: string } } | undefined)?.pk?.S ?? null,
  })
  if (operation !== 'TransactWriteItems') return [ask(operation, input)]
  const actions = { Put: 'PutItem', Update: 'UpdateItem', Delete: 'DeleteItem', ConditionCheck: 'ConditionCheckItem' }
  return (input.TransactItems as readonly Record<string, Fields>[]).flatMap((item) =>
    Object.entries(item).map(([kind, fields]) => ask(actions[kind as keyof typeof actions], fields)),
  )
}

/** True when one grant of the caller covers the ask. */
export function covers(grant: Grant, ask: Ask): boolean {
  if (grant.caller !== ask.caller || grant.action !== ask.action) return false
  const pattern = grant.resource
    .split('*')
    .map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&'))
    .join('.*')
  const isResource = new RegExp(`^${pattern}$`).test(ask.resource)
  return isResource && (grant.leadingKey === null || grant.leadingKey === ask.leadingKey)
}

/** All that the roles of a stack's functions allow. Throws at a statement that it cannot read. */
export async function grantsOf(client: EmulatorClientOptions, stack: string): Promise<Grant[]> {
  const formation = new CloudFormationClient(client)
  const { TemplateBody = '{}' } = await formation.send(new GetTemplateCommand({ StackName: stack }))
  const { StackResources = [] } = await formation.send(new DescribeStackResourcesCommand({ StackName: stack }))
  formation.destroy()
  const physical = new Map(
    StackResources.map(({ LogicalResourceId = '', PhysicalResourceId = '' }) => [
      LogicalResourceId,
      PhysicalResourceId,
    ]),
  )
  const { Resources } = JSON.parse(TemplateBody) as { Resources: Record<string, Resource> }
  const resolver: Resolver = (value) => resolved(value, Resources, physical)
  return Object.entries(Resources).flatMap(([id, resource]) => {
    const caller = /Functions([A-Z][a-z]+)Role/.exec(id)?.[1]?.toLowerCase()
    return resource.Type === 'AWS::IAM::Role' && caller !== undefined ? grantsOfRole(caller, resource, resolver) : []
  })
}

interface Resource {
  readonly Type: string
  readonly Properties: {
    readonly Policies?: readonly { readonly PolicyDocument: { readonly Statement: readonly Statement[] } }[]
    readonly ManagedPolicyArns?: readonly unknown[]
  }
}

interface Statement {
  readonly Effect: string
  readonly Action: string | readonly string[]
  readonly Resource: unknown
  readonly Condition?: Readonly<Record<string, Readonly<Record<string, string | readonly string[]>>>>
}

type Resolver = (value: unknown) => string

function grantsOfRole(caller: string, { Properties }: Resource, resolve: Resolver): Grant[] {
  const { Policies = [], ManagedPolicyArns = [] } = Properties
  if (ManagedPolicyArns.length > 0) throw new Error(`the role of ${caller} has managed policies`)
  return Policies.flatMap(({ PolicyDocument }) =>
    PolicyDocument.Statement.flatMap(({ Effect, Action, Resource, Condition = {} }) => {
      const { 'ForAllValues:StringEquals': keys = {}, ...others } = Condition
      if (Effect !== 'Allow' || Object.keys(others).length > 0)
        throw new Error(`a statement of ${caller} is not read here`)
      const leadingKeys = keys['dynamodb:LeadingKeys'] === undefined ? [null] : [keys['dynamodb:LeadingKeys']].flat()
      return [Action]
        .flat()
        .flatMap((action) =>
          [Resource]
            .flat()
            .flatMap((resource) =>
              leadingKeys.map(
                (leadingKey): Grant => ({ caller, action: String(action), resource: resolve(resource), leadingKey }),
              ),
            ),
        )
    }),
  )
}

/** A value of the template, with what CloudFormation would put in its place. */
function resolved(value: unknown, resources: Record<string, Resource>, physical: ReadonlyMap<string, string>): string {
  if (typeof value === 'string') return value
  const { Ref, 'Fn::GetAtt': attribute, 'Fn::Join': join, 'Fn::Sub': sub } = value as Record<string, unknown>
  const pseudo: Record<string, string> = { 'AWS::Partition': 'aws', 'AWS::Region': region, 'AWS::AccountId': account }
  if (typeof Ref === 'string') return pseudo[Ref] ?? physical.get(Ref) ?? Ref
  if (Array.isArray(join)) {
    const [by, parts] = join as [string, unknown[]]
    return parts.map((part) => resolved(part, resources, physical)).join(by)
  }
  if (Array.isArray(attribute)) return arnOf(resources[attribute[0]]?.Type ?? '', physical.get(attribute[0]) ?? '')
  throw new Error(`${JSON.stringify(value ?? sub)} is not read here`)
}

function arnOf(type: string, id: string): string {
  if (id.startsWith('arn:')) return id
  const prefixes: Record<string, string> = {
    'AWS::S3::Bucket': 'arn:aws:s3:::',
    'AWS::DynamoDB::Table': `arn:aws:dynamodb:${region}:${account}:table/`,
    'AWS::Logs::LogGroup': `arn:aws:logs:${region}:${account}:log-group:`,
  }
  const prefix = prefixes[type]
  if (prefix === undefined) throw new Error(`the ARN of a ${type} is not known here`)
  return prefix + id
}
