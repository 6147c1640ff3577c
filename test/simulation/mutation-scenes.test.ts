import { describe, expect, test } from 'vitest'
import { stepCalls } from '../../lib/epoch/execute.ts'
import { ring } from '../../lib/epoch/ring.ts'
import { deadLetter, json, nullable, pipeline, text, topic } from '../../lib/index.ts'
import type { Head } from '../../lib/model/head.ts'
import type { RejectedRecord } from '../../lib/model/manifest.ts'
import type { Place } from '../../lib/ports/place.ts'
import type { Sabotage } from '../../lib/testing/actor.ts'
import type { Sample } from './pipelines.ts'
import { wordCount } from './pipelines.ts'
import * as sinks from './sabotaged-sinks.ts'
import * as broken from './sabotages.ts'
import { brokenIn, type StageOptions, stage } from './stage.ts'

const oneLane = wordCount(12, 1)
const small: StageOptions = { settings: { epoch: { spanMax: 4, fuseSpanMax: 1000, fuseMs: 0, convictAfter: 2 } } }

/** Restores the sink to its first epoch, and goes on. */
async function restoredSink(sabotage?: Sabotage): Promise<void> {
  const at = stage(oneLane, { ...small, sabotage })
  at.arrive(4)
  await at.run()
  const backup = at.world.sinks.get('counts')!.snapshot()
  at.arrive(4)
  await at.run()
  at.world.sinks.get('counts')!.restore(backup)
  at.world.restored = true
  at.arrive()
  await at.run(6)
  await at.settle()
}

describe('invariant 6: the simulation catches', () => {
  test('skipping whatever is at or below the marker, once a sink is restored', async () => {
    expect(await brokenIn(() => restoredSink(sinks.sinkOf('marker-ge')))).toMatch(/shows epoch/)
    expect(await brokenIn(() => restoredSink())).toBeNull()
  })

  test('markers without a hash, once the ledger is rewound', async () => {
    const rewound = async (sabotage?: Sabotage) => {
      const at = stage(oneLane, { ...small, sabotage })
      at.world.damaged = true
      at.arrive(4)
      await at.run()
      const backup = at.world.ledger.snapshot()
      at.arrive(4)
      await at.run()
      at.world.ledger.restore(backup)
      at.deploy(oneLane.pipeline, { epoch: { spanMax: 8, fuseSpanMax: 1000, fuseMs: 0, convictAfter: 2 } })
      at.arrive()
      await at.wake(4)
      return at
    }
    const at = await rewound(sinks.markerWithoutHash)
    expect(await brokenIn(() => at.settle())).toMatch(/once and whole/)
    expect(await (await rewound()).parked()).toMatch(/LEDGER_REWOUND|MARKER_UNKNOWN/)
  })
})

describe('invariant 7: the simulation catches', () => {
  test('an absent marker that is taken for a beginning', async () => {
    const lost = async (sabotage?: Sabotage) => {
      let calls = 0
      const at = stage(oneLane, {
        ...small,
        sabotage,
        script: (actor) => (call) => {
          const dies = actor === 0 && call.method === 'promote' && ++calls === 2
          return dies ? { fault: 'crash-after' } : null
        },
      })
      at.world.damaged = true
      at.arrive(8)
      at.world.starts.push({ pipeline: 'word-count', sequence: 1, wakes: 0 })
      await at.quiet()
      at.world.sinks.get('counts')!.dropMarker(0)
      return at
    }
    const at = await lost(sinks.absenceIsBeginning)
    expect(await brokenIn(() => at.settle())).toMatch(/once and whole/)
    const sound = await lost()
    await sound.wake(2)
    expect(await sound.parked()).toBe('MARKER_MISSING')
  })
})

const two = (withLetters: boolean): Sample => {
  const lines = pipeline('two').from(topic('lines', { key: nullable(text()), value: text() }))
  const first = lines.to('first', topic('first', { key: nullable(text()), value: text() }))
  const second = first.to('second', topic('second', { key: nullable(text()), value: text() }))
  return { pipeline: withLetters ? second : first, input: { lines: ['a', 'b', 'c', 'd'] } }
}

