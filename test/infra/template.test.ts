import { AwsSolutionsChecks } from 'cdk-nag'
import { describe, expect, test } from 'vitest'
import { wildcards } from '../../infra/functions.ts'
import { describePipeline } from '../../infra/topology.ts'
import { machine, type StepName, stepNames } from '../../lib/epoch/machine.ts'
import { clusterArn, deploy, entry, policyOf, type Resource, shown } from './deployment.ts'

const deployment = deploy()
const { all } = deployment

const one = (type: string): Resource => Object.values(all(type))[0]
const steps = Object.fromEntries(stepNames.map((name) => [name, name])) as Record<StepName, string>

describe('state machine', () => {
  const { settings } = describePipeline(entry)
  const { DefinitionString, StateMachineType, StateMachineName } = one('AWS::StepFunctions::StateMachine')
    .Properties as unknown as { DefinitionString: unknown; StateMachineType: string; StateMachineName: string }
  const definition = shown(DefinitionString)

  test('is the document of lib/epoch, with versions of functions as resources', () => {
    const versions = Object.keys(all('AWS::Lambda::Version'))
    const named = stepNames.map((name) => {
      const id = versions.find((version) => version.toLowerCase().includes(`functions${name}function`))
      return [name, `<${id}>`] as const
    })
    const resources = Object.fromEntries(named) as Record<StepName, string>
    expect(JSON.parse(definition)).toEqual(JSON.parse(JSON.stringify(machine({ resources, settings }))))
  })

  test('has the states that run on one machine', () => {
    const { States } = machine({ resources: steps, settings }) as { States: object }
    expect(Object.keys(JSON.parse(definition).States)).toEqual(Object.keys(States))
  })

  test('is Standard, and has stage and pipeline in its name', () => {
    expect([StateMachineType, StateMachineName]).toEqual(['STANDARD', 'pawl-test-word-count'])
  })

  test('may invoke the versions of its steps and nothing else', () => {
    const [, role] = Object.entries(all('AWS::IAM::Role')).find(([id]) => id.includes('EpochMachine'))!
    const { Policies } = role.Properties as unknown as { Policies: { PolicyDocument: { Statement: unknown[] } }[] }
    const [{ Action, Resource }] = Policies[0].PolicyDocument.Statement as { Action: string; Resource: unknown[] }[]
    expect(Action).toBe('lambda:InvokeFunction')
    expect(
      Resource.map(shown).every((resource) => /^<WordCountFunctions\w+FunctionCurrentVersion\w+>$/.test(resource)),
    ).toBe(true)
    expect(Resource.length).toBe(stepNames.length)
  })

  test('keeps old versions, for executions that began with them', () => {
    const policies = Object.values(all('AWS::Lambda::Version')).map(({ DeletionPolicy }) => DeletionPolicy)
    expect(policies).toEqual(stepNames.map(() => 'Retain'))
  })
})

