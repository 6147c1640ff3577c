/**
 * `pawl/dynamodb`: tables of DynamoDB as sinks.
 *
 * Apart from the main entry because it needs `@aws-sdk/client-dynamodb`, an optional peer, as soon as a lane of such a
 * sink is registered.
 */
export { Decimal, decimal } from './adapters/dynamodb/attributes.ts'
export { type DynamoOptions, dynamodb } from './adapters/dynamodb/sink.ts'
export type { DynamoMode, KeyType, TombstoneTtl } from './adapters/dynamodb/sink-form.ts'
export type { AwsOptions } from './adapters/shared/aws.ts'