describe('invariant 9: the simulation catches', () => {
  test('lanes that come from the running configuration', async () => {
    const removed = async (sabotage?: Sabotage) => {
      const at = stage(two(true), { sabotage })
      at.world.sinks.get('second')!.down = false
      at.arrive(2)
      await at.run()
      at.world.sinks.get('second')!.down = true
      at.arrive()
      await at.wake(1)
      at.deploy(two(false).pipeline)
      at.world.sinks.get('second')!.down = false
      return at
    }
    const at = await removed(broken.lanesFromConfiguration)
    expect(await brokenIn(() => at.run(4))).toMatch(/is finalized when lane second\/0 shows it/)
    const sound = await removed()
    await sound.wake(2)
    expect(await sound.parked()).toBe('SINK_MISSING')
  })
})

describe('invariant 11: the simulation catches', () => {
  test('a sink that forgets what it prepared during an outage', async () => {
    const outage = async (sabotage?: Sabotage) => {
      const at = stage(oneLane, { ...small, sabotage })
      at.arrive(4)
      await at.run()
      at.world.sinks.get('counts')!.down = true
      at.arrive(4)
      await at.wake(1)
      at.world.clock.advance(3_600_000)
      at.world.sinks.get('counts')!.down = false
      at.arrive()
      await at.run()
      await at.settle()
    }
    expect(await brokenIn(() => outage(sinks.forgetful))).toMatch(/shows epoch/)
    expect(await brokenIn(() => outage())).toBeNull()
  })
})

/** Rings alone: at each call of the run, a record and a ring that stalls between its own calls. */
async function ringRaces(wake: typeof ring, sabotage?: Sabotage): Promise<string | null> {
  let calls = 1
  for (let at = 0; at < calls; at++) {
    for (const [stallAt, stall] of [
      [9, 0],
      [0, 2],
      [1, 1],
      [1, 3],
      [1, 8],
      [2, 2],
    ] as const) {
      const world = stage(oneLane, { sabotage, script: (actor) => raceAt(actor) })
      let late: Promise<unknown> = Promise.resolve()
      const raceAt = (actor: number) => (call: { index: number }) => {
        if (actor === 0) calls = Math.max(calls, call.index + 1)
        if (actor !== 0 || call.index !== at) return null
        world.append('lines', 0, 'late words')
        late = world.ring(({ index }) => (index === stallAt ? { fault: 'zombie', calls: stall } : null), wake)
        return null
      }
      world.arrive(3)
      await world.ring()
      await world.quiet()
      world.world.releaseAll()
      await late
      await world.quiet()
      if (!(await world.done()))
        return `the ring at call ${at}, stalled at its call ${stallAt} for ${stall}, woke nobody`
    }
  }
  return null
}

/** Reads the head first, and counts afterwards. */
const headBeforeCount = async (
  place: Pick<Place, 'ledger' | 'launcher'>,
  id: string,
): Promise<'absorbed' | 'started'> => {
  const head = await place.ledger.read(id)
  const wakes = await place.ledger.ring(id)
  if (head?.run.open && (await place.launcher.status(head.run.place)) === 'running') return 'absorbed'
  await place.launcher.start({ pipeline: id, sequence: (head?.run.sequence ?? 0) + 1, wakes })
  return 'started'
}