/** What each function may do, by heart: a change here is a decision. */
const rights: Readonly<Record<string, readonly string[]>> = {
  Trigger: [
    'ReadLedger: dynamodb:GetItem on <table.Arn> if ForAllValues:StringEquals dynamodb:LeadingKeys PIPELINE#word-count',
    'Ring: dynamodb:UpdateItem on <table.Arn> if ForAllValues:StringEquals dynamodb:LeadingKeys PIPELINE#word-count#WAKES',
    'ReadStore: s3:GetObject on <bucket.Arn>/pipelines/word-count/*/attempts/*',
    'TellMissing: s3:ListBucket on <bucket.Arn>',
    'StartRuns: states:StartExecution on states:stateMachine:pawl-test-word-count',
    'SeeRuns: states:DescribeExecution on states:execution:pawl-test-word-count:*',
    'MappingCluster: kafka:DescribeCluster kafka:DescribeClusterV2 kafka:GetBootstrapBrokers on kafka:cluster/main',
    'Connect: kafka-cluster:Connect kafka-cluster:DescribeCluster kafka-cluster:DescribeClusterDynamicConfiguration on kafka:cluster/main',
    'ReadTopics: kafka-cluster:DescribeTopic kafka-cluster:ReadData on kafka:topic/main/lines',
    'MappingGroup: kafka-cluster:AlterGroup kafka-cluster:DescribeGroup on kafka:group/main/pawl-doorbell-test-word-count',
    'Network: ec2:CreateNetworkInterface ec2:DeleteNetworkInterface ec2:DescribeNetworkInterfaces on *',
    'MappingNetwork: ec2:DescribeSecurityGroups ec2:DescribeSubnets ec2:DescribeVpcs on *',
    'Logs: logs:CreateLogStream logs:PutLogEvents on <logs.Arn>',
  ],
  Plan: [
    'ReadLedger: dynamodb:GetItem on <table.Arn> if ForAllValues:StringEquals dynamodb:LeadingKeys PIPELINE#word-count PIPELINE#word-count#WAKES PIPELINE#word-count#HISTORY',
    'WriteLedger: dynamodb:PutItem on <table.Arn> if ForAllValues:StringEquals dynamodb:LeadingKeys PIPELINE#word-count PIPELINE#word-count#HISTORY PIPELINES',
    'Ring: dynamodb:UpdateItem on <table.Arn> if ForAllValues:StringEquals dynamodb:LeadingKeys PIPELINE#word-count#WAKES',
    'LeaveUnlessRung: dynamodb:ConditionCheckItem on <table.Arn> if ForAllValues:StringEquals dynamodb:LeadingKeys PIPELINE#word-count#WAKES',
    'ReadStore: s3:GetObject on <bucket.Arn>/pipelines/word-count/*/attempts/*',
    'TellMissing: s3:ListBucket on <bucket.Arn>',
    'CreateObjects: s3:PutObject s3:AbortMultipartUpload on <bucket.Arn>/pipelines/word-count/*/attempts/*',
    'StartRuns: states:StartExecution on states:stateMachine:pawl-test-word-count',
    'SeeRuns: states:DescribeExecution on states:execution:pawl-test-word-count:*',
    'Connect: kafka-cluster:Connect kafka-cluster:DescribeCluster kafka-cluster:DescribeClusterDynamicConfiguration on kafka:cluster/main',
    'ReadTopics: kafka-cluster:DescribeTopic kafka-cluster:ReadData on kafka:topic/main/lines',
    'SeeTargets: kafka-cluster:DescribeTopic on kafka:topic/main/word-counts',
    'MakeControl: kafka-cluster:AlterTopic kafka-cluster:CreateTopic kafka-cluster:DescribeTopicDynamicConfiguration on kafka:topic/main/pawl-control-test-word--count-word--counts',
    'Markers: kafka-cluster:DescribeTopic kafka-cluster:ReadData kafka-cluster:WriteData on kafka:topic/main/pawl-control-test-word--count-word--counts',
    'Transactions: kafka-cluster:AlterTransactionalId kafka-cluster:DescribeTransactionalId on kafka:transactional-id/main/pawl-test-word--count-word--counts-0',
    'Idempotence: kafka-cluster:WriteDataIdempotently on kafka:cluster/main',
    'Network: ec2:CreateNetworkInterface ec2:DeleteNetworkInterface ec2:DescribeNetworkInterfaces on *',
    'Logs: logs:CreateLogStream logs:PutLogEvents on <logs.Arn>',
  ],
  Operate: [
    'ReadLedger: dynamodb:GetItem on <table.Arn> if ForAllValues:StringEquals dynamodb:LeadingKeys PIPELINE#word-count',
    'WriteLedger: dynamodb:PutItem on <table.Arn> if ForAllValues:StringEquals dynamodb:LeadingKeys PIPELINE#word-count',
    'ReadStore: s3:GetObject on <bucket.Arn>/pipelines/word-count/*/attempts/*',
    'TellMissing: s3:ListBucket on <bucket.Arn>',
    'CreateObjects: s3:PutObject s3:AbortMultipartUpload on <bucket.Arn>/pipelines/word-count/*/attempts/*',
    'Connect: kafka-cluster:Connect kafka-cluster:DescribeCluster kafka-cluster:DescribeClusterDynamicConfiguration on kafka:cluster/main',
    'ReadTopics: kafka-cluster:DescribeTopic kafka-cluster:ReadData on kafka:topic/main/lines',
    'SeeTargets: kafka-cluster:DescribeTopic on kafka:topic/main/word-counts',
    'Network: ec2:CreateNetworkInterface ec2:DeleteNetworkInterface ec2:DescribeNetworkInterfaces on *',
    'Logs: logs:CreateLogStream logs:PutLogEvents on <logs.Arn>',
  ],
  Precommit: [
    'ReadLedger: dynamodb:GetItem on <table.Arn> if ForAllValues:StringEquals dynamodb:LeadingKeys PIPELINE#word-count',
    'WriteLedger: dynamodb:PutItem on <table.Arn> if ForAllValues:StringEquals dynamodb:LeadingKeys PIPELINE#word-count',
    'ReadStore: s3:GetObject on <bucket.Arn>/pipelines/word-count/*/attempts/*',
    'TellMissing: s3:ListBucket on <bucket.Arn>',
    'CreateObjects: s3:PutObject s3:AbortMultipartUpload on <bucket.Arn>/pipelines/word-count/*/attempts/*',
    'Network: ec2:CreateNetworkInterface ec2:DeleteNetworkInterface ec2:DescribeNetworkInterfaces on *',
    'Logs: logs:CreateLogStream logs:PutLogEvents on <logs.Arn>',
  ],
  Commit: [
    'ReadLedger: dynamodb:GetItem on <table.Arn> if ForAllValues:StringEquals dynamodb:LeadingKeys PIPELINE#word-count PIPELINE#word-count#HISTORY',
    'WriteLedger: dynamodb:PutItem on <table.Arn> if ForAllValues:StringEquals dynamodb:LeadingKeys PIPELINE#word-count PIPELINE#word-count#HISTORY',
    'ReadStore: s3:GetObject on <bucket.Arn>/pipelines/word-count/*/attempts/*',
    'TellMissing: s3:ListBucket on <bucket.Arn>',
    'Network: ec2:CreateNetworkInterface ec2:DeleteNetworkInterface ec2:DescribeNetworkInterfaces on *',
    'Logs: logs:CreateLogStream logs:PutLogEvents on <logs.Arn>',
  ],
  Promote: [
    'ReadLedger: dynamodb:GetItem on <table.Arn> if ForAllValues:StringEquals dynamodb:LeadingKeys PIPELINE#word-count PIPELINE#word-count#HISTORY',
    'WriteLedger: dynamodb:PutItem on <table.Arn> if ForAllValues:StringEquals dynamodb:LeadingKeys PIPELINE#word-count',
    'ReadStore: s3:GetObject on <bucket.Arn>/pipelines/word-count/*/attempts/*',
    'TellMissing: s3:ListBucket on <bucket.Arn>',
    'Connect: kafka-cluster:Connect kafka-cluster:DescribeCluster kafka-cluster:DescribeClusterDynamicConfiguration on kafka:cluster/main',
    'SeeTargets: kafka-cluster:DescribeTopic on kafka:topic/main/word-counts',
    'Markers: kafka-cluster:DescribeTopic kafka-cluster:ReadData kafka-cluster:WriteData on kafka:topic/main/pawl-control-test-word--count-word--counts',
    'Transactions: kafka-cluster:AlterTransactionalId kafka-cluster:DescribeTransactionalId on kafka:transactional-id/main/pawl-test-word--count-word--counts-0',
    'Idempotence: kafka-cluster:WriteDataIdempotently on kafka:cluster/main',
    'WriteTopics: kafka-cluster:WriteData on kafka:topic/main/word-counts',
    'Network: ec2:CreateNetworkInterface ec2:DeleteNetworkInterface ec2:DescribeNetworkInterfaces on *',
    'Logs: logs:CreateLogStream logs:PutLogEvents on <logs.Arn>',
  ],
  Finalize: [
    'ReadLedger: dynamodb:GetItem on <table.Arn> if ForAllValues:StringEquals dynamodb:LeadingKeys PIPELINE#word-count PIPELINE#word-count#HISTORY',
    'WriteLedger: dynamodb:PutItem on <table.Arn> if ForAllValues:StringEquals dynamodb:LeadingKeys PIPELINE#word-count',
    'ReadStore: s3:GetObject on <bucket.Arn>/pipelines/word-count/*/attempts/*',
    'TellMissing: s3:ListBucket on <bucket.Arn>',
    'DeleteObjects: s3:DeleteObject on <bucket.Arn>/pipelines/word-count/*/attempts/*',
    'Connect: kafka-cluster:Connect kafka-cluster:DescribeCluster kafka-cluster:DescribeClusterDynamicConfiguration on kafka:cluster/main',
    'ReadTopics: kafka-cluster:DescribeTopic kafka-cluster:ReadData on kafka:topic/main/lines',
    'SeeTargets: kafka-cluster:DescribeTopic on kafka:topic/main/word-counts',
    'Network: ec2:CreateNetworkInterface ec2:DeleteNetworkInterface ec2:DescribeNetworkInterfaces on *',
    'Logs: logs:CreateLogStream logs:PutLogEvents on <logs.Arn>',
  ],
  Abort: [
    'ReadLedger: dynamodb:GetItem on <table.Arn> if ForAllValues:StringEquals dynamodb:LeadingKeys PIPELINE#word-count',
    'WriteLedger: dynamodb:PutItem on <table.Arn> if ForAllValues:StringEquals dynamodb:LeadingKeys PIPELINE#word-count',
    'ReadStore: s3:GetObject on <bucket.Arn>/pipelines/word-count/*/attempts/*',
    'TellMissing: s3:ListBucket on <bucket.Arn>',
    'DeleteObjects: s3:DeleteObject on <bucket.Arn>/pipelines/word-count/*/attempts/*',
    'Connect: kafka-cluster:Connect kafka-cluster:DescribeCluster kafka-cluster:DescribeClusterDynamicConfiguration on kafka:cluster/main',
    'SeeTargets: kafka-cluster:DescribeTopic on kafka:topic/main/word-counts',
    'Network: ec2:CreateNetworkInterface ec2:DeleteNetworkInterface ec2:DescribeNetworkInterfaces on *',
    'Logs: logs:CreateLogStream logs:PutLogEvents on <logs.Arn>',
  ],
  Collect: [
    'ReadLedger: dynamodb:GetItem on <table.Arn> if ForAllValues:StringEquals dynamodb:LeadingKeys PIPELINE#word-count PIPELINE#word-count#HISTORY',
    'WriteLedger: dynamodb:PutItem on <table.Arn> if ForAllValues:StringEquals dynamodb:LeadingKeys PIPELINE#word-count',
    'ReadStore: s3:GetObject on <bucket.Arn>/pipelines/word-count/*/attempts/*',
    'TellMissing: s3:ListBucket on <bucket.Arn>',
    'DeleteObjects: s3:DeleteObject on <bucket.Arn>/pipelines/word-count/*/attempts/*',
    'Connect: kafka-cluster:Connect kafka-cluster:DescribeCluster kafka-cluster:DescribeClusterDynamicConfiguration on kafka:cluster/main',
    'SeeTargets: kafka-cluster:DescribeTopic on kafka:topic/main/word-counts',
    'Network: ec2:CreateNetworkInterface ec2:DeleteNetworkInterface ec2:DescribeNetworkInterfaces on *',
    'Logs: logs:CreateLogStream logs:PutLogEvents on <logs.Arn>',
  ],
  Doctor: [
    'ReadLedger: dynamodb:GetItem on <table.Arn> if ForAllValues:StringEquals dynamodb:LeadingKeys PIPELINE#word-count',
    'ReadStore: s3:GetObject on <bucket.Arn>/pipelines/word-count/*/attempts/*',
    'TellMissing: s3:ListBucket on <bucket.Arn>',
    'SeeMachine: states:DescribeStateMachine on states:stateMachine:pawl-test-word-count',
    'SeeLambda: lambda:GetAccountSettings lambda:ListEventSourceMappings on *',
    'Connect: kafka-cluster:Connect kafka-cluster:DescribeCluster kafka-cluster:DescribeClusterDynamicConfiguration on kafka:cluster/main',
    'ReadTopics: kafka-cluster:DescribeTopic kafka-cluster:ReadData on kafka:topic/main/lines',
    'SeeTargets: kafka-cluster:DescribeTopic on kafka:topic/main/word-counts',
    'SeeControl: kafka-cluster:DescribeTopic kafka-cluster:DescribeTopicDynamicConfiguration kafka-cluster:ReadData on kafka:topic/main/pawl-control-test-word--count-word--counts',
    'SeeSettings: kafka-cluster:DescribeTopicDynamicConfiguration on kafka:topic/main/lines',
    'Network: ec2:CreateNetworkInterface ec2:DeleteNetworkInterface ec2:DescribeNetworkInterfaces on *',
    'Logs: logs:CreateLogStream logs:PutLogEvents on <logs.Arn>',
  ],
}

