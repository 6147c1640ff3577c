import { describe, expect, test } from 'vitest'
import { json, nullable, pipeline, type Settings, text, topic } from '../../lib/index.ts'
import type { Head } from '../../lib/model/head.ts'
import type { Manifest } from '../../lib/model/manifest.ts'
import { objectsOf } from '../../lib/testing/audit.ts'
import { type Sample, windows, wordCount } from './pipelines.ts'
import { type StageOptions, stage } from './stage.ts'

const oneLane = wordCount(16, 1)
const small = (more: Partial<Settings> = {}): StageOptions => ({
  settings: { epoch: { spanMax: 4, fuseSpanMax: 1000, fuseMs: 0, convictAfter: 2 }, ...more },
})
const counts = (at: ReturnType<typeof stage>) => at.world.sinks.get('counts')!

describe('a sink that is restored from a backup', () => {
  test('is healed, by one epoch and by several', async () => {
    for (const lost of [1, 3]) {
      const at = stage(oneLane, small())
      at.arrive(4)
      await at.run()
      const backup = counts(at).snapshot()
      for (let epoch = 0; epoch < lost; epoch++) {
        at.arrive(3)
        await at.run()
      }
      counts(at).restore(backup)
      at.arrive()
      await at.run()
      expect(at.events.filter(({ event }) => event === 'healed')).toHaveLength(1)
      await at.settle()
    }
  })

  test('parks as SINK_ROLLED_BACK when what it lost is not retained any more', async () => {
    const at = stage(
      oneLane,
      small({ retain: { epochs: 1 }, epoch: { spanMax: 1, fuseSpanMax: 9, fuseMs: 0, convictAfter: 2 } }),
    )
    at.world.damaged = true
    at.arrive(1)
    await at.run()
    const backup = counts(at).snapshot()
    at.arrive(13)
    await at.run()
    counts(at).restore(backup)
    at.arrive()
    await at.wake(2)
    expect(await at.parked()).toBe('SINK_ROLLED_BACK')
  })
})

describe('a ledger that is rewound', () => {
  test('is refused by the sinks, never silently, however far it was rewound', async () => {
    for (const back of [1, 2, 3]) {
      const at = stage(oneLane, small())
      at.world.damaged = true
      const backups = []
      for (let epoch = 0; epoch < 4; epoch++) {
        backups.push(at.world.ledger.snapshot())
        at.arrive(3)
        await at.run()
      }
      const shown = at.values('counts')
      at.world.ledger.restore(backups[4 - back]!)
      at.arrive()
      await at.wake(3)
      expect(await at.parked()).toMatch(/LEDGER_REWOUND|MARKER_UNKNOWN/)
      expect(at.values('counts')).toEqual(shown)
    }
  })
})

describe('a marker store', () => {
  test('that lost a marker parks the pipeline as MARKER_MISSING', async () => {
    const at = stage(oneLane, small())
    at.world.damaged = true
    at.arrive(4)
    await at.run()
    counts(at).dropMarker(0)
    at.arrive()
    await at.wake(2)
    expect(await at.parked()).toBe('MARKER_MISSING')
  })

  test('of a pipeline that was reset under its old name parks the new one as MARKER_FOREIGN', async () => {
    const at = stage(oneLane, small())
    at.world.damaged = true
    const empty = at.world.ledger.snapshot()
    at.arrive(4)
    await at.run()
    const shown = at.values('counts')
    at.world.ledger.restore(empty)
    at.world.names.clear()
    at.arrive()
    await at.wake(2)
    expect(await at.parked()).toBe('MARKER_FOREIGN')
    expect(at.values('counts')).toEqual(shown)
  })
})

