import { mkdtempSync, readFileSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { prng } from '../../lib/model/prng.ts'
import { startChild } from '../support/child.ts'
import { epochLines, modePipeline } from '../support/mode-worker.ts'
import { install } from '../support/table-runs.ts'

const worker = new URL('../support/mode-worker.ts', import.meta.url)
const lines = 300
const killsMax = 6

const bytesOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0

/** Runs the worker to its end, killing it on the way; what its target shows, and how often it was killed. */
async function ordeal(mode: 'at-least-once' | 'at-most-once') {
  const directory = mkdtempSync(join(tmpdir(), 'pawl-modes-'))
  const file = join(directory, 'target')
  const runs = install(modePipeline(mode, file), { directory, stage: 'modes' })
  onTestFinished(runs.remove)
  await runs.append(...Array.from({ length: lines }, (_, i) => `${i}`))
  const random = prng(17)
  for (let kills = 0; ; kills++) {
    const child = startChild(worker, [directory, mode, file])
    let running = true
    const ended = child.ended.finally(() => {
      running = false
    })
    // Killed while it shows an epoch, somewhere between its first and its last row.
    const before = bytesOf(file)
    while (kills < killsMax && running && bytesOf(file) === before) await sleep(1)
    if (kills < killsMax) {
      await sleep(random.int(12))
      child.kill('SIGKILL')
    }
    const { code } = await ended
    if (code !== 0) continue
    const { reason, unconfirmed } = JSON.parse(child.lines.at(-1)!)
    expect(reason).toBe('caught-up')
    const copies = new Map<string, number>()
    for (const line of readFileSync(file, 'utf8').split('\n').slice(0, -1))
      copies.set(line, (copies.get(line) ?? 0) + 1)
    const repeated = [...copies.values()].reduce((sum, count) => sum + count - 1, 0)
    return { kills, repeated, missing: lines - copies.size, unconfirmed: unconfirmed as number }
  }
}

test('at least once, killed again and again: nothing is missing, and no more is repeated than was under way', async () => {
  const { kills, repeated, missing, unconfirmed } = await ordeal('at-least-once')
  expect(kills).toBeGreaterThanOrEqual(5)
  expect({ missing, unconfirmed }).toEqual({ missing: 0, unconfirmed: 0 })
  expect(repeated).toBeGreaterThan(0)
  expect(repeated).toBeLessThanOrEqual(kills * epochLines)
})

test('at most once, killed again and again: nothing is repeated, and what is missing was counted', async () => {
  const { kills, repeated, missing, unconfirmed } = await ordeal('at-most-once')
  expect(kills).toBeGreaterThanOrEqual(5)
  expect(repeated).toBe(0)
  expect(missing).toBeGreaterThan(0)
  expect(missing).toBeLessThanOrEqual(unconfirmed)
  expect(unconfirmed).toBeLessThanOrEqual(kills * epochLines)
})
