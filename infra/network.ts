/**
 * VPC endpoints: what functions and mapping in a VPC need of AWS, for networks without a NAT.
 *
 * Gateways for S3 and DynamoDB cost nothing. Interfaces: Step Functions where plan or trigger are inside, Lambda and STS for the
 * mapping, Secrets Manager where there is a secret.
 */
import * as ec2 from 'aws-cdk-lib/aws-ec2'
import { Construct } from 'constructs'
import type { ExactlyOncePipelineProps } from './props.ts'

/** What of AWS is reached from inside, beside storage and what the mapping needs. */
export interface NetworkNeeds {
  /** Functions that start runs are inside. */
  readonly starts: boolean
  /** Sinks have secrets. */
  readonly secrets: boolean
}

/** The endpoints that `vpcEndpoints: create` makes. */
export class Network extends Construct {
  constructor(scope: Construct, id: string, props: ExactlyOncePipelineProps, { starts, secrets }: NetworkNeeds) {
    super(scope, id)
    const { source, trigger } = props
    const { vpc, subnets, securityGroups = [], authentication } = source
    if (vpc === undefined) return
    const chosen = subnets === undefined ? {} : { subnets: [subnets] }
    new ec2.GatewayVpcEndpoint(this, 'S3', { vpc, service: ec2.GatewayVpcEndpointAwsService.S3, ...chosen })
    new ec2.GatewayVpcEndpoint(this, 'DynamoDb', { vpc, service: ec2.GatewayVpcEndpointAwsService.DYNAMODB, ...chosen })
    const { STEP_FUNCTIONS, LAMBDA, STS, SECRETS_MANAGER } = ec2.InterfaceVpcEndpointAwsService
    const needed = {
      ...(starts ? { StepFunctions: STEP_FUNCTIONS } : {}),
      ...(trigger === 'schedule' ? {} : { Lambda: LAMBDA, Sts: STS }),
      ...(secrets || 'secret' in authentication ? { SecretsManager: SECRETS_MANAGER } : {}),
    }
    const group = new ec2.SecurityGroup(this, 'Endpoints', {
      vpc,
      description: 'AWS from inside the VPC, for the functions of a pipeline',
      allowAllOutbound: false,
    })
    for (const one of securityGroups) group.addIngressRule(one, ec2.Port.tcp(443), 'TLS from the functions')
    for (const [name, service] of Object.entries(needed)) {
      new ec2.InterfaceVpcEndpoint(this, name, {
        vpc,
        service,
        securityGroups: [group],
        open: false,
        ...(subnets === undefined ? {} : { subnets }),
      })
    }
  }
}
