import { expect, test } from 'vitest'
import { sessionPool } from '../../../lib/adapters/shared/session-pool.ts'
import { PawlError } from '../../../lib/model/errors.ts'

/** Sessions that only count. */
function countedPool(
  options: { readonly failures?: number; readonly timeoutMs?: number; readonly idleMax?: number } = {},
) {
  const { timeoutMs = 1000, idleMax = 1 } = options
  let failures = options.failures ?? 0
  const seen = { opened: 0, ended: 0, destroyed: 0 }
  const open = async () => {
    if (failures-- > 0) throw new PawlError('SINK_UNAVAILABLE', 'refused', { lost: true })
    seen.opened++
    const session = {
      alive: true,
      cut: () => {},
      end: async () => void seen.ended++,
      destroy: () => {
        if (session.alive) seen.destroyed++
        session.alive = false
        session.cut()
      },
    }
    return session
  }
  return { seen, pool: sessionPool({ sink: 's', open, idleMax, timeoutMs, pausesMs: [0, 1] }) }
}

test('keeps a session for the next caller, and gives each of two callers one of their own', async () => {
  const { seen, pool } = countedPool()
  await pool.use(async () => {})
  await pool.use((first) => pool.use(async (second) => expect(second).not.toBe(first)))
  expect(seen).toEqual({ opened: 2, ended: 1, destroyed: 0 })
  await pool.close()
  expect(seen.ended).toBe(2)
})

test('destroys a session that saw an error, and passes the error on', async () => {
  const { seen, pool } = countedPool()
  const error = new PawlError('ROWS_REFUSED', 'row')
  await expect(pool.use(() => Promise.reject(error))).rejects.toBe(error)
  expect(seen).toEqual({ opened: 1, ended: 0, destroyed: 1 })
})

test('tries again what was lost before a transaction, as often as it has pauses', async () => {
  const twice = countedPool({ failures: 2 })
  expect(await twice.pool.use(async () => 'done')).toBe('done')
  const thrice = countedPool({ failures: 3 })
  await expect(thrice.pool.use(async () => 'done')).rejects.toMatchObject({ code: 'SINK_UNAVAILABLE' })
})

test('never tries again what may have happened', async () => {
  const { pool } = countedPool()
  let tries = 0
  const lost = async () => {
    tries++
    throw new PawlError('UNKNOWN_RESULT', 'COMMIT', { lost: true })
  }
  await expect(pool.use(lost)).rejects.toMatchObject({ code: 'UNKNOWN_RESULT' })
  expect(tries).toBe(1)
})

test('destroys a session that takes longer than it may', async () => {
  const { seen, pool } = countedPool({ timeoutMs: 20 })
  const work = pool.use(
    (session) =>
      new Promise((_, reject) => {
        session.cut = () => reject(new PawlError('SINK_UNAVAILABLE', 'cut'))
      }),
  )
  await expect(work).rejects.toMatchObject({ code: 'SINK_UNAVAILABLE' })
  expect(seen.destroyed).toBe(1)
})

test('does not hand out a session that broke while it was idle', async () => {
  const { seen, pool } = countedPool()
  await pool.use(async (session) => {
    queueMicrotask(() => setTimeout(() => session.destroy()))
  })
  await new Promise((resolve) => setTimeout(resolve, 10))
  await pool.use(async (session) => expect(session.alive).toBe(true))
  expect(seen.opened).toBe(2)
})

test('closes even when the other side takes no part in the end', async () => {
  let destroyed = false
  const destroy = () => {
    destroyed = true
  }
  const session = { alive: true, end: () => new Promise<void>(() => {}), destroy }
  const pool = sessionPool({ sink: 's', open: async () => session, idleMax: 1, timeoutMs: 1000 })
  await pool.use(async () => {})
  await pool.close()
  expect(destroyed).toBe(true)
})
