import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { decide } from '../../lib/epoch/decide.ts'
import { gatherFacts } from '../../lib/epoch/facts.ts'
import { plan } from '../../lib/epoch/plan.ts'
import { abortRun, drain, hurry, pause, resume } from '../../lib/epoch/steer.ts'
import { PawlError } from '../../lib/model/errors.ts'
import type { Head } from '../../lib/model/head.ts'
import { createDriver } from '../../lib/testing/drive.ts'
import { type Workbench, workbench } from './support.ts'

const wish = { by: 'ada', why: 'migration' }

/** A pipeline whose input so far is visible. */
async function caughtUp(options: Parameters<typeof workbench>[0] = {}): Promise<Workbench & { rest(): Promise<void> }> {
  const bench = workbench({ partitions: 1, ...options })
  const driver = createDriver({ world: bench.world, mortal: true, script: () => () => null })
  bench.append(0, 'a', 'b')
  bench.world.starts.push({ pipeline: 'counting', sequence: 1, wakes: 0 })
  await driver.untilQuiet()
  return { ...bench, rest: driver.untilQuiet }
}

const start = async ({ world, head }: Workbench) => {
  const { run } = await head()
  world.starts.push({ pipeline: 'counting', sequence: run.sequence + 1, wakes: world.names.size + 1000 })
}

describe('a pause', () => {
  test('keeps later runs from opening an epoch, until it is lifted', async () => {
    const bench = await caughtUp()
    const { head, changed } = await pause(bench.job, wish)
    expect(changed).toBe(true)
    expect(head.paused).toMatchObject({ by: 'ada', why: 'migration', drain: null })
    bench.append(0, 'c')
    await start(bench)
    await bench.rest()
    expect(await bench.head()).toMatchObject({ committed: { epoch: head.committed.epoch }, run: { open: false } })
    expect((await resume(bench.job)).changed).toBe(true)
    await bench.rest()
    expect(await bench.head()).toMatchObject({ committed: { epoch: head.committed.epoch + 1 }, paused: null })
  })

  test('that is there already keeps its time and its reason', async () => {
    const bench = await caughtUp()
    const first = await pause(bench.job, wish)
    const again = await pause(bench.job, { by: 'bob', why: null })
    expect(again.changed).toBe(false)
    expect(again.head.paused).toEqual(first.head.paused)
  })

  test('a lost answer is read back', async () => {
    let lost = false
    const bench = await caughtUp({
      script: ({ method }) => {
        if (method !== 'swap' || lost) return null
        lost = true
        return { fault: 'reply-lost' }
      },
    })
    await pause(bench.job, wish)
    expect((await bench.head()).paused).toMatchObject(wish)
  })
})

describe('a drain', () => {
  test('makes visible what the logs held, reads nothing beyond, and ends as a pause', async () => {
    const bench = await caughtUp({ settings: { epoch: { spanMax: 2, fuseSpanMax: 10, fuseMs: 0, convictAfter: 2 } } })
    const before = await bench.head()
    bench.append(0, 'c', 'd', 'e')
    await drain(bench.job, wish)
    const run = { ...bench.run, id: 'run-9', sequence: (await bench.head()).run.sequence + 1 }
    bench.world.starts.splice(0)
    expect(await plan(bench.job, { run })).toMatchObject({ next: 'operate' })
    expect((await bench.head()).paused?.drain?.ends).toEqual([{ source: 'lines', partition: 0, end: '5' }])
    bench.append(0, 'too late')
    bench.world.gone.add(run.place)
    await start(bench)
    await bench.rest()
    const after = await bench.head()
    expect(after).toMatchObject({ paused: { drain: null }, promotedThrough: before.committed.epoch + 2 })
    const bytes = (await bench.world.store.read(after.committed.manifest.name))!
    expect(JSON.parse(bytes.toString()).progress).toMatchObject([{ partition: 0, end: '5' }])
  })

  test('with nothing left to read pauses at once', async () => {
    const bench = await caughtUp()
    const { head } = await drain(bench.job, wish)
    await bench.rest()
    expect(await bench.head()).toMatchObject({ paused: { drain: null }, committed: { epoch: head.committed.epoch } })
  })
})

