import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AwsSolutionsChecks } from 'cdk-nag'
import { afterAll, describe, expect, test } from 'vitest'
import { clusterArn, type Deployment, deploy, networkOf, policyOf } from './deployment.ts'

// Inside the repository, so that `pawl` is found.
const place = mkdtempSync(join(import.meta.dirname, 'intake-'))
afterAll(() => rmSync(place, { recursive: true }))

/** A pipeline whose only sink is of a type that synthesis knows by name. */
function pipelineTo(type: string): string {
  const file = join(place, `to-${type}.ts`)
  const sink = `{ kind: 'sink', type: '${type}', guarantee: 'exactly-once', lanes: 1, open: async () => { throw new Error() } }`
  const source = "topic('lines', { value: text(), isolation: 'read_uncommitted' })"
  const text = `import { pipeline, text, topic } from 'pawl'\nexport default pipeline('p').from(${source}).to('out', ${sink})\n`
  writeFileSync(file, text)
  return file
}

const eventDeployment = (entry: string) =>
  deploy((stack) => ({
    entry,
    intake: 'event',
    vpcEndpoints: 'create',
    source: { clusterArn, ...networkOf(stack), authentication: { type: 'iam' } },
  }))

/** Names of the functions that have a network of their own. */
function inVpc(deployment: Deployment): string[] {
  const found = Object.entries(deployment.all('AWS::Lambda::Function'))
  return found.flatMap(([id, { Properties }]) => {
    const [, name] = /Functions(\w+?)Function/.exec(id) ?? []
    return name !== undefined && 'VpcConfig' in Properties ? [name] : []
  })
}

