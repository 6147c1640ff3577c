/**
 * What Kafka's error codes mean for a reader, and when asking again helps.
 *
 * Reading changes nothing, so a lost answer is simply asked for again. Source of names and numbers:
 * https://kafka.apache.org/protocol#protocol_error_codes
 */
import { type ErrorCode, type ErrorDetails, isPawlError, PawlError } from '../../model/errors.ts'
import { patience } from './patience.ts'

/** The codes that a reader acts on by number. */
export const readCode = Object.freeze({ none: 0, offsetOutOfRange: 1 })

const meanings: Readonly<Record<number, readonly [name: string, code: ErrorCode]>> = {
  2: ['CORRUPT_MESSAGE', 'BATCH_DAMAGED'],
  22: ['ILLEGAL_GENERATION', 'GROUP_IN_USE'],
  24: ['INVALID_GROUP_ID', 'START_POSITION_INVALID'],
  25: ['UNKNOWN_MEMBER_ID', 'GROUP_IN_USE'],
  27: ['REBALANCE_IN_PROGRESS', 'GROUP_IN_USE'],
  29: ['TOPIC_AUTHORIZATION_FAILED', 'AUTHORIZATION_FAILED'],
  30: ['GROUP_AUTHORIZATION_FAILED', 'AUTHORIZATION_FAILED'],
  31: ['CLUSTER_AUTHORIZATION_FAILED', 'AUTHORIZATION_FAILED'],
}

/** The error for a code other than 0. Codes without an entry pass with time or a look at the metadata. */
export function readRefused(error: number, fault: string, details: ErrorDetails = {}): PawlError {
  const [name, code] = meanings[error] ?? [`Kafka error ${error}`, 'LOG_UNAVAILABLE']
  return new PawlError(code, `${fault}: ${name}`, { ...details, kafka: error })
}

/**
 * Asks a reader's question again while the answer is transient, for `limitMs`; then throws the last error. A lost
 * answer leaves as `LOG_UNAVAILABLE`, since nothing was written that could be unknown.
 */
export async function patiently<T>(limitMs: number, ask: () => Promise<T>): Promise<T> {
  const wait = patience(limitMs)
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (!isPawlError(error) || error.kind !== 'Retryable') throw error
      if (await wait.wait()) continue
      throw error.code === 'UNKNOWN_RESULT' ? new PawlError('LOG_UNAVAILABLE', error.message, {}, error) : error
    }
  }
}
