/**
 * What the adapters of AWS share: how clients are made, and what their errors mean for the caller.
 *
 * The SDK's own retries are switched off: it would repeat a conditional write whose answer was lost and report the
 * condition that failed because the first try had succeeded. Here every try is counted, and once one of them may
 * have been carried out, the whole call is unclear until somebody reads back. Source of the codes: the error pages
 * of each service and the retry classification of AWS SDKs.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { type ErrorCode, isPawlError, PawlError } from '../../model/errors.ts'
import type { Usage } from '../../model/usage.ts'

/** The services that are counted, as IAM calls them. */
export type Metered = 's3' | 'dynamodb' | 'states' | 'secretsmanager'

/** Counts calls, and sums up until somebody takes the sum; see `meter.ts`. */
export interface CallMeter {
  count(of: Metered, operation: string, outcome: CallOutcome): void
  /** What was used since the last time this was asked. */
  take(): Usage
}

/** How a call ended: with its answer, or the error. */
export type CallOutcome = { readonly answer: unknown } | { readonly error: unknown }

/** Where and as whom a client calls; what is absent comes from the environment, as for any program of AWS. */
export interface AwsOptions {
  readonly region?: string
  /** Of an emulator or a VPC endpoint. */
  readonly endpoint?: string
  readonly credentials?: {
    readonly accessKeyId: string
    readonly secretAccessKey: string
    readonly sessionToken?: string
  }
  /** How long a try may take; 20 s unless said otherwise. */
  readonly timeoutMs?: number
  /** Counts every request; absent where nobody wants to know. */
  readonly meter?: CallMeter
}

/** Options that every client of the SDK takes. */
export function clientConfig({ region, endpoint, credentials, timeoutMs = 20_000 }: AwsOptions) {
  return {
    ...(region === undefined ? {} : { region }),
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(credentials === undefined ? {} : { credentials }),
    maxAttempts: 1,
    requestHandler: {
      connectionTimeout: 3_000,
      requestTimeout: timeoutMs,
      throwOnRequestTimeout: true,
      socketTimeout: timeoutMs,
      // More requests than sockets is how a large listing or deletion works here, nothing to warn of.
      socketAcquisitionWarningTimeout: 3_600_000,
    },
  }
}

/** Loads a client package when it is first needed. Throws `PACKAGE_MISSING`. */
export async function loadClient<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load()
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND')) throw error
    throw new PawlError('PACKAGE_MISSING', name, { package: name }, error)
  }
}

/**
 * - `undone` nothing was carried out: trying again is safe.
 * - `unclear` it may have been, or may still be: trying again is safe only for what can be read back.
 * - `denied` `missing` `refused` answers that another try does not change.
 * - `foreign` no error of AWS at all.
 */
export type Verdict = 'undone' | 'unclear' | 'denied' | 'missing' | 'refused' | 'foreign'

/** Connections that were never made. */
const notSent = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'])
const undone = new Set([
  'BandwidthLimitExceeded',
  'ExpiredToken',
  'ExpiredTokenException',
  'LimitExceededException',
  'PriorRequestNotComplete',
  'ProvisionedThroughputExceededException',
  'RequestExpired',
  'RequestLimitExceeded',
  'RequestThrottled',
  'RequestThrottledException',
  'RequestTimeTooSkewed',
  'Throttling',
  'ThrottlingException',
  'ThrottlingError',
  'TooManyRequestsException',
])
const denied = new Set([
  'AccessDenied',
  'AccessDeniedException',
  'CredentialsProviderError',
  'IncompleteSignature',
  'InvalidAccessKeyId',
  'InvalidClientTokenId',
  'InvalidSignatureException',
  'InvalidToken',
  'MissingAuthenticationToken',
  'NotAuthorized',
  'SignatureDoesNotMatch',
  'UnrecognizedClientException',
])
/** Of a bucket, table or state machine; a wrong region looks the same. */
const missing = new Set([
  'AuthorizationHeaderMalformed',
  'NoSuchBucket',
  'PermanentRedirect',
  'ResourceNotFoundException',
  'StateMachineDoesNotExist',
])

