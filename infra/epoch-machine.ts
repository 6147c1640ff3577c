/**
 * The state machine: the very document that `lib/epoch` builds, with versions of functions as its resources.
 */
import { RemovalPolicy, Stack } from 'aws-cdk-lib'
import * as iam from 'aws-cdk-lib/aws-iam'
import * as logs from 'aws-cdk-lib/aws-logs'
import * as stepfunctions from 'aws-cdk-lib/aws-stepfunctions'
import { Construct } from 'constructs'
import { machine, type StepName, stepNames } from '../lib/epoch/machine.ts'
import type { Settings } from '../lib/model/settings.ts'
import type { Functions } from './functions.ts'
import { because } from './nag.ts'

/** What the machine is made of. */
export interface EpochMachineProps {
  readonly name: string
  readonly settings: Settings
  readonly functions: Functions
  readonly workflow: 'standard' | 'express'
  /** Of the executions' log; Standard keeps a history instead. */
  readonly logRetention: logs.RetentionDays
}

/** The epoch machine of a deployment: the same document for both kinds, but that an Express execution names itself. */
export class EpochMachine extends Construct {
  readonly stateMachine: stepfunctions.CfnStateMachine

  constructor(scope: Construct, id: string, props: EpochMachineProps) {
    super(scope, id)
    const { name, settings, functions, workflow, logRetention } = props
    const arns = stepNames.map((step) => [step, functions.byName[step].currentVersion.functionArn] as const)
    const resources = Object.fromEntries(arns) as Record<StepName, string>
    const role = new iam.Role(this, 'Role', {
      assumedBy: new iam.ServicePrincipal('states.amazonaws.com'),
      inlinePolicies: {
        Steps: mayInvoke(Object.values(resources)),
        ...(workflow === 'express' ? { Log: mayLog() } : {}),
      },
    })
    const log = workflow === 'express' ? newLog(this, role, logRetention) : undefined
    this.stateMachine = new stepfunctions.CfnStateMachine(this, 'StateMachine', {
      stateMachineName: name,
      stateMachineType: workflow === 'express' ? 'EXPRESS' : 'STANDARD',
      roleArn: role.roleArn,
      definitionString: Stack.of(this).toJsonString(machine({ resources, settings, workflow })),
      ...(log === undefined ? {} : { loggingConfiguration: failuresTo(log) }),
    })
    this.stateMachine.node.addDependency(role)
    because(this.stateMachine, {
      'AwsSolutions-SF1':
        'Each step logs what it did; beside it Standard keeps a history, and Express logs what failed.',
      'AwsSolutions-SF2': 'Steps are followed by attempt and epoch in their log lines; traces would cost each of them.',
    })
  }
}

function mayInvoke(resources: string[]): iam.PolicyDocument {
  const statement = new iam.PolicyStatement({ sid: 'InvokeSteps', actions: ['lambda:InvokeFunction'], resources })
  return new iam.PolicyDocument({ statements: [statement] })
}

/** Names of this kind spare the resource policy of CloudWatch Logs, which has little room. */
function newLog(scope: Construct, role: iam.Role, retention: logs.RetentionDays): logs.LogGroup {
  because(role, {
    'AwsSolutions-IAM5[Resource::*]': 'Deliveries of logs, by which Express executions log, know no narrower resource.',
  })
  const logGroupName = `/aws/vendedlogs/states/${Stack.of(scope).stackName}-${scope.node.addr.slice(-8)}`
  return new logs.LogGroup(scope, 'Logs', { logGroupName, retention, removalPolicy: RemovalPolicy.DESTROY })
}

/** Without payloads: they are pointers, and the steps log what they mean. */
function failuresTo({ logGroupArn }: logs.LogGroup): stepfunctions.CfnStateMachine.LoggingConfigurationProperty {
  return { level: 'ERROR', includeExecutionData: false, destinations: [{ cloudWatchLogsLogGroup: { logGroupArn } }] }
}

/** Source: Step Functions developer guide, "Using CloudWatch Logs to log execution history". */
function mayLog(): iam.PolicyDocument {
  const verbs = ['CreateLogDelivery', 'GetLogDelivery', 'UpdateLogDelivery', 'DeleteLogDelivery', 'ListLogDeliveries']
  const policies = ['PutResourcePolicy', 'DescribeResourcePolicies', 'DescribeLogGroups']
  const actions = [...verbs, ...policies].map((verb) => `logs:${verb}`)
  return new iam.PolicyDocument({
    statements: [new iam.PolicyStatement({ sid: 'DeliverLogs', actions, resources: ['*'] })],
  })
}