describe('roles', () => {
  test.each(Object.keys(rights))('the role of %s allows what its duty needs and nothing else', (name) => {
    expect(policyOf(deployment, name)).toEqual(rights[name])
  })

  test('each function has a role of its own', () => {
    const functions = Object.values(all('AWS::Lambda::Function')).map(
      ({ Properties }) => Properties as Readonly<Record<string, unknown>>,
    )
    const roles = functions.map(({ Role }) => shown(Role))
    expect(new Set(roles).size).toBe(roles.length)
  })

  test('no right has a star without a reason', () => {
    const starred = Object.values(rights).flatMap((lines) =>
      lines.filter((line) => line.split(' on ')[1].includes('*')).map((line) => line.split(':')[0]),
    )
    expect(starred.filter((sid) => wildcards[sid] === undefined)).toEqual([])
    const elsewhere = (sid: string) => sid.endsWith('Intake')
    expect(Object.keys(wildcards).filter((sid) => !starred.includes(sid) && !elsewhere(sid))).toEqual(['Trace'])
  })

  test('no managed policy is attached to a role of the pipeline', () => {
    const managed = Object.entries(all('AWS::IAM::Role')).filter(
      ([id, { Properties }]) => id.startsWith('WordCount') && 'ManagedPolicyArns' in Properties,
    )
    expect(managed).toEqual([])
  })
})