test('resume lifts a failure park, lets a parked promotion try at once, and finds nothing to lift otherwise', async () => {
  const bench = await caughtUp()
  expect((await resume(bench.job)).changed).toBe(false)
  await bench.rest()
  const put = async (change: Partial<Head>) => {
    const head = await bench.head()
    await bench.world.ledger.swap(head.revision, { ...head, ...change, revision: head.revision + 1, write: 'x' })
  }
  const parked = { code: 'OPERATOR_FAILED', message: 'm', sinceMs: 1, retries: 3, build: 'b' }
  const failures = { ...(await bench.head()).failures, count: 4, spanMax: 2 }
  await put({ parked: { ...parked, kind: 'failure', retryAtMs: null }, failures })
  expect((await resume(bench.job)).head).toMatchObject({ parked: null, failures: { count: 0, spanMax: null } })
  await put({ parked: { ...parked, kind: 'promotion', retryAtMs: 9e15 } })
  const nowMs = bench.world.clock.nowMs()
  expect((await resume(bench.job)).head.parked).toMatchObject({ kind: 'promotion', retryAtMs: nowMs, retries: 3 })
})

test('a hurry is granted by the next commit, or by a look that finds nothing', async () => {
  const bench = await caughtUp({ settings: { leaseMs: 150_000 } })
  bench.append(0, 'c')
  expect((await hurry(bench.job)).head.hurry).toMatchObject({ epoch: null })
  expect((await hurry(bench.job)).changed).toBe(false)
  const { committed } = await bench.head()
  await bench.rest()
  expect(await bench.head()).toMatchObject({ hurry: null, promotedThrough: committed.epoch + 1 })
  await hurry(bench.job)
  await bench.rest()
  expect(await bench.head()).toMatchObject({ hurry: null, promotedThrough: committed.epoch + 1 })
})

describe('an abort', () => {
  test('takes the pipeline from its run, so that the attempt can never commit, and counts as its failure', async () => {
    const bench = await caughtUp()
    bench.append(0, 'c')
    const run = { ...bench.run, id: 'run-9', sequence: (await bench.head()).run.sequence + 1 }
    await plan(bench.job, { run })
    const seen = await bench.head()
    expect(await abortRun(bench.job, seen, wish)).toMatchObject({ result: 'aborted', stopped: false })
    const after = await bench.head()
    expect(after).toMatchObject({ open: null, generation: seen.generation + 1, run: { open: false } })
    expect(after.failures).toMatchObject({ count: 1, last: { code: 'EPOCH_ABORTED' } })
    expect(after.failures.last?.message).toMatch(/was aborted by ada: migration$/)
    expect(decide(await gatherFacts(bench.job, { run }))).toMatchObject({ decision: 'retire' })
    await bench.rest()
    expect(await bench.head()).toMatchObject({ promotedThrough: seen.committed.epoch + 1 })
  })

  test('rings for a fresh run even where the old one cannot be ended', async () => {
    const bench = await caughtUp()
    bench.append(0, 'c')
    const run = { ...bench.run, id: 'run-9', sequence: (await bench.head()).run.sequence + 1 }
    await plan(bench.job, { run })
    const seen = await bench.head()
    const { pipeline } = bench.job.compiled.topology
    const rungBefore = await bench.world.ledger.wakes(pipeline)
    const stop = () => Promise.reject(new PawlError('LAUNCHER_UNAVAILABLE', 'a test'))
    const place = { ...bench.job.place, launcher: { ...bench.job.place.launcher, stop } }
    await expect(abortRun({ ...bench.job, place }, seen, wish)).rejects.toMatchObject({ code: 'LAUNCHER_UNAVAILABLE' })
    expect((await bench.head()).run.open).toBe(false)
    expect(await bench.world.ledger.wakes(pipeline)).toBe(rungBefore + 1)
  })

  test('is refused once the attempt is another one, or there is none', async () => {
    const bench = await caughtUp()
    const seen = await bench.head()
    expect(await abortRun(bench.job, seen, wish)).toMatchObject({ result: 'refused' })
    expect(await bench.head()).toEqual(seen)
  })
})

test('a head of version 1 from before commands could steer is read, surveyed, and paused', async () => {
  const old = JSON.parse(readFileSync(new URL('fixtures/head-v1.json', import.meta.url), 'utf8')) as Head
  expect('paused' in old || 'hurry' in old).toBe(false)
  const bench = workbench()
  const { run } = old
  const history = { epoch: 0, attempt: 'a', generation: 0, manifest: old.committed.manifest, atMs: 0 }
  await bench.world.ledger.create({ ...old, revision: 1 }, history)
  const facts = await gatherFacts(bench.job, { run: { ...bench.run, id: run.id, sequence: run.sequence } })
  expect(decide({ ...facts, nowMs: 1e13 })).toMatchObject({ decision: 'survey' })
  await pause(bench.job, wish)
  expect(await bench.head()).toMatchObject({ ...old, revision: 2, write: expect.any(String), paused: wish })
})
