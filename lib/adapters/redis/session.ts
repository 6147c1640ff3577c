/**
 * One connection to Redis as the sink uses it.
 *
 * Connected when it is handed out. A server that is part of a cluster refuses many keys without a common hash tag
 * only in the middle of a script, so that is checked here first.
 */
import { isPawlError, PawlError } from '../../model/errors.ts'
import type { PooledSession } from '../shared/session-pool.ts'
import type { RedisClient } from './driver.ts'
import { translated } from './errors.ts'
import { hasHashTag } from './keys.ts'

/** A connection in use. */
export interface RedisSession extends PooledSession {
  /** One command whose repetition does no harm; errors are ours. */
  call(command: string, args: readonly (string | Buffer | number)[]): Promise<unknown>
  /** One command; errors are as they come. */
  run(command: string, args: readonly (string | Buffer | number)[]): Promise<unknown>
}

/** Connects. Throws `SINK_UNAVAILABLE`, `AUTHENTICATION_FAILED`, `SINK_SCHEMA_INVALID`. */
export async function redisSession(
  client: RedisClient,
  { sink, manyKeys }: { readonly sink: string; readonly manyKeys: string | null },
): Promise<RedisSession> {
  let alive = true
  let lastError: unknown = null
  client.on('error', (error) => {
    lastError = error
  })
  client.on('end', () => {
    alive = false
  })
  const session: RedisSession = {
    get alive() {
      return alive
    },
    run: (command, args) => client.call(command, args),
    async call(command, args) {
      try {
        return await client.call(command, args)
      } catch (error) {
        throw translated(error, sink)
      }
    },
    async end() {
      await client.quit().catch(() => client.disconnect(false))
    },
    destroy() {
      alive = false
      client.disconnect(false)
    },
  }
  try {
    await connected(client)
    if (manyKeys !== null && !hasHashTag(manyKeys)) await refuseCluster(session, manyKeys, sink)
    return session
  } catch (error) {
    client.disconnect(false)
    throw translated(isPawlError(error) ? error : (lastError ?? error), sink)
  }
}

/** What `connect` of a cluster that is down answers with: nothing, ever; only its end is told. */
function connected(client: RedisClient): Promise<void> {
  return new Promise((resolve, reject) => {
    client.on('end', () => reject(new Error('it is not ready')))
    client.connect().then(resolve, reject)
  })
}

async function refuseCluster(session: RedisSession, prefix: string, sink: string): Promise<void> {
  const answer = String(await session.call('INFO', ['cluster']))
  if (!answer.includes('cluster_enabled:1')) return
  const reason = `keys beginning with ${prefix} need a hash tag in a cluster, as in {${prefix}}`
  throw new PawlError('SINK_SCHEMA_INVALID', `sink ${sink}: ${reason}`, { sink, reason })
}
