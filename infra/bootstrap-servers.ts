/**
 * Bootstrap servers of an MSK cluster, looked up while the stack is deployed.
 *
 * Which of the cluster's addresses it is follows from the authentication. Brokers keep their names for life, so one
 * look at deployment is enough.
 */
import { Stack } from 'aws-cdk-lib'
import * as iam from 'aws-cdk-lib/aws-iam'
import * as cr from 'aws-cdk-lib/custom-resources'
import type { Construct } from 'constructs'
import { because } from './nag.ts'
import type { KafkaSource } from './props.ts'

const fields = {
  none: 'BootstrapBrokerString',
  tls: 'BootstrapBrokerStringTls',
  'scram-sha-512': 'BootstrapBrokerStringSaslScram',
  'scram-sha-256': 'BootstrapBrokerStringSaslScram',
  plain: 'BootstrapBrokerString',
  iam: 'BootstrapBrokerStringSaslIam',
} as const

/** The servers that were given, or a token for those that the cluster will name. */
export function bootstrapServersOf(scope: Construct, source: KafkaSource): string {
  const { bootstrapServers, clusterArn, authentication } = source
  if (bootstrapServers !== undefined || clusterArn === undefined) return bootstrapServers ?? ''
  const field = fields[authentication.type]
  const call: cr.AwsSdkCall = {
    service: 'Kafka',
    action: 'GetBootstrapBrokers',
    parameters: { ClusterArn: clusterArn },
    physicalResourceId: cr.PhysicalResourceId.of(clusterArn),
    outputPaths: [field],
  }
  const found = new cr.AwsCustomResource(scope, 'BootstrapServers', {
    onCreate: call,
    onUpdate: call,
    installLatestAwsSdk: false,
    policy: cr.AwsCustomResourcePolicy.fromStatements([
      new iam.PolicyStatement({ actions: ['kafka:GetBootstrapBrokers'], resources: [clusterArn] }),
    ]),
  })
  const provider = `AWS${cr.AwsCustomResource.PROVIDER_FUNCTION_UUID.replaceAll('-', '')}`
  because(Stack.of(scope).node.findChild(provider), {
    'AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole]':
      'The CDK makes this function, which runs while the stack is deployed and never after.',
    'AwsSolutions-L1': 'The CDK chooses the runtime of this function.',
  })
  return found.getResponseField(field)
}
