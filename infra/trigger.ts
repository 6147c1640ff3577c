/**
 * What rings: the event source mapping, the schedule, and executions that die.
 *
 * A mapping is a doorbell. It reads every byte again, keeps offsets of a group of its own and delivers at least once;
 * nothing but the time of waking depends on it. The schedule makes good what it loses, retries parked promotions and
 * reports lag; a tick that finds nothing to do starts nothing.
 */
import { Duration } from 'aws-cdk-lib'
import * as events from 'aws-cdk-lib/aws-events'
import * as targets from 'aws-cdk-lib/aws-events-targets'
import type { CfnEventSourceMapping } from 'aws-cdk-lib/aws-lambda'
import * as lambda from 'aws-cdk-lib/aws-lambda'
import { Construct } from 'constructs'
import type { MadeFunctions } from './functions.ts'
import { mappingGroup } from './kafka-rights.ts'
import type { ExactlyOncePipelineProps, KafkaSource } from './props.ts'
import type { Description } from './topology.ts'

/** Between two looks of the schedule, unless said otherwise. */
export const tickDefault = Duration.minutes(1)

/** What is rung, and by whom. */
export interface TriggerProps {
  readonly pipeline: ExactlyOncePipelineProps
  readonly description: Description
  readonly functions: MadeFunctions
  readonly machineArn: string
}

/** The ways in which a deployed pipeline wakes. */
export class Trigger extends Construct {
  readonly mappings: readonly CfnEventSourceMapping[]

  constructor(scope: Construct, id: string, props: TriggerProps) {
    super(scope, id)
    const { pipeline, functions, machineArn } = props
    const { trigger, collect, recover } = functions
    const tick = events.Schedule.rate(pipeline.tick ?? tickDefault)
    const ring = () => new targets.LambdaFunction(trigger, { retryAttempts: 2 })
    new events.Rule(this, 'Tick', {
      description: 'Looks whether there is anything to do',
      schedule: tick,
      targets: [ring()],
    })
    // Express executions send no such events: there the lease and the schedule find out.
    if (pipeline.workflow !== 'express') {
      new events.Rule(this, 'Death', {
        description: 'A run that died is taken over at once',
        eventPattern: {
          source: ['aws.states'],
          detailType: ['Step Functions Execution Status Change'],
          detail: { stateMachineArn: [machineArn], status: ['FAILED', 'TIMED_OUT', 'ABORTED'] },
        },
        targets: [ring()],
      })
    }
    new events.Rule(this, 'Collect', {
      description: 'Deletes what no root reaches',
      schedule: events.Schedule.rate(Duration.hours(1)),
      targets: [new targets.LambdaFunction(collect, { retryAttempts: 0 })],
    })
    if (recover !== undefined) {
      new events.Rule(this, 'Recover', {
        description: 'Asks the brokers for what events lack',
        schedule: tick,
        targets: [new targets.LambdaFunction(recover, { retryAttempts: 0 })],
      })
    }
    this.mappings =
      pipeline.trigger === 'schedule' ? [] : topicsOf(props.description).map((topic) => newMapping(this, topic, props))
  }
}

function topicsOf({ sources }: Description): string[] {
  return [...new Set(sources.filter(({ ownCluster }) => !ownCluster).map(({ topic }) => topic))].sort()
}

function newMapping(scope: Construct, topic: string, props: TriggerProps): CfnEventSourceMapping {
  const { pipeline, description, functions } = props
  const { source, stageName, intake = 'brokers', batchWindow = Duration.seconds(1) } = pipeline
  const consumerGroupId = mappingGroup({ stageName, intake }, description.topology.pipeline)
  const access = accessOf(source)
  return new lambda.CfnEventSourceMapping(scope, `Mapping-${topic}`, {
    functionName: functions.trigger.functionArn,
    topics: [topic],
    // A doorbell may begin anywhere. An intake takes everything, fails for ever rather than discard, and names no
    // destination for what failed: with one, Lambda gives up after ten tries.
    startingPosition: intake === 'event' ? 'TRIM_HORIZON' : 'LATEST',
    batchSize: 10_000,
    maximumBatchingWindowInSeconds: batchWindow.toSeconds(),
    ...(access.length === 0 ? {} : { sourceAccessConfigurations: access }),
    ...(source.clusterArn === undefined
      ? {
          selfManagedEventSource: {
            endpoints: { kafkaBootstrapServers: (source.bootstrapServers ?? '').split(',').map((one) => one.trim()) },
          },
          selfManagedKafkaEventSourceConfig: { consumerGroupId },
        }
      : { eventSourceArn: source.clusterArn, amazonManagedKafkaEventSourceConfig: { consumerGroupId } }),
  })
}

/** MSK knows its own network; other brokers are reached as the functions reach them. */
function accessOf({ authentication, clusterArn, vpc, subnets, securityGroups = [] }: KafkaSource) {
  const secretTypes = {
    'scram-sha-512': 'SASL_SCRAM_512_AUTH',
    'scram-sha-256': 'SASL_SCRAM_256_AUTH',
    plain: 'BASIC_AUTH',
  } as const
  const access =
    'secret' in authentication ? [{ type: secretTypes[authentication.type], uri: authentication.secret.secretArn }] : []
  if (clusterArn !== undefined || vpc === undefined) return access
  const { subnetIds } = vpc.selectSubnets(subnets)
  return [
    ...access,
    ...subnetIds.map((id) => ({ type: 'VPC_SUBNET', uri: `subnet:${id}` })),
    ...securityGroups.map(({ securityGroupId }) => ({
      type: 'VPC_SECURITY_GROUP',
      uri: `security_group:${securityGroupId}`,
    })),
  ]
}
