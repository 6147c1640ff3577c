/**
 * What the construct tells functions of the brokers: the value of `PAWL_KAFKA`.
 */
import { Stack } from 'aws-cdk-lib'
import type { Construct } from 'constructs'
import type { KafkaAuthentication, KafkaEnvironment } from '../functions/environment.ts'
import { bootstrapServersOf } from './bootstrap-servers.ts'
import type { Authentication, KafkaSource } from './props.ts'

/** Addresses and authentication; makes what looks the addresses of an MSK cluster up. */
export function kafkaEnvironment(scope: Construct, source: KafkaSource): KafkaEnvironment {
  const { certificateAuthority, encrypted, transactionTimeoutMs } = source
  return {
    brokers: bootstrapServersOf(scope, source),
    authentication: authenticationOf(source.authentication, Stack.of(scope).region),
    ...(certificateAuthority === undefined ? {} : { authority: certificateAuthority }),
    ...(encrypted === undefined ? {} : { encrypted }),
    ...(transactionTimeoutMs === undefined ? {} : { transactionTimeoutMs }),
  }
}

function authenticationOf(authentication: Authentication, region: string): KafkaAuthentication {
  switch (authentication.type) {
    case 'none':
    case 'tls':
      return { type: authentication.type }
    case 'iam':
      return { type: 'iam', region }
    default:
      return { type: 'sasl', mechanism: authentication.type, secretArn: authentication.secret.secretArn }
  }
}
