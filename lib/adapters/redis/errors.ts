/**
 * What Redis's refusals mean for a sink, by the first word of the answer.
 *
 * Source: the error prefixes in Redis's source (`server.c`, `cluster.c`, `acl.c`). A script is refused before its
 * first write or not at all, so a refusal of the server always means that nothing was written.
 */
import { isPawlError, PawlError } from '../../model/errors.ts'

const codes: Readonly<Record<string, 'AUTHENTICATION_FAILED' | 'AUTHORIZATION_FAILED' | 'SINK_SCHEMA_INVALID'>> = {
  NOAUTH: 'AUTHENTICATION_FAILED',
  WRONGPASS: 'AUTHENTICATION_FAILED',
  NOPERM: 'AUTHORIZATION_FAILED',
  WRONGTYPE: 'SINK_SCHEMA_INVALID',
  CROSSSLOT: 'SINK_SCHEMA_INVALID',
}

/** An error of `ioredis` as one of ours. */
export function translated(error: unknown, sink: string): PawlError {
  if (isPawlError(error)) return error
  const reason = error instanceof Error ? error.message : String(error)
  const code = isReply(error) ? codes[/^[A-Z]+/.exec(reason)?.[0] ?? ''] : undefined
  const details = { sink, reason, lost: !isReply(error) }
  return new PawlError(code ?? 'SINK_UNAVAILABLE', `Redis of sink ${sink}: ${reason}`, details, causeOf(error, reason))
}

/** True when the server itself answered, so that it is known that nothing was written. */
export function isReply(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError'
}

/** Errors of the vendor carry the whole command with its arguments. */
function causeOf(error: unknown, reason: string): Error {
  const { code } = error as { readonly code?: unknown }
  return Object.assign(new Error(reason), code === undefined ? {} : { code })
}