describe('storage', () => {
  const bucket = one('AWS::S3::Bucket')
  const table = one('AWS::DynamoDB::Table')

  test('bucket and table stay when the stack goes', () => {
    const policies = [bucket, table].flatMap(({ DeletionPolicy, UpdateReplacePolicy }) => [
      DeletionPolicy,
      UpdateReplacePolicy,
    ])
    expect(policies).toEqual(['Retain', 'Retain', 'Retain', 'Retain'])
  })

  test('no rule of the bucket expires anything', () => {
    const { LifecycleConfiguration } = bucket.Properties as unknown as { LifecycleConfiguration: unknown }
    expect(LifecycleConfiguration).toEqual({
      Rules: [{ Id: 'forget-uploads', Status: 'Enabled', AbortIncompleteMultipartUpload: { DaysAfterInitiation: 2 } }],
    })
  })

  test('the bucket is encrypted and closed to the public', () => {
    expect(bucket.Properties).toMatchObject({
      BucketEncryption: {
        ServerSideEncryptionConfiguration: [{ ServerSideEncryptionByDefault: { SSEAlgorithm: 'AES256' } }],
      },
      PublicAccessBlockConfiguration: {
        BlockPublicAcls: true,
        BlockPublicPolicy: true,
        IgnorePublicAcls: true,
        RestrictPublicBuckets: true,
      },
    })
  })

  test('the bucket refuses plain connections, and writes that could replace an object', () => {
    const { PolicyDocument } = one('AWS::S3::BucketPolicy').Properties as unknown as {
      PolicyDocument: { Statement: { Effect: string; Action: string; Condition: unknown }[] }
    }
    expect(PolicyDocument.Statement.map(({ Effect, Action, Condition }) => [Effect, Action, Condition])).toEqual([
      ['Deny', 's3:*', { Bool: { 'aws:SecureTransport': 'false' } }],
      ['Deny', 's3:*', { NumericLessThan: { 's3:TlsVersion': 1.2 } }],
      [
        'Deny',
        's3:PutObject',
        { Null: { 's3:if-none-match': 'true' }, Bool: { 's3:ObjectCreationOperation': 'true' } },
      ],
    ])
  })

  test('the table is paid by request, restorable to any point in time, with the keys of the ledger', () => {
    expect(table.Properties).toMatchObject({
      BillingMode: 'PAY_PER_REQUEST',
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
      KeySchema: [
        { AttributeName: 'pk', KeyType: 'HASH' },
        { AttributeName: 'sk', KeyType: 'RANGE' },
      ],
    })
  })
})

