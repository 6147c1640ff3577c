/**
 * The quick start: everything for a first hour in an empty account, in one stack that can be thrown away.
 *
 * A network without a way out, the smallest MSK cluster, topics, a word count, and a function that feeds it, since
 * nobody else is inside the network. With `bootstrapServers` brokers that are there are used instead. What it costs
 * stands still while nobody feeds it: brokers and endpoints, by the hour.
 */
import { CfnOutput, Duration, Stack, type StackProps } from 'aws-cdk-lib'
import * as ec2 from 'aws-cdk-lib/aws-ec2'
import * as iam from 'aws-cdk-lib/aws-iam'
import * as lambda from 'aws-cdk-lib/aws-lambda'
import * as msk from 'aws-cdk-lib/aws-msk'
import * as triggers from 'aws-cdk-lib/triggers'
import type { Construct } from 'constructs'
import { bundleFunction } from './bundle.ts'
import { ExactlyOncePipeline } from './exactly-once-pipeline.ts'
import { kafkaEnvironment } from './kafka-environment.ts'
import { kafkaArn } from './kafka-rights.ts'
import type { KafkaSource } from './props.ts'

/** What a quick start is made of. */
export interface QuickStartProps extends StackProps {
  /** A pipeline that reads the topic `lines` and writes `word-counts`. */
  readonly entry: string
  readonly stageName: string
  /** Brokers that are there and reached without credentials; absent: a cluster of its own. */
  readonly bootstrapServers?: string
}

/** Source and sink of the word count. */
const topics = ['lines', 'word-counts']
const zones = 2

/** The smallest cluster that has IAM: two brokers of 2 vCPU and 2 GiB, 10 GiB each. */
export const brokers = { instanceType: 'kafka.t3.small', kafkaVersion: '3.8.x', volumeGb: 10 }

/** The stack. Outputs name the pipeline's parts, and `FeederName`. */
export class QuickStart extends Stack {
  readonly pipeline: ExactlyOncePipeline
  readonly feeder: lambda.Function

  constructor(scope: Construct, id: string, props: QuickStartProps) {
    super(scope, id, { description: 'A first hour with Pawl: delete it when it is over', ...props })
    const source: KafkaSource =
      props.bootstrapServers === undefined
        ? newCluster(this)
        : { bootstrapServers: props.bootstrapServers, authentication: { type: 'none' } }
    const own = props.bootstrapServers === undefined
    this.pipeline = new ExactlyOncePipeline(this, 'WordCount', {
      entry: props.entry,
      stageName: props.stageName,
      source,
      ...(own ? { vpcEndpoints: 'create' as const } : {}),
    })
    this.feeder = newFeeder(this, source)
    // The mapping looks for its topics as soon as it is made.
    new triggers.Trigger(this, 'Topics', {
      handler: this.feeder,
      timeout: Duration.minutes(5),
      executeBefore: [this.pipeline],
    })
    new CfnOutput(this, 'FeederName', { value: this.feeder.functionName })
  }
}

function newCluster(scope: Construct): KafkaSource {
  const vpc = new ec2.Vpc(scope, 'Vpc', {
    maxAzs: zones,
    natGateways: 0,
    subnetConfiguration: [{ name: 'inside', subnetType: ec2.SubnetType.PRIVATE_ISOLATED, cidrMask: 24 }],
  })
  const group = new ec2.SecurityGroup(scope, 'Kafka', { vpc, description: 'Brokers and functions of the quick start' })
  group.addIngressRule(group, ec2.Port.tcp(9098), 'Kafka with IAM')
  const cluster = new msk.CfnCluster(scope, 'Cluster', {
    clusterName: `${Stack.of(scope).stackName}-kafka`,
    kafkaVersion: brokers.kafkaVersion,
    numberOfBrokerNodes: zones,
    brokerNodeGroupInfo: {
      instanceType: brokers.instanceType,
      clientSubnets: vpc.isolatedSubnets.map(({ subnetId }) => subnetId),
      securityGroups: [group.securityGroupId],
      storageInfo: { ebsStorageInfo: { volumeSize: brokers.volumeGb } },
    },
    clientAuthentication: { sasl: { iam: { enabled: true } }, unauthenticated: { enabled: false } },
    encryptionInfo: { encryptionInTransit: { clientBroker: 'TLS', inCluster: true } },
  })
  return { clusterArn: cluster.attrArn, vpc, securityGroups: [group], authentication: { type: 'iam' } }
}

function newFeeder(scope: Construct, source: KafkaSource): lambda.Function {
  const { vpc, securityGroups = [], clusterArn } = source
  const feeder = new lambda.Function(scope, 'Feeder', {
    description: 'Makes the topics of the quick start and appends lines',
    runtime: lambda.Runtime.NODEJS_24_X,
    architecture: lambda.Architecture.ARM_64,
    code: lambda.Code.fromAsset(bundleFunction('feed')),
    handler: 'feed.run',
    memorySize: 512,
    timeout: Duration.minutes(2),
    environment: {
      PAWL_KAFKA: Stack.of(scope).toJsonString(kafkaEnvironment(scope, source)),
      FEED_TOPICS: topics.join(','),
    },
    ...(vpc === undefined ? {} : { vpc, securityGroups: [...securityGroups] }),
  })
  if (clusterArn === undefined) return feeder
  const verbs = ['Connect', 'CreateTopic', 'DescribeTopic', 'WriteData', 'WriteDataIdempotently', 'ReadData']
  feeder.addToRolePolicy(
    new iam.PolicyStatement({
      actions: verbs.map((verb) => `kafka-cluster:${verb}`),
      resources: [clusterArn, ...topics.map((topic) => kafkaArn(clusterArn, 'topic', topic))],
    }),
  )
  return feeder
}
