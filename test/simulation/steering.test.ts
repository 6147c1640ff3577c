import { afterAll, describe, expect, test } from 'vitest'
import type { Head } from '../../lib/model/head.ts'
import { prng } from '../../lib/model/prng.ts'
import type { Ledger } from '../../lib/ports/ledger.ts'
import { compile } from '../../lib/stream/compile.ts'
import { createDriver, isDone } from '../../lib/testing/drive.ts'
import { type Deed, deeds, steer } from '../../lib/testing/person.ts'
import { checkWorld } from '../../lib/testing/simulate.ts'
import { arrivalsOf } from '../../lib/testing/workload.ts'
import { World } from '../../lib/testing/world.ts'
import { type Sample, windows, wordCount } from './pipelines.ts'

const total = { runs: 0, calls: 0 }
const rings = 30

afterAll(() => console.log(`steering: ${total.runs} runs, a deed at each of ${total.calls} port calls, none failing`))

/** A small world, laid out alike each time, with a deed at one port call of its first processes. */
function worldOf(sample: Sample, latencyMs = 0) {
  const compiled = compile(sample.pipeline)
  const settings = {
    ...compiled.settings,
    epoch: { spanMax: 6, fuseSpanMax: 0, fuseMs: 0, convictAfter: 1_000_000 },
    checkpoint: { ...compiled.settings.checkpoint, intervalMs: 0 },
    leaseMs: 40_000,
  }
  const fixed = { ...compiled, settings }
  const world = new World({
    compiled: fixed,
    seed: 7,
    partitions: () => 2,
    ...(latencyMs === 0 ? {} : { latencyMs: () => latencyMs }),
  })
  const arrivals = arrivalsOf(fixed, sample.input, prng(11), () => 2)
  const arrive = async (from: number, to: number) => {
    for (const { source, partition, record } of arrivals.slice(from, to))
      await world.logs.get(source)!.append(partition, [record])
  }
  return { world, arrivals, arrive, head: () => world.ledger.read(compiled.topology.pipeline) }
}

/** Runs with the deed at call `at`; answers with whether so many calls were made. */
async function runWith(sample: Sample, deed: Deed, at: number): Promise<boolean> {
  const { world, arrivals, arrive, head } = worldOf(sample)
  let calls = 0
  let done: Promise<void> | null = null
  const driver = createDriver({
    world,
    mortal: true,
    script: () => () => {
      if (calls++ === at) done = steer(world, deed)
      return null
    },
  })
  await arrive(0, arrivals.length)
  await steer(world, 'hurry')
  world.starts.push({ pipeline: world.compiled.topology.pipeline, sequence: 1, wakes: 0 })
  await driver.untilQuiet()
  await done
  await driver.untilQuiet()
  const after = (await head())!
  // A wish that found no head yet was nobody's.
  if (after.paused) {
    expect(after).toMatchObject({ open: null, run: { open: false }, paused: { drain: null, why: 'maintenance' } })
    expect(after.promotedThrough).toBe(after.committed.epoch)
    if (deed === 'drain') expect(await isDone(world)).toBe(true)
    const { epoch } = after.committed
    await arrive(0, 5)
    world.starts.push({ pipeline: after.pipeline, sequence: after.run.sequence + 1, wakes: 1_000_000 })
    await driver.untilQuiet()
    expect((await head())!.committed.epoch).toBe(epoch)
    await steer(world, 'resume')
    await driver.untilQuiet()
  }
  await driver.untilDone({ rings })
  await checkWorld(world)
  return calls > at
}

const proofs: readonly (readonly [name: string, sample: Sample, deeds: readonly Deed[]])[] = [
  ['word count', wordCount(), deeds],
  ['windows', windows(), ['drain', 'abort']],
]

describe.each(proofs)('%s', (_, sample, chosen) => {
  test.each(chosen)(
    '%s at any port call keeps all that must hold, and the pipeline goes on once resumed',
    async (deed) => {
      for (let at = 0; await runWith(sample, deed, at); at++) {
        total.runs++
        total.calls = Math.max(total.calls, at + 1)
      }
      expect(total.calls).toBeGreaterThan(50)
    },
    60_000,
  )
})

test.each([
  [
    'a pause',
    'pause',
    /no epoch opens while the pipeline is paused/,
    (head: Head): Head => ({ ...head, paused: null }),
  ],
  [
    'the ends of a drain',
    'drain',
    /a drain reads lines\/\d no further than/,
    ({ paused, ...head }: Head): Head => ({
      ...head,
      paused: paused && {
        ...paused,
        drain: paused.drain?.ends ? { ends: paused.drain.ends.map((at) => ({ ...at, end: '1000000' })) } : paused.drain,
      },
    }),
  ],
] as const)('the simulation sees an epoch that ignores %s', async (_, deed, breach, blind) => {
  const { world, arrive, arrivals } = worldOf(wordCount())
  const blinded = (ledger: Ledger): Ledger => ({
    ...ledger,
    async read(id) {
      const head = await ledger.read(id)
      return head && blind(head)
    },
    async swap(expected, head, options) {
      // What it did not see it does not overwrite either.
      const real = (await ledger.read(head.pipeline))!
      const unseen = JSON.stringify(blind(real).paused) === JSON.stringify(head.paused)
      return ledger.swap(expected, unseen ? { ...head, paused: real.paused ?? null } : head, options)
    },
  })
  let calls = 0
  const driver = createDriver({
    world,
    mortal: true,
    sabotage: { place: (place) => ({ ...place, ledger: blinded(place.ledger) }) },
    script: () => () => {
      if (calls++ === 40) void steer(world, deed)
      if (calls > 60 && calls < 200 && calls % 5 === 0) void arrive(0, 3)
      return null
    },
  })
  await arrive(0, arrivals.length)
  world.starts.push({ pipeline: world.compiled.topology.pipeline, sequence: 1, wakes: 0 })
  await expect(driver.untilQuiet()).rejects.toThrow(breach)
})