describe('functions', () => {
  const functions = Object.entries(all('AWS::Lambda::Function')).filter(([id]) => id.startsWith('WordCount'))

  test('run on nodejs24.x in the VPC, with a log group that forgets', () => {
    for (const [, { Properties }] of functions) {
      expect(Properties).toMatchObject({
        Runtime: 'nodejs24.x',
        VpcConfig: { SecurityGroupIds: ['sg-0123456789abcdef0'] },
      })
      expect(Properties).toHaveProperty('LoggingConfig')
    }
    const retention = Object.values(all('AWS::Logs::LogGroup')).map(({ Properties }) => Properties)
    expect(retention.every((properties) => (properties as { RetentionInDays?: number }).RetentionInDays === 30)).toBe(
      true,
    )
    expect(retention.length).toBe(functions.length)
  })

  test('only plan and trigger know the state machine', () => {
    const knowing = functions.filter(([, { Properties }]) => {
      const { Environment } = Properties as unknown as { Environment: { Variables: object } }
      return 'PAWL_STATE_MACHINE' in Environment.Variables
    })
    expect(knowing.map(([id]) => /Functions(\w+?)Function/.exec(id)?.[1]).sort()).toEqual(['Plan', 'Trigger'])
  })

  test('outlive the step that the machine gives them', () => {
    const timeouts = functions.map(([id, { Properties }]) => {
      const { Timeout } = Properties as unknown as { Timeout: number }
      return [/Functions(\w+?)Function/.exec(id)?.[1], Timeout]
    })
    const others = ['Abort', 'Collect', 'Commit', 'Doctor', 'Finalize', 'Plan', 'Precommit', 'Promote', 'Trigger']
    expect(Object.fromEntries(timeouts)).toEqual({
      Operate: 65,
      ...Object.fromEntries(others.map((name) => [name, 79])),
    })
  })
})

