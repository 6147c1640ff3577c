/**
 * The state machine: the very document that `lib/epoch` builds, with versions of functions as its resources.
 */
import { Stack } from 'aws-cdk-lib'
import * as iam from 'aws-cdk-lib/aws-iam'
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
}

/** The epoch machine of a deployment; Standard, since an execution outlives five minutes and must not run twice. */
export class EpochMachine extends Construct {
  readonly stateMachine: stepfunctions.CfnStateMachine

  constructor(scope: Construct, id: string, { name, settings, functions }: EpochMachineProps) {
    super(scope, id)
    const arns = stepNames.map((step) => [step, functions.byName[step].currentVersion.functionArn] as const)
    const resources = Object.fromEntries(arns) as Record<StepName, string>
    const role = new iam.Role(this, 'Role', {
      assumedBy: new iam.ServicePrincipal('states.amazonaws.com'),
      inlinePolicies: { Steps: mayInvoke(Object.values(resources)) },
    })
    this.stateMachine = new stepfunctions.CfnStateMachine(this, 'StateMachine', {
      stateMachineName: name,
      stateMachineType: 'STANDARD',
      roleArn: role.roleArn,
      definitionString: Stack.of(this).toJsonString(machine({ resources, settings })),
    })
    because(this.stateMachine, {
      'AwsSolutions-SF1': 'The history of a Standard execution is kept for 90 days, and each step logs what it did.',
      'AwsSolutions-SF2': 'Steps are followed by attempt and epoch in their log lines; traces would cost each of them.',
    })
  }
}

function mayInvoke(resources: string[]): iam.PolicyDocument {
  const statement = new iam.PolicyStatement({ sid: 'InvokeSteps', actions: ['lambda:InvokeFunction'], resources })
  return new iam.PolicyDocument({ statements: [statement] })
}
