/**
 * How a function reaches the brokers: from its environment to what the Kafka adapter is told.
 */
import type { KafkaOptions } from '../lib/adapters/kafka/cluster.ts'
import type { KafkaEnvironment } from './environment.ts'

/** The cluster as its adapter wants it. `credentialsOf` asks for a secret by its ARN. */
export function kafkaOptionsOf(
  { brokers, authentication, authority, encrypted = true, transactionTimeoutMs }: KafkaEnvironment,
  credentialsOf: (secretArn: string) => () => Promise<{ readonly username: string; readonly password: string }>,
): KafkaOptions {
  const options = { brokers, ...(transactionTimeoutMs === undefined ? {} : { transactionTimeoutMs }) }
  if (authentication.type === 'none') return options
  const ssl = encrypted && (authority === undefined ? true : { ca: authority })
  switch (authentication.type) {
    case 'tls':
      return { ...options, ssl }
    case 'iam':
      return { ...options, ssl, sasl: { mechanism: 'aws-iam', region: authentication.region } }
    case 'sasl': {
      const { mechanism, secretArn } = authentication
      return { ...options, ssl, sasl: { mechanism, credentials: credentialsOf(secretArn) } }
    }
  }
}