const endpoints = ({ all }: Deployment) =>
  Object.values(all('AWS::EC2::VPCEndpoint')).map(
    ({ Properties }) => JSON.stringify(Properties).match(/\.(s3|dynamodb|states|lambda|sts)"/)?.[1],
  )

describe('an intake of events with a sink that is a service', () => {
  const deployment = eventDeployment(pipelineTo('dynamodb'))

  test('only recover and the doctor are in the VPC, and only the mapping needs endpoints that cost', () => {
    expect(inVpc(deployment)).toEqual(['Doctor', 'Recover'])
    expect(endpoints(deployment).sort()).toEqual(['dynamodb', 'lambda', 's3', 'sts'])
  })

  test('operate and plan may do nothing at the brokers', () => {
    for (const name of ['Plan', 'Operate', 'Promote', 'Finalize', 'Collect', 'Abort', 'Commit', 'Precommit'])
      expect(policyOf(deployment, name).filter((line) => /kafka|ec2/.test(line))).toEqual([])
    expect(policyOf(deployment, 'Operate')).toContain('ReadIntake: s3:GetObject on <bucket.Arn>/intake/p/*')
  })

  test('the trigger lays down and deletes nothing, recover starts nothing', () => {
    expect(policyOf(deployment, 'Trigger')).toEqual([
      'ReadLedger: dynamodb:GetItem on <table.Arn> if ForAllValues:StringEquals dynamodb:LeadingKeys PIPELINE#p',
      'Ring: dynamodb:UpdateItem on <table.Arn> if ForAllValues:StringEquals dynamodb:LeadingKeys PIPELINE#p#WAKES',
      'ReadStore: s3:GetObject on <bucket.Arn>/pipelines/p/*/attempts/*',
      'TellMissing: s3:ListBucket on <bucket.Arn>',
      'ReadIntake: s3:GetObject on <bucket.Arn>/intake/p/*',
      'CreateIntake: s3:PutObject s3:AbortMultipartUpload on <bucket.Arn>/intake/p/*',
      'StartRuns: states:StartExecution on states:stateMachine:pawl-test-p',
      'SeeRuns: states:DescribeExecution on states:execution:pawl-test-p:*',
      'MappingCluster: kafka:DescribeCluster kafka:DescribeClusterV2 kafka:GetBootstrapBrokers on kafka:cluster/main',
      'Connect: kafka-cluster:Connect kafka-cluster:DescribeCluster kafka-cluster:DescribeClusterDynamicConfiguration on kafka:cluster/main',
      'ReadTopics: kafka-cluster:DescribeTopic kafka-cluster:ReadData on kafka:topic/main/lines',
      'MappingGroup: kafka-cluster:AlterGroup kafka-cluster:DescribeGroup on kafka:group/main/pawl-intake-test-p',
      'Network: ec2:CreateNetworkInterface ec2:DeleteNetworkInterface ec2:DescribeNetworkInterfaces on *',
      'MappingNetwork: ec2:DescribeSecurityGroups ec2:DescribeSubnets ec2:DescribeVpcs on *',
      'Logs: logs:CreateLogStream logs:PutLogEvents on <logs.Arn>',
    ])
    expect(policyOf(deployment, 'Recover')).toEqual([
      'ReadLedger: dynamodb:GetItem on <table.Arn> if ForAllValues:StringEquals dynamodb:LeadingKeys PIPELINE#p',
      'ReadStore: s3:GetObject on <bucket.Arn>/pipelines/p/*/attempts/*',
      'TellMissing: s3:ListBucket on <bucket.Arn>',
      'ReadIntake: s3:GetObject on <bucket.Arn>/intake/p/*',
      'CreateIntake: s3:PutObject s3:AbortMultipartUpload on <bucket.Arn>/intake/p/*',
      'DeleteIntake: s3:DeleteObject on <bucket.Arn>/intake/p/*',
      'Connect: kafka-cluster:Connect kafka-cluster:DescribeCluster kafka-cluster:DescribeClusterDynamicConfiguration on kafka:cluster/main',
      'ReadTopics: kafka-cluster:DescribeTopic kafka-cluster:ReadData on kafka:topic/main/lines',
      'Network: ec2:CreateNetworkInterface ec2:DeleteNetworkInterface ec2:DescribeNetworkInterfaces on *',
      'Logs: logs:CreateLogStream logs:PutLogEvents on <logs.Arn>',
    ])
  })

  test('the mapping takes everything from the beginning, and never discards what fails', () => {
    const [{ Properties }] = Object.values(deployment.all('AWS::Lambda::EventSourceMapping')) as unknown as [
      { Properties: Readonly<Record<string, unknown>> },
    ]
    expect(Properties).toMatchObject({
      StartingPosition: 'TRIM_HORIZON',
      Topics: ['lines'],
      AmazonManagedKafkaEventSourceConfig: { ConsumerGroupId: 'pawl-intake-test-p' },
    })
    for (const discards of ['DestinationConfig', 'MaximumRetryAttempts', 'MaximumRecordAgeInSeconds'])
      expect(Properties).not.toHaveProperty(discards)
  })

  test('the functions know of it, and recover looks as often as the schedule', () => {
    const intakes = Object.values(deployment.all('AWS::Lambda::Function')).map(
      ({ Properties }) => (Properties as never as { Environment: { Variables: Record<string, string> } }).Environment,
    )
    expect(intakes.filter((environment) => environment?.Variables.PAWL_INTAKE === 'event')).toHaveLength(11)
    const rules = Object.entries(deployment.all('AWS::Events::Rule')).filter(([id]) => id.includes('Recover'))
    expect(rules.map(([, { Properties }]) => Properties)).toEqual([
      expect.objectContaining({ ScheduleExpression: 'rate(1 minute)' }),
    ])
  })

  test('nothing is left that a security review would ask about', () => {
    const { violations } = new AwsSolutionsChecks(deployment.app).validateScope(deployment.app)
    expect(violations.map(({ ruleName }) => ruleName)).toEqual([])
  })
})

test('functions that reach a Kafka sink or a database stay in the VPC, the trigger and the others leave it', () => {
  const sinks = ['Abort', 'Collect', 'Doctor', 'Finalize', 'Operate', 'Plan', 'Promote', 'Recover']
  expect(inVpc(eventDeployment(new URL('../support/deployed-intake.ts', import.meta.url).pathname)).sort()).toEqual(
    sinks,
  )
  expect(inVpc(eventDeployment(pipelineTo('postgres'))).sort()).toEqual(sinks)
})
