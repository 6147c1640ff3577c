/**
 * What failed sockets and refused credentials become at the border.
 *
 * kafkajs wraps a broken socket in an authentication error when it breaks while credentials are exchanged; that
 * must not stop a pipeline, so such messages are told apart. Messages carry addresses and mechanisms, no secret.
 */
import { isPawlError, PawlError } from '../../model/errors.ts'

/** Errors of TLS that no waiting mends: certificates, or a plain listener spoken to in TLS. */
const tlsRefused = /^(ERR_SSL|ERR_TLS|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_(GET|VERIFY)|EPROTO)/
const tlsRefusedText = /alert|certificate|wrong version number|packet length too long/i
const socketBroke = /closed connection|not connected|connection (error|closed|timeout)|timed out|closed by the server/i

/** No connection to `place` was made. */
export function connectFailed(place: string, error: unknown): PawlError {
  if (isPawlError(error)) return error as PawlError
  const { message, name, code } = facts(error)
  const fault = `${place}: ${message}`
  const tls = tlsRefused.test(code) || (name === 'KafkaJSConnectionError' && tlsRefusedText.test(message))
  const denied = name === 'KafkaJSSASLAuthenticationError' && !socketBroke.test(message)
  if (tls || denied) return new PawlError('AUTHENTICATION_FAILED', fault, { place }, error)
  return new PawlError('BROKER_UNREACHABLE', fault, { place }, error)
}

/** The request was sent, or may have been, and no answer came. */
export function answerLost(request: string, error: unknown): PawlError {
  const { message, name, code } = facts(error)
  // TLS 1.3 tells a client that its certificate is refused only after the handshake.
  if (tlsRefused.test(code) || (name === 'KafkaJSConnectionError' && tlsRefusedText.test(message)))
    return new PawlError('AUTHENTICATION_FAILED', `${request}: ${message}`, { request }, error)
  return new PawlError('UNKNOWN_RESULT', `${request}: ${message}`, { request }, error)
}

function facts(error: unknown): { readonly message: string; readonly name: string; readonly code: string } {
  if (!(error instanceof Error)) return { message: String(error), name: '', code: '' }
  const { message, name } = error
  return { message, name, code: 'code' in error ? String(error.code) : '' }
}
