import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished } from 'vitest'
import { prng } from '../../lib/model/prng.ts'
import { startChild } from '../support/child.ts'
import { postgresTest as test } from '../support/postgres.ts'
import { install } from '../support/table-runs.ts'
import { crashPipeline } from '../support/table-worker.ts'

const worker = new URL('../support/table-worker.ts', import.meta.url)
const lines = 3000
const killsMin = 10

test('two tables show whole epochs at every instant, and everything once, while the worker is killed again and again', async ({
  postgres,
}) => {
  await postgres.query('CREATE TABLE seen (id int); CREATE TABLE totals (customer text PRIMARY KEY, orders int)')
  const directory = mkdtempSync(join(tmpdir(), 'pawl-crash-'))
  const runs = install(crashPipeline(postgres.url), { directory, stage: 'crash' })
  onTestFinished(runs.remove)
  await runs.append(...Array.from({ length: lines }, (_, i) => `${i} c${i % 7}`))
  const random = prng(31)
  let kills = 0
  let last = -1
  for (let finished = false; !finished; ) {
    const child = startChild(worker, [directory, 'crash', postgres.url])
    const ended = child.ended.then(({ code }) => code)
    while (child.lines.length === 0) await sleep(5)
    const killer = sleep(kills < killsMin ? 40 + random.int(250) : 60_000, null, { ref: false }).then(() =>
      child.kill('SIGKILL'),
    )
    const code = await Promise.race([ended, killer.then(() => ended)])
    finished = code === 0
    if (!finished) kills++
    const [{ n, top }] = (await postgres.query(
      'SELECT count(*)::int AS n, coalesce(max(id), -1) AS top FROM seen',
    )) as [{ n: number; top: number }]
    expect(n).toBe(top + 1)
    expect(top).toBeGreaterThanOrEqual(last)
    last = top
    const [{ sum }] = (await postgres.query('SELECT coalesce(sum(orders), 0)::int AS sum FROM totals')) as [
      { sum: number },
    ]
    // An epoch takes 40 lines at most, and one sink may be an epoch ahead of the other.
    expect(Math.abs(sum - n)).toBeLessThanOrEqual(40)
  }
  expect(kills).toBeGreaterThanOrEqual(5)
  expect(last).toBe(lines - 1)
  const totals = await postgres.query('SELECT * FROM totals ORDER BY customer')
  const wanted = Array.from({ length: 7 }, (_, c) => ({
    customer: `c${c}`,
    orders: Array.from({ length: lines }, (_, i) => i % 7).filter((i) => i === c).length,
  }))
  expect(totals).toEqual(wanted)
})
