/**
 * A few connections to a database, opened when needed, each used by one caller at a time.
 *
 * A session that saw any error is thrown away with whatever it had open, so that nobody inherits a transaction.
 * Only errors that say `lost` (no connection, or one that broke before its transaction could commit) are tried
 * again here, on a fresh session and after a pause; the caller's work must therefore begin with a transaction of
 * its own. A watchdog destroys a session that takes longer than it may: a network that swallows packets answers
 * nothing at all.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { isPawlError, PawlError } from '../../model/errors.ts'

/** What the pool needs of a connection. */
export interface PooledSession {
  /** False once the connection is known to be broken. */
  readonly alive: boolean
  /** Orderly end. */
  end(): Promise<void>
  /** Cuts the connection; what waits for an answer is rejected. */
  destroy(): void
}

/** How a pool opens, and how patient it is. */
export interface SessionPoolOptions<S> {
  readonly sink: string
  open(): Promise<S>
  /** Sessions that are kept when idle. */
  readonly idleMax: number
  /** After which an opening is given up, and a session at work is destroyed. */
  readonly timeoutMs: number
  /** Pauses before the second, third, … try. */
  readonly pausesMs?: readonly number[]
}

/** Sessions for many callers. */
export interface SessionPool<S> {
  /** Calls `act` with a session of its own. */
  use<T>(act: (session: S) => Promise<T>): Promise<T>
  close(): Promise<void>
}

const pausesMsDefault = [0, 100, 400]
/** How long the end of a session may take. */
const endMs = 1000

/** A pool without any session yet. */
export function sessionPool<S extends PooledSession>(options: SessionPoolOptions<S>): SessionPool<S> {
  const { idleMax, timeoutMs, pausesMs = pausesMsDefault } = options
  const idle: S[] = []
  let closed = false
  const take = async (): Promise<S> => {
    for (let session = idle.pop(); session !== undefined; session = idle.pop()) {
      if (session.alive) return session
      session.destroy()
    }
    return openInTime(options)
  }
  const once = async <T>(act: (session: S) => Promise<T>): Promise<T> => {
    const session = await take()
    const watchdog = setTimeout(() => session.destroy(), timeoutMs)
    try {
      const result = await act(session)
      if (!closed && session.alive && idle.length < idleMax) idle.push(session)
      else await ended(session)
      return result
    } catch (error) {
      session.destroy()
      throw error
    } finally {
      clearTimeout(watchdog)
    }
  }
  return {
    async use(act) {
      for (let tries = 0; ; tries++) {
        try {
          return await once(act)
        } catch (error) {
          if (!isLost(error) || tries >= pausesMs.length) throw error
        }
        await sleep(pausesMs[tries])
      }
    },
    async close() {
      closed = true
      await Promise.all(idle.splice(0).map(ended))
    },
  }
}

/** Ends a session in an orderly way, unless the other side does not take part. */
function ended(session: PooledSession): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(impatience)
      resolve()
    }
    const impatience = setTimeout(() => {
      session.destroy()
      resolve()
    }, endMs)
    session.end().then(done, done)
  })
}

/** A session that comes too late is destroyed. */
function openInTime<S extends PooledSession>({ sink, open, timeoutMs }: SessionPoolOptions<S>): Promise<S> {
  return new Promise((resolve, reject) => {
    let late = false
    const timer = setTimeout(() => {
      late = true
      reject(new PawlError('SINK_UNAVAILABLE', `sink ${sink} did not answer within ${timeoutMs} ms`, { sink }))
    }, timeoutMs)
    open().then(
      (session) => {
        clearTimeout(timer)
        if (late) session.destroy()
        else resolve(session)
      },
      (error: unknown) => {
        clearTimeout(timer)
        reject(error)
      },
    )
  })
}

function isLost(error: unknown): boolean {
  return isPawlError(error) && error.code === 'SINK_UNAVAILABLE' && error.details.lost === true
}
