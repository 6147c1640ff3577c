import type { Stack } from 'aws-cdk-lib'
import { Key } from 'aws-cdk-lib/aws-kms'
import { Secret } from 'aws-cdk-lib/aws-secretsmanager'
import { AwsSolutionsChecks } from 'cdk-nag'
import { describe, expect, test } from 'vitest'
import type { FunctionEnvironment } from '../../functions/environment.ts'
import { clusterArn, type Deployment, deploy, mskInVpc, networkOf, policyOf, shown } from './deployment.ts'

const propertiesOf = (deployment: Deployment, type: string) =>
  Object.values(deployment.all(type)).map(({ Properties }) => Properties as Readonly<Record<string, unknown>>)

function environmentOf(deployment: Deployment, name: string): FunctionEnvironment {
  const [, found] = Object.entries(deployment.all('AWS::Lambda::Function')).find(([id]) =>
    id.includes(`${name}Function`),
  )!
  const { Environment } = found.Properties as unknown as { Environment: { Variables: FunctionEnvironment } }
  return Environment.Variables
}

describe('brokers of one own with SCRAM, storage of an earlier deployment', () => {
  const secretArn = 'arn:aws:secretsmanager:eu-central-1:111122223333:secret:words-AbCdEf'
  const keyArn = 'arn:aws:kms:eu-central-1:111122223333:key/0a1b2c3d-0000-4000-8000-000000000000'
  const deployment = deploy((stack: Stack) => ({
    storage: { existingBucketName: 'old-bucket', existingTableName: 'old-table' },
    checkpoint: { intervalMs: 5000 },
    source: {
      ...networkOf(stack),
      bootstrapServers: 'a:9094, b:9094',
      transactionTimeoutMs: 30_000,
      authentication: {
        type: 'scram-sha-512',
        secret: Secret.fromSecretAttributes(stack, 'Secret', {
          secretCompleteArn: secretArn,
          encryptionKey: Key.fromKeyArn(stack, 'Key', keyArn),
        }),
      },
    },
  }))

  test('the mapping has network, secret and a group of its own', () => {
    expect(propertiesOf(deployment, 'AWS::Lambda::EventSourceMapping')).toEqual([
      expect.objectContaining({
        SelfManagedEventSource: { Endpoints: { KafkaBootstrapServers: ['a:9094', 'b:9094'] } },
        SelfManagedKafkaEventSourceConfig: { ConsumerGroupId: 'pawl-doorbell-test-word-count' },
        SourceAccessConfigurations: [
          { Type: 'SASL_SCRAM_512_AUTH', URI: secretArn },
          { Type: 'VPC_SUBNET', URI: 'subnet:subnet-0123456789abcdef0' },
          { Type: 'VPC_SUBNET', URI: 'subnet:subnet-0123456789abcdef1' },
          { Type: 'VPC_SECURITY_GROUP', URI: 'security_group:sg-0123456789abcdef0' },
        ],
      }),
    ])
  })

  test('functions know the secret by its name alone, and only those that reach brokers may read it', () => {
    const { PAWL_KAFKA, PAWL_CHECKPOINT } = environmentOf(deployment, 'Operate')
    expect(JSON.parse(PAWL_KAFKA)).toEqual({
      brokers: 'a:9094, b:9094',
      authentication: { type: 'sasl', mechanism: 'scram-sha-512', secretArn },
      transactionTimeoutMs: 30_000,
    })
    expect(PAWL_CHECKPOINT).toBe('{"intervalMs":5000}')
    const reading = [
      'Trigger',
      'Plan',
      'Operate',
      'Precommit',
      'Commit',
      'Promote',
      'Finalize',
      'Abort',
      'Collect',
      'Doctor',
    ].filter((name) => policyOf(deployment, name).includes(`Secret: secretsmanager:GetSecretValue on ${secretArn}`))
    expect(reading).toEqual(['Trigger', 'Plan', 'Operate', 'Promote', 'Finalize', 'Abort', 'Collect', 'Doctor'])
    expect(policyOf(deployment, 'Promote')).toContain(`SecretKey: kms:Decrypt on ${keyArn}`)
  })

  test('bucket and table are taken up again, not made', () => {
    expect(propertiesOf(deployment, 'AWS::S3::Bucket')).toEqual([])
    expect(propertiesOf(deployment, 'AWS::DynamoDB::Table')).toEqual([])
    const { PAWL_BUCKET, PAWL_TABLE } = environmentOf(deployment, 'Commit')
    expect([PAWL_BUCKET, PAWL_TABLE]).toEqual(['old-bucket', 'old-table'])
    expect(policyOf(deployment, 'Commit')[0]).toContain(
      'on arn:<AWS::Partition>:dynamodb:<AWS::Region>:<AWS::AccountId>:table/old-table',
    )
  })

  test('endpoints are left to whoever provides them', () => {
    expect(propertiesOf(deployment, 'AWS::EC2::VPCEndpoint')).toEqual([])
  })
})

