/**
 * What a pipeline file imports from `pawl/kafka`: the description of a cluster.
 *
 * Importing it loads no client; kafkajs and the libraries of codecs and credentials load when they are needed.
 */
export type { SaslOptions, Secret, SslOptions } from './adapters/kafka/auth.ts'
export { type KafkaClusterSpec, type KafkaOptions, kafka } from './adapters/kafka/cluster.ts'