describe('trigger', () => {
  test('one mapping a source topic rings, from the end of the topic, in a group of its own', () => {
    expect(one('AWS::Lambda::EventSourceMapping').Properties).toMatchObject({
      EventSourceArn: clusterArn,
      Topics: ['lines'],
      StartingPosition: 'LATEST',
      MaximumBatchingWindowInSeconds: 1,
      AmazonManagedKafkaEventSourceConfig: { ConsumerGroupId: 'pawl-doorbell-test-word-count' },
    })
  })

  test('the schedule ticks, and executions that die ring', () => {
    const rules = Object.values(all('AWS::Events::Rule')).map(
      ({ Properties }) => Properties as Readonly<Record<string, unknown>>,
    )
    expect(rules.map(({ ScheduleExpression }) => ScheduleExpression)).toEqual([
      'rate(1 minute)',
      undefined,
      'rate(1 hour)',
    ])
    const { EventPattern } = rules[1] as { EventPattern: { detail: { status: string[]; stateMachineArn: unknown[] } } }
    expect(EventPattern.detail.status).toEqual(['FAILED', 'TIMED_OUT', 'ABORTED'])
    expect(shown(EventPattern.detail.stateMachineArn[0])).toBe('states:stateMachine:pawl-test-word-count')
  })
})

test('the endpoints that a VPC without a NAT needs are made', () => {
  const endpoints = Object.values(all('AWS::EC2::VPCEndpoint')).map(({ Properties }) =>
    shown((Properties as Readonly<Record<string, unknown>>).ServiceName)
      .split('.')
      .at(-1),
  )
  expect(endpoints.sort()).toEqual(['dynamodb', 'lambda', 's3', 'states', 'sts'])
})

test('cdk-nag finds nothing that has no reason', () => {
  const { violations } = new AwsSolutionsChecks(deployment.app).validateScope(deployment.app)
  expect(violations.map(({ ruleName, violatingResources }) => [ruleName, violatingResources[0].constructPath])).toEqual(
    [],
  )
})