describe('runs as Express executions', () => {
  const deployment = deploy((stack) => ({ ...mskInVpc(stack), workflow: 'express' }))
  const [machine] = propertiesOf(deployment, 'AWS::StepFunctions::StateMachine')

  test('log what fails, without payloads, since they keep no history', () => {
    expect(machine).toMatchObject({
      StateMachineType: 'EXPRESS',
      LoggingConfiguration: { Level: 'ERROR', IncludeExecutionData: false, Destinations: [expect.anything()] },
    })
    expect(JSON.stringify(machine?.DefinitionString)).toContain('States.UUID()')
    const names = propertiesOf(deployment, 'AWS::Logs::LogGroup').map(({ LogGroupName }) => LogGroupName)
    expect(names.filter((name) => String(name).startsWith('/aws/vendedlogs/states/'))).toHaveLength(1)
  })

  test('are not asked how they are, and send no word when they die', () => {
    for (const name of ['Trigger', 'Plan'])
      expect(
        policyOf(deployment, name).filter((line) => /DescribeExecution|ListExecutions|StopExecution/.test(line)),
      ).toEqual([])
    const patterns = propertiesOf(deployment, 'AWS::Events::Rule').filter(
      ({ EventPattern }) => EventPattern !== undefined,
    )
    expect(patterns).toEqual([])
    expect(environmentOf(deployment, 'Plan').PAWL_WORKFLOW).toBe('express')
  })

  test('leave nothing that a security review would ask about', () => {
    const { violations } = new AwsSolutionsChecks(deployment.app).validateScope(deployment.app)
    expect(violations.map(({ ruleName }) => ruleName)).toEqual([])
  })
})

describe('MSK without a mapping', () => {
  const deployment = deploy((stack) => ({
    trigger: 'schedule',
    source: { clusterArn, ...networkOf(stack), authentication: { type: 'tls' } },
  }))

  test('only the schedule rings, and the trigger may do nothing for a mapping', () => {
    expect(propertiesOf(deployment, 'AWS::Lambda::EventSourceMapping')).toEqual([])
    expect(policyOf(deployment, 'Trigger').filter((line) => line.startsWith('Mapping'))).toEqual([])
    expect(propertiesOf(deployment, 'AWS::Events::Rule')[0].ScheduleExpression).toBe('rate(1 minute)')
  })

  test('bootstrap servers are asked of the cluster while it is deployed', () => {
    const [{ Create }] = propertiesOf(deployment, 'Custom::AWS')
    expect(JSON.parse(shown(Create))).toMatchObject({
      service: 'Kafka',
      action: 'GetBootstrapBrokers',
      parameters: { ClusterArn: 'kafka:cluster/main' },
      outputPaths: ['BootstrapBrokerStringTls'],
    })
    const kafka = JSON.stringify(environmentOf(deployment, 'Plan').PAWL_KAFKA)
    expect(kafka).toContain('BootstrapBrokerStringTls')
  })
})
