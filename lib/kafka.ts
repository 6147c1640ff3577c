/**
 * `pawl/kafka`: clusters by name, for pipelines that say where their topics live.
 *
 * Apart from the main entry because it needs `kafkajs`, an optional peer, as soon as a cluster is opened.
 */
export { type KafkaClusterSpec, type KafkaOptions, kafka } from './adapters/kafka/cluster.ts'
