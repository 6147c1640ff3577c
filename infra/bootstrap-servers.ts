/**
 * Bootstrap servers of an MSK cluster, looked up while the stack is deployed.
 *
 * Which of the cluster's addresses it is follows from the authentication. Brokers keep their names for life, so one
 * look at deployment is enough.
 */
import * as iam from 'aws-cdk-lib/aws-iam'
import * as cr from 'aws-cdk-lib/custom-resources'
import type { Construct } from 'constructs'
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
  return found.getResponseField(field)
}