describe('another pipeline file', () => {
  const sinks = (...names: string[]): Sample => ({
    pipeline: names.reduce(
      (stream, name) => stream.to(name, topic(name, { key: nullable(text()), value: text() })) as never,
      pipeline('sinks').from(topic('lines', { key: nullable(text()), value: text() })),
    ),
    input: { lines: Array.from({ length: 12 }, (_, i) => `line ${i}`) },
  })

  test('may change the number of lanes, up and down', async () => {
    const at = stage(wordCount(16, 2), small())
    for (const lanes of [4, 1, 3]) {
      at.arrive(4)
      await at.run()
      at.deploy(wordCount(16, lanes).pipeline)
    }
    at.arrive()
    await at.run()
    const chain = await at.settle()
    expect(chain.head.lanes).toHaveLength(4)
  })

  test('may add a sink, remove it, and add it again: it goes on from its marker', async () => {
    const at = stage(sinks('one'), small())
    for (const names of [['one', 'two'], ['one'], ['one', 'two']]) {
      at.arrive(3)
      await at.run()
      at.deploy(sinks(...names).pipeline)
    }
    at.arrive()
    await at.run()
    await at.settle()
    expect(at.values('two')).toHaveLength(6)
  })

  test('may not remove a sink that has unpromoted output: SINK_MISSING until it is back', async () => {
    const at = stage(sinks('one', 'two'), small())
    at.arrive(3)
    await at.run()
    at.world.sinks.get('two')!.down = true
    at.arrive(3)
    await at.wake()
    at.world.sinks.get('two')!.down = false
    at.deploy(sinks('one').pipeline)
    await at.wake(2)
    expect(await at.parked()).toBe('SINK_MISSING')
    at.deploy(sinks('one', 'two').pipeline)
    at.arrive()
    await at.run()
    await at.settle()
    expect(at.values('two')).toHaveLength(12)
  })

  const keyed = (source: string, operator: string): Sample => ({
    pipeline: pipeline('keyed')
      .from(topic('lines', { key: nullable(text()), value: text() }), { id: source })
      .keyBy('word', (word) => word)
      .count(operator)
      .to('counts', topic('counts', { key: text(), value: json<number>() })),
    input: { lines: ['a', 'b', 'c'] },
  })

  test.each([
    ['lines', 'renamed', 'operator'],
    ['renamed', 'count', 'source'],
  ])(
    'that renames source or operator (%s, %s) is refused as LINEAGE_CHANGED, naming the %s',
    async (source, operator, fault) => {
      const at = stage(keyed('lines', 'count'), small())
      at.arrive()
      await at.run()
      at.deploy(keyed(source, operator).pipeline)
      at.append(source, 0, 'd')
      await at.wake(2)
      const { parked, committed } = await at.head()
      expect(parked?.code).toBe('LINEAGE_CHANGED')
      expect(parked?.message).toContain(fault === 'operator' ? 'count' : 'lines')
      at.deploy(keyed('lines', 'count').pipeline)
      at.append('lines', 0, 'd')
      await at.run()
      expect((await at.settle()).head.committed.epoch).toBeGreaterThan(committed.epoch)
    },
  )

  test('may not change the shards in which state is kept: LINEAGE_CHANGED, and nothing is lost', async () => {
    for (const [before, after] of [
      [1, 2],
      [2, 1],
      [2, 3],
    ]) {
      const at = stage(wordCount(16, 1), { settings: { ...small().settings, shards: before } })
      at.arrive(8)
      await at.run()
      at.deploy(wordCount(16, 1).pipeline, { shards: after })
      at.arrive()
      await at.wake(2)
      expect((await at.head()).parked).toMatchObject({ code: 'LINEAGE_CHANGED' })
    }
  })

  const labelled = (label: string): Sample => ({
    pipeline: pipeline('labelled')
      .from(topic('lines', { key: nullable(text()), value: text() }))
      .map(`label-${label}`, label === 'a' ? (value) => `a ${value}` : (value) => `b ${value}`)
      .to('out', topic('out', { key: nullable(text()), value: text() })),
    input: { lines: Array.from({ length: 12 }, (_, i) => `line ${i}`) },
  })

  test('deployed in mid-epoch makes its tasks refuse: planned again, no epoch mixes builds, nobody failed', async () => {
    for (let call = 0; call < 60; call += 3) {
      const at = stage(labelled('a'), {
        ...small(),
        cold: true,
        script:
          (actor) =>
          ({ index }) => {
            if (actor === 0 && index === call) at.deploy(labelled('b').pipeline)
            return null
          },
      })
      at.arrive()
      await at.run()
      const chain = await at.settle()
      const builds = [...new Set(chain.manifests.slice(1).map((manifest) => manifest.build))]
      expect(builds.length).toBeLessThanOrEqual(2)
      expect(at.values('out')).toHaveLength(12)
      const aborts = at.events.filter(({ event }) => event === 'aborted')
      for (const aborted of aborts) expect(aborted).toMatchObject({ code: 'BUILD_CHANGED' })
      expect(at.events.some(({ event }) => event === 'parked')).toBe(false)
    }
  })
})

describe('rings', () => {
  test('alone keep a pipeline going, doubled and racing with a run that leaves', async () => {
    for (let gap = 1; gap < 30; gap++) {
      const at = stage(oneLane, {
        ...small(),
        script:
          (actor) =>
          ({ index }) => {
            if (actor < 3 && index % gap === gap - 1 && index < 200) {
              at.arrive(1)
              void at.ring()
              if (index % 2 === 0) void at.ring()
            }
            return null
          },
      })
      at.arrive(1)
      await at.ring()
      for (let turns = 0; turns < 5; turns++) await at.quiet()
      expect(await at.done(), `a ring at every ${gap}th call`).toBe(true)
    }
  })

  test('that are lost are made good by the next one', async () => {
    const at = stage(oneLane, small())
    at.arrive(4)
    await at.ring()
    await at.quiet()
    at.arrive(4)
    expect(await at.done()).toBe(false)
    at.arrive()
    await at.ring()
    await at.quiet()
    expect(await at.done()).toBe(true)
    await at.settle()
  })

  test('case 67: repeated and forged ones change no result', async () => {
    const at = stage(oneLane, small())
    at.arrive()
    for (let i = 0; i < 5; i++) await at.ring()
    await at.quiet()
    const { committed } = await at.head()
    for (let i = 0; i < 5; i++) {
      await at.ring()
      await at.quiet()
    }
    expect((await at.head()).committed).toEqual(committed)
    await at.settle()
  })
})

