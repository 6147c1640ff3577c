/**
 * What Kafka's error codes mean for a sink.
 *
 * The broker answers with numbers; here they become `PawlError`s that say what to do. Being fenced has three faces:
 * INVALID_PRODUCER_EPOCH, PRODUCER_FENCED and, once the id was given to another producer,
 * INVALID_PRODUCER_ID_MAPPING. Source of names and numbers: https://kafka.apache.org/protocol#protocol_error_codes
 */
import { type ErrorCode, type ErrorDetails, PawlError } from '../../model/errors.ts'

/** The codes that are acted on by number. */
export const kafkaCode = Object.freeze({
  none: 0,
  topicExists: 36,
  invalidPartitions: 37,
})

const meanings: Readonly<Record<number, readonly [name: string, code: ErrorCode]>> = {
  2: ['CORRUPT_MESSAGE', 'BATCH_DAMAGED'],
  3: ['UNKNOWN_TOPIC_OR_PARTITION', 'TOPIC_MISSING'],
  5: ['LEADER_NOT_AVAILABLE', 'SINK_UNAVAILABLE'],
  6: ['NOT_LEADER_OR_FOLLOWER', 'SINK_UNAVAILABLE'],
  7: ['REQUEST_TIMED_OUT', 'SINK_UNAVAILABLE'],
  10: ['MESSAGE_TOO_LARGE', 'ROWS_REFUSED'],
  14: ['COORDINATOR_LOAD_IN_PROGRESS', 'SINK_UNAVAILABLE'],
  15: ['COORDINATOR_NOT_AVAILABLE', 'SINK_UNAVAILABLE'],
  16: ['NOT_COORDINATOR', 'SINK_UNAVAILABLE'],
  18: ['RECORD_LIST_TOO_LARGE', 'ROWS_REFUSED'],
  19: ['NOT_ENOUGH_REPLICAS', 'SINK_UNAVAILABLE'],
  20: ['NOT_ENOUGH_REPLICAS_AFTER_APPEND', 'SINK_UNAVAILABLE'],
  29: ['TOPIC_AUTHORIZATION_FAILED', 'AUTHORIZATION_FAILED'],
  31: ['CLUSTER_AUTHORIZATION_FAILED', 'AUTHORIZATION_FAILED'],
  32: ['INVALID_TIMESTAMP', 'ROWS_REFUSED'],
  36: ['TOPIC_ALREADY_EXISTS', 'CONTROL_TOPIC_INVALID'],
  37: ['INVALID_PARTITIONS', 'CONTROL_TOPIC_INVALID'],
  38: ['INVALID_REPLICATION_FACTOR', 'CONTROL_TOPIC_INVALID'],
  40: ['INVALID_CONFIG', 'CONTROL_TOPIC_INVALID'],
  44: ['POLICY_VIOLATION', 'CONTROL_TOPIC_INVALID'],
  45: ['OUT_OF_ORDER_SEQUENCE_NUMBER', 'SINK_UNAVAILABLE'],
  47: ['INVALID_PRODUCER_EPOCH', 'TRANSACTION_FENCED'],
  48: ['INVALID_TXN_STATE', 'UNKNOWN_RESULT'],
  49: ['INVALID_PRODUCER_ID_MAPPING', 'TRANSACTION_FENCED'],
  50: ['INVALID_TRANSACTION_TIMEOUT', 'TRANSACTION_TIMEOUT_INVALID'],
  51: ['CONCURRENT_TRANSACTIONS', 'SINK_UNAVAILABLE'],
  53: ['TRANSACTIONAL_ID_AUTHORIZATION_FAILED', 'AUTHORIZATION_FAILED'],
  56: ['KAFKA_STORAGE_ERROR', 'SINK_UNAVAILABLE'],
  59: ['UNKNOWN_PRODUCER_ID', 'SINK_UNAVAILABLE'],
  87: ['INVALID_RECORD', 'ROWS_REFUSED'],
  90: ['PRODUCER_FENCED', 'TRANSACTION_FENCED'],
}

/** Coordinator not there (yet), or the previous transaction of the id not finished: asking again helps. */
const coordinatorRetries = new Set([14, 15, 16, 51])
/** A partition's leader is moving or lags: asking again after a look at the metadata helps. */
const leaderRetries = new Set([3, 5, 6, 7, 9, 13, 56, 72, 74, 75, 78])

/** True when the same request to the coordinator is to be repeated. */
export function isCoordinatorRetry(error: number): boolean {
  return coordinatorRetries.has(error)
}

/** True when the same request to a partition's leader is to be repeated. */
export function isLeaderRetry(error: number): boolean {
  return leaderRetries.has(error)
}

/** The error for a code other than 0; `fault` says what was asked of what. */
export function kafkaError(
  error: number,
  fault: string,
  message: string | null = null,
  details: ErrorDetails = {},
): PawlError {
  const [name, code] = meanings[error] ?? [`error ${error}`, 'SINK_UNAVAILABLE']
  return new PawlError(code, `${fault}: ${name}${message ? ` (${message})` : ''}`, { ...details, kafka: error })
}
