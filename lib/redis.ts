/**
 * `pawl/redis`: hashes, strings, sets, sorted sets and streams of Redis as exactly-once sinks.
 *
 * Apart from the main entry because it needs `ioredis`, an optional peer, as soon as a lane of such a sink is
 * registered.
 */
export type { RedisType } from './adapters/redis/script.ts'
export { type RedisConnection, type RedisOptions, redis } from './adapters/redis/sink.ts'
export { type Secret, secretFile } from './adapters/shared/secret.ts'
