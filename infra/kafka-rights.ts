/**
 * What each function may do at the brokers, where their gatekeeper is IAM, and with the secret where it is not.
 *
 * Source: IAM access control of Amazon MSK. Requests and what they need: Fetch and ListOffsets ReadData and
 * DescribeTopic; Produce WriteData; transactions AlterTransactionalId and, at the cluster, WriteDataIdempotently;
 * OffsetCommit AlterGroup. Clusters without IAM have ACLs of their own, which docs/operations.md lists.
 */
import { Fn, Token } from 'aws-cdk-lib'
import { controlTopic, transactionalId } from '../lib/adapters/kafka/names.ts'
import type { FunctionName } from './function-names.ts'
import type { Right, Subject } from './right.ts'

/** Functions that open a source at the brokers, by intake. The mapping reads in the name of the trigger. */
const reads: Readonly<Record<Subject['intake'], ReadonlySet<FunctionName>>> = {
  brokers: new Set(['trigger', 'plan', 'operate', 'finalize', 'doctor']),
  event: new Set(['trigger', 'recover', 'doctor']),
}

/** Functions that open a sink. */
export const opensSinks: ReadonlySet<FunctionName> = new Set([
  'plan',
  'operate',
  'promote',
  'finalize',
  'abort',
  'collect',
  'doctor',
])

/** What IAM knows of a cluster, beside itself. */
export type KafkaResource = 'topic' | 'group' | 'transactional-id'

/** ARN of something in a cluster, whose own may be known only once the cluster is made. */
export function kafkaArn(clusterArn: string, kind: KafkaResource, id: string): string {
  if (!Token.isUnresolved(clusterArn)) return `${clusterArn.replace(':cluster/', `:${kind}/`)}/${id}`
  return `${Fn.join(`:${kind}/`, Fn.split(':cluster/', clusterArn, 2))}/${id}`
}

/** Group of the mapping, which keeps offsets of its own. An intake starts with none that a doorbell left. */
export function mappingGroup({ stageName, intake }: Pick<Subject, 'stageName' | 'intake'>, pipeline: string): string {
  return `pawl-${intake === 'event' ? 'intake' : 'doorbell'}-${stageName}-${pipeline}`
}

/** Rights at MSK, and to the secret. */
export function kafkaRights(name: FunctionName, subject: Subject): Right[] {
  const atBrokers = subject.description.sinks.some(({ type, ownCluster }) => type === 'topic' && !ownCluster)
  const writes = opensSinks.has(name) && (subject.intake === 'brokers' || atBrokers)
  if (!reads[subject.intake].has(name) && !writes) return []
  return [...secretRights(subject), ...mappingRights(name, subject), ...iamRights(name, subject)]
}

function secretRights({ source: { authentication } }: Subject): Right[] {
  if (!('secret' in authentication)) return []
  const { secretArn, encryptionKey } = authentication.secret
  const right: Right = { sid: 'Secret', actions: ['secretsmanager:GetSecretValue'], resources: [secretArn] }
  if (encryptionKey === undefined) return [right]
  return [right, { sid: 'SecretKey', actions: ['kms:Decrypt'], resources: [encryptionKey.keyArn] }]
}

/** The mapping looks its cluster up in the name of the function that it invokes. */
function mappingRights(name: FunctionName, { source: { clusterArn }, mapped }: Subject): Right[] {
  if (name !== 'trigger' || !mapped || clusterArn === undefined) return []
  const actions = ['kafka:DescribeCluster', 'kafka:DescribeClusterV2', 'kafka:GetBootstrapBrokers']
  return [{ sid: 'MappingCluster', actions, resources: [clusterArn] }]
}

function iamRights(name: FunctionName, subject: Subject): Right[] {
  const { source, stageName, description, mapped, intake } = subject
  const { clusterArn, authentication } = source
  if (authentication.type !== 'iam' || clusterArn === undefined) return []
  const { pipeline } = description.topology
  const of = (kind: KafkaResource, id: string) => kafkaArn(clusterArn, kind, id)
  const topics = (ids: readonly string[]) => [...new Set(ids)].sort().map((id) => of('topic', id))
  const groups = description.sources.flatMap(({ group }) => (group === null ? [] : [of('group', group)]))
  const sinks = description.sinks.filter(({ type, ownCluster }) => type === 'topic' && !ownCluster)
  const sources = topics(description.sources.filter(({ ownCluster }) => !ownCluster).map(({ topic }) => topic))
  const targets = topics(sinks.flatMap((sink) => sink.topics))
  const controls = topics(sinks.map(({ id }) => controlTopic({ stage: stageName, pipeline, sink: id })))
  const ids = sinks.flatMap(({ id }) =>
    lanesOf(subject, id).map((lane) =>
      of('transactional-id', transactionalId({ stage: stageName, pipeline, sink: id }, lane)),
    ),
  )
  const right = (sid: string, verbs: readonly string[], resources: readonly string[]): Right[] =>
    resources.length === 0 ? [] : [{ sid, actions: verbs.map((verb) => `kafka-cluster:${verb}`), resources }]
  const doorbell = of('group', mappingGroup(subject, pipeline))
  return [
    ...right('Connect', ['Connect', 'DescribeCluster', 'DescribeClusterDynamicConfiguration'], [clusterArn]),
    ...(reads[intake].has(name) ? right('ReadTopics', ['DescribeTopic', 'ReadData'], sources) : []),
    ...(opensSinks.has(name) ? right('SeeTargets', ['DescribeTopic'], targets) : []),
    ...(name === (intake === 'event' ? 'recover' : 'plan') ? right('StartPositions', ['DescribeGroup'], groups) : []),
    ...(name === 'finalize' && intake === 'brokers'
      ? right('PublishOffsets', ['AlterGroup', 'DescribeGroup'], groups)
      : []),
    ...(name === 'trigger' && mapped ? right('MappingGroup', ['AlterGroup', 'DescribeGroup'], [doorbell]) : []),
    ...(name === 'plan'
      ? right('MakeControl', ['AlterTopic', 'CreateTopic', 'DescribeTopicDynamicConfiguration'], controls)
      : []),
    ...(name === 'doctor'
      ? right('SeeControl', ['DescribeTopic', 'DescribeTopicDynamicConfiguration', 'ReadData'], controls)
      : []),
    ...(name === 'doctor' ? right('SeeSettings', ['DescribeTopicDynamicConfiguration'], sources) : []),
    ...(name === 'plan' || name === 'promote'
      ? [
          ...right('Markers', ['DescribeTopic', 'ReadData', 'WriteData'], controls),
          ...right('Transactions', ['AlterTransactionalId', 'DescribeTransactionalId'], ids),
          ...right('Idempotence', ['WriteDataIdempotently'], [clusterArn]),
        ]
      : []),
    ...(name === 'promote' ? right('WriteTopics', ['WriteData'], targets) : []),
  ]
}

function lanesOf({ description }: Subject, sink: string): number[] {
  const node = description.topology.nodes.find(({ id }) => id === sink)
  return Array.from({ length: node?.kind === 'sink' ? node.lanes : 0 }, (_, lane) => lane)
}