describe('invariant 13: the simulation catches', () => {
  test('a ring that reads the head before it counts, and a run that leaves without asking for rings', async () => {
    expect(await ringRaces(headBeforeCount)).toMatch(/woke nobody/)
    expect(await ringRaces(ring, broken.leaveWithoutWakes)).toMatch(/woke nobody/)
    expect(await ringRaces(ring)).toBeNull()
  }, 120_000)

  test('a hand-over that starts before it releases', async () => {
    const handedOver = async (sabotage?: Sabotage) => {
      const at = stage(oneLane, { settings: { ...small.settings, runEpochsMax: 1 }, sabotage })
      at.arrive()
      await at.ring()
      await at.quiet()
      return at.done()
    }
    expect(await handedOver(broken.startBeforeRelease)).toBe(false)
    expect(await handedOver()).toBe(true)
  })

  test('an execution that does not count its events', async () => {
    const long = (sabotage?: Sabotage) =>
      brokenIn(async () => {
        const endless = { runEpochsMax: 1_000_000, epoch: { spanMax: 1, fuseSpanMax: 10, fuseMs: 0, convictAfter: 2 } }
        const at = stage(wordCount(800, 1), { settings: endless, sabotage })
        at.arrive()
        await at.run()
      })
    expect(await long(broken.endlessRuns)).toMatch(/an execution stays below 25000 events/)
    expect(await long()).toBeNull()
  }, 60_000)

  test('a plan that travels from step to step', async () => {
    const wide = (sabotage?: Sabotage) =>
      brokenIn(async () => {
        const at = stage(wordCount(3, 1), { partitions: 3000, sabotage })
        at.arrive()
        await at.run()
      })
    expect(await wide(broken.planInPayload)).toMatch(/the output of Plan is at most 262144 bytes/)
    expect(await wide()).toBeNull()
  })
})

describe('invariant 15: the simulation catches', () => {
  test('a restore that lowers the epoch', async () => {
    let savepoint: Head | null = null
    const at = stage(oneLane, { ...small, sabotage: broken.restoreLowersEpoch(() => savepoint) })
    at.arrive(4)
    await at.run()
    const first = await at.head()
    at.arrive(4)
    await at.run()
    savepoint = first
    at.arrive()
    expect(await brokenIn(() => at.run(3))).toMatch(/the committed epoch does not fall/)
  })
})

describe('a rewound ledger', () => {
  test('finalize moves nothing for a manifest that is not the committed one', async () => {
    const finalized = async (sabotage?: Sabotage) => {
      const at = stage(oneLane, { ...small, sabotage })
      at.arrive(4)
      await at.run()
      at.world.sinks.get('counts')!.down = true
      at.arrive(4)
      await at.wake(1)
      const head = await at.head()
      const { job } = at.driver.actors.at(-1)!
      const run = { ...head.run, pipeline: head.pipeline, lingerMs: 0, resume: false, startedAtMs: 0 }
      const { epoch } = head.committed
      await at.world.ledger.swap(head.revision, {
        ...head,
        revision: head.revision + 1,
        run: { ...head.run, open: true },
      })
      const input = { run, epoch, hash: 'of another history', generation: head.generation } as never
      await { ...stepCalls(job), ...sabotage?.steps?.(job) }.Finalize!(input)
      return { broken: at.world.broken, through: (await at.head()).promotedThrough - epoch }
    }
    expect(await finalized()).toEqual({ broken: null, through: -1 })
    expect((await finalized(broken.finalizeUnmatched)).broken).toMatch(/is finalized when lane/)
  })
})

test('dead letters are a sink like any other: their output is not dropped with their pipeline file', async () => {
  const letters = topic('letters', { key: nullable(text()), value: json<RejectedRecord>() })
  const file = (dead: boolean) =>
    pipeline('letters', dead ? { onError: deadLetter('letters', letters) } : {})
      .from(topic('lines', { key: nullable(text()), value: json<string>() }))
      .to('out', topic('out', { key: nullable(text()), value: text() }))
  const at = stage({ pipeline: file(true), input: { lines: ['a'] } })
  at.world.damaged = true
  at.append('lines', 0, '{broken')
  at.arrive()
  at.world.sinks.get('letters')!.down = false
  await at.run()
  at.world.sinks.get('letters')!.down = true
  at.append('lines', 0, '{broken')
  await at.wake(1)
  at.deploy(file(false))
  await at.wake(2)
  expect(await at.parked()).toBe('SINK_MISSING')
})