describe('a sink that is down', () => {
  test('for longer than every timeout parks the promotion, loses nothing, and goes on by itself', async () => {
    const at = stage(oneLane, small())
    at.arrive(4)
    await at.run()
    counts(at).down = true
    at.arrive()
    for (let hour = 0; hour < 30; hour++) {
      await at.wake()
      at.world.clock.advance(3_600_000)
    }
    const { parked, committed, promotedThrough } = await at.head()
    expect(parked).toMatchObject({ kind: 'promotion', code: 'SINK_UNAVAILABLE' })
    expect(promotedThrough).toBe(committed.epoch - 1)
    counts(at).down = false
    await at.run()
    const chain = await at.settle()
    expect(chain.head.parked).toBeNull()
  })
})

describe('a log', () => {
  const disturbed = async (disturb: (at: ReturnType<typeof stage>) => void, settings: Partial<Settings> = {}) => {
    const at = stage(oneLane, small(settings))
    at.world.damaged = true
    at.arrive(8)
    await at.run()
    disturb(at)
    await at.wake(2)
    return at
  }

  test('that was created again parks as TOPIC_RECREATED', async () => {
    const at = await disturbed(({ world }) => world.logs.get('lines')!.recreate())
    expect(await at.parked()).toBe('TOPIC_RECREATED')
  })

  test('that lost offsets parks as LOG_OFFSET_LOST', async () => {
    const at = await disturbed((on) => {
      on.arrive(6)
      const log = on.world.logs.get('lines')!
      void log.bounds().then(({ partitions }) => {
        for (const { partition, end } of partitions) log.truncateBefore(partition, end)
      })
    })
    expect(await at.parked()).toBe('LOG_OFFSET_LOST')
  })

  test('that grows partitions in between is read from the beginning of the new ones', async () => {
    const at = stage(oneLane, small())
    at.arrive(8)
    await at.run()
    at.world.logs.get('lines')!.grow(5)
    at.append('lines', 4, 'one', 'two')
    at.append('lines', 3, 'three')
    at.arrive()
    await at.run()
    const chain = await at.settle()
    expect(chain.manifests.at(-1)!.progress).toHaveLength(5)
  })
})

describe('windows', () => {
  test('fire when a partition falls idle, without a record', async () => {
    const at = stage(windows(30), small())
    at.arrive()
    await at.run()
    const before = at.values('totals').length
    at.world.clock.advance(60_000)
    await at.ring()
    await at.quiet()
    await at.settle()
    expect(at.values('totals').length).toBeGreaterThanOrEqual(before)
  })
})

test('case 55: what an old savepoint needs is kept, with its whole delta chain, however much is collected', async () => {
  const at = stage(wordCount(40, 1), small({ retain: { epochs: 1 } }))
  const storedOf = (manifest: Manifest) => objectsOf(manifest).filter(({ name }) => at.world.store.snapshot().has(name))
  let named: Head['savepoints'] = []
  for (let epoch = 1; epoch <= 21; epoch++) {
    at.append('lines', 0, `pawl ratchet tooth${epoch % 5}`)
    await at.run()
    if (epoch !== 3) continue
    const head = await at.head()
    named = [{ name: 'before', epoch, manifest: head.committed.manifest }]
    const wanted = { ...head, savepoints: named, revision: head.revision + 1, write: 'savepoint' }
    expect(await at.world.ledger.swap(head.revision, wanted)).toBe('swapped')
  }
  const { retainedFrom } = await at.head()
  expect(retainedFrom).toBeGreaterThan(10)
  const all = [...at.world.manifests.values()]
  const [kept, gone] = [3, 4].map((epoch) => all.find((manifest) => manifest.epoch === epoch)!)
  expect(kept!.snapshots.flatMap(({ files }) => files).length).toBeGreaterThan(0)
  expect(storedOf(kept!)).toEqual(objectsOf(kept!))
  expect(at.world.store.snapshot().has(named[0]!.manifest.name)).toBe(true)
  expect(storedOf(gone!).length).toBeLessThan(objectsOf(gone!).length)
})