/** What the SDK says, by an error without a name or code of its own, where no region is named. */
const noRegion = 'Region is missing'

/** Name of the error and status of the answer; null for what the network did. */
export function answerOf(error: unknown): { readonly name: string; readonly status: number | null } {
  const { name = '', $metadata } = (error ?? {}) as {
    readonly name?: string
    readonly $metadata?: { readonly httpStatusCode?: number }
  }
  return { name, status: $metadata?.httpStatusCode ?? null }
}

/** What an error of the SDK says of the call that it ended. */
export function verdictOf(error: unknown): Verdict {
  if (!(error instanceof Error) || isPawlError(error)) return 'foreign'
  const { name, status } = answerOf(error)
  if (undone.has(name) || status === 429) return 'undone'
  if (denied.has(name)) return 'denied'
  if (missing.has(name) || error.message === noRegion) return 'missing'
  if (status !== null && status >= 400 && status < 500) return status === 401 || status === 403 ? 'denied' : 'refused'
  // Every 5xx, SlowDown too: who answers may not be who carries out.
  if (status !== null) return 'unclear'
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (notSent.has(code)) return 'undone'
  // A body that is cut off or is no answer of AWS leaves the raw response at the error.
  if (code !== '' || name === 'TimeoutError' || name === 'AbortError' || '$response' in error) return 'unclear'
  return 'foreign'
}

/** What is tried, for the error if it fails. */
export interface Deed {
  /** As in `cannot create x in bucket y`. */
  readonly text: string
  readonly writes: boolean
  /** What is thrown when it stays impossible and nothing was written. */
  readonly unavailable: ErrorCode
  /** Knows better than `verdictOf`; null where it does not. */
  readonly judge?: (error: unknown) => Verdict | null
}

/** What happened in earlier tries of the same call. */
export interface Tries {
  /** One of them may have been carried out. */
  readonly unclear: boolean
}

const triesMax = 8
const budgetMs = 25_000
const pauseMsMax = 1_000

/**
 * Tries again, with pauses that grow and differ, while the answer is that nothing was done or that nobody knows.
 *
 * The call turns answers that are outcomes into values itself. Throws `UNKNOWN_RESULT` for a write of which any try
 * stayed unclear, the deed's own code, `AWS_ACCESS_DENIED`, `AWS_RESOURCE_MISSING`, and `ASSERTION_FAILED` for a
 * request that the service does not accept.
 */
export async function tryAgain<T>(deed: Deed, call: (tries: Tries) => Promise<T>): Promise<T> {
  const startMs = performance.now()
  let unclear = false
  for (let tries = 1; ; tries++) {
    try {
      return await call({ unclear })
    } catch (error) {
      const verdict = deed.judge?.(error) ?? verdictOf(error)
      if (verdict === 'unclear') unclear = true
      const patient = tries < triesMax && performance.now() - startMs < budgetMs
      if ((verdict !== 'unclear' && verdict !== 'undone') || !patient) throw translated(deed, error, verdict, unclear)
      await pause(Math.random() * Math.min(pauseMsMax, 25 * 2 ** tries))
    }
  }
}

function translated(deed: Deed, error: unknown, verdict: Verdict, unclear: boolean): unknown {
  // What failed is a part of the call, and says so itself.
  if (verdict === 'foreign' && !(deed.writes && unclear && isPawlError(error))) return error
  const { name, status } = answerOf(error)
  const fault = `cannot ${deed.text} (${name}: ${(error as Error).message})`
  const details = { aws: name, status }
  if (deed.writes && unclear) return new PawlError('UNKNOWN_RESULT', fault, details, error)
  switch (verdict) {
    case 'denied':
      return new PawlError('AWS_ACCESS_DENIED', fault, details, error)
    case 'missing':
      return new PawlError('AWS_RESOURCE_MISSING', fault, details, error)
    case 'refused':
      return new PawlError('ASSERTION_FAILED', fault, details, error)
    default:
      return new PawlError(deed.unavailable, fault, details, error)
  }
}
