/**
 * `pawl/secrets`: secrets of AWS Secrets Manager for the connections of sinks.
 *
 * Apart from the main entry because it needs `@aws-sdk/client-secrets-manager`, an optional peer, as soon as a
 * connection opens.
 */
export { type ManagedSecretOptions, managedSecret } from './adapters/secretsmanager/secret.ts'
export type { ManagedSecret } from './adapters/shared/secret.ts'
