import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import type { LedgerSnapshot } from '../../lib/adapters/memory/ledger.ts'
import type { MemoryTableSnapshot } from '../../lib/adapters/memory/table.ts'
import { type ChainFault, faultText, type Verified, verify } from '../../lib/epoch/verify.ts'
import { errorRegistry } from '../../lib/model/errors.ts'
import type { Manifest } from '../../lib/model/manifest.ts'
import { json, text } from '../../lib/model/serde.ts'
import { runPipeline } from '../../lib/places/run.ts'
import { compile } from '../../lib/stream/compile.ts'
import { pipeline } from '../../lib/stream/pipeline.ts'
import { topic } from '../../lib/stream/topic.ts'
import { type MemoryPlace, memoryPlace } from './memory-place.ts'

const id = 'audited'
const partitions = 2

const audited = pipeline(id, {
  checkpoint: { intervalMs: 0 },
  epoch: { spanMax: 6 },
  retain: { epochs: 6 },
  shards: 2,
  onError: 'skip',
})
  .from(topic('lines', { value: text() }))
  .flatMap((line) => {
    if (line.includes('!')) throw new Error('shouting')
    return line.split(' ')
  })
  .keyBy((word) => word)
  .count('counter')
  .to('counts', topic('counts', { key: text(), value: json<number>(), lanes: 2 }))

interface Moment {
  readonly ledger: LedgerSnapshot
  readonly store: ReadonlyMap<string, Buffer>
  readonly sink: MemoryTableSnapshot
}

/** A world at rest after all input is visible, and the moments along its way. */
async function worldAtRest(): Promise<{ world: MemoryPlace; moments: Moment[] }> {
  const compiled = compile(audited)
  const words = ['ratchet', 'pawl', 'tooth', 'gear!', 'wheel']
  const moments: Moment[] = []
  const world = memoryPlace(compiled, partitions, ({ event }) => {
    if (event === 'finalized') moments.push(momentOf(world))
  })
  for (let i = 0; i < 80; i++) {
    const value = `${words[i % words.length]} ${words[(i * 7) % words.length]}`
    await world.logs.get('lines')!.append(i % partitions, [{ key: null, value, timestampMs: 1000 + i }])
  }
  await runPipeline(compiled, { place: world.place, until: 'caught-up' })
  return { world, moments }
}

function momentOf({ ledger, store, sinks }: MemoryPlace): Moment {
  return { ledger: ledger.snapshot(), store: store.snapshot(), sink: sinks.get('counts')!.snapshot() }
}

function goBack({ ledger, store, sinks }: MemoryPlace, moment: Moment): void {
  ledger.restore(moment.ledger)
  store.restore(moment.store)
  sinks.get('counts')!.restore(moment.sink)
}

function verifyWorld({ ledger, store, sinks }: MemoryPlace): Promise<Verified> {
  return verify({ ledger, store, pipeline: id, readMarker: async ({ sink, lane }) => sinks.get(sink)!.marker(lane) })
}

const markersOf = ({ sink }: Moment) => JSON.stringify([...sink.markers])
const codesOf = (faults: readonly ChainFault[]) => [...new Set(faults.map(({ code }) => code))].sort()

describe('a chain', () => {
  let world: MemoryPlace
  let moments: Moment[]
  let whole: Moment
  let reached: string[]

  beforeAll(async () => {
    ;({ world, moments } = await worldAtRest())
    whole = momentOf(world)
    reached = await reachedNames()
  })

  /** Names of everything that a retained epoch needs, read from its manifests. */
  async function reachedNames(): Promise<string[]> {
    const head = (await world.ledger.read(id))!
    const names = new Set<string>()
    for (const { manifest: ref } of await world.ledger.histories(id, head.retainedFrom, head.committed.epoch + 1)) {
      const manifest = JSON.parse((await world.store.read(ref.name))!.toString()) as Manifest
      names.add(ref.name)
      for (const { files } of manifest.snapshots) for (const file of files) names.add(file.name)
      for (const { parts } of manifest.committables)
        for (const { objects } of parts) for (const object of objects) names.add(object.name)
      if (manifest.rejected) names.add(manifest.rejected.name)
    }
    return [...names].sort()
  }

  test('that nothing happened to is sound at every moment of its life', async () => {
    expect(moments.length).toBeGreaterThan(10)
    for (const moment of moments) {
      goBack(world, moment)
      expect((await verifyWorld(world)).faults).toEqual([])
    }
    goBack(world, whole)
    const verified = await verifyWorld(world)
    expect(verified).toMatchObject({
      faults: [],
      lanes: 2,
      unreadable: [],
      epochs: 1 + verified.head.committed.epoch - verified.head.retainedFrom,
    })
    expect(verified.head.retainedFrom).toBeGreaterThan(0)
    expect(verified.objects).toBe(reached.length)
  })

  test('reports each object that is damaged or missing, by its name', async () => {
    const names = fc.integer({ min: 0, max: reached.length - 1 }).map((index) => reached[index]!)
    await fc.assert(
      fc.asyncProperty(names, fc.boolean(), async (name, missing) => {
        goBack(world, whole)
        if (missing) world.store.drop(name)
        else world.store.damage(name)
        const { faults } = await verifyWorld(world)
        const code = missing
          ? 'OBJECT_MISSING'
          : name.endsWith('/manifest')
            ? 'MANIFEST_DAMAGED'
            : /\/state-\d+$/.test(name)
              ? 'SNAPSHOT_DAMAGED'
              : 'OBJECT_DAMAGED'
        expect(faults.filter(({ fault }) => fault === name)).toEqual([expect.objectContaining({ code })])
        expect(faultText(faults[0]!)).toContain(`Next: ${errorRegistry[faults[0]!.code].action}.`)
      }),
      { numRuns: 60 },
    )
  })

  test('that lost an epoch of its history is broken', async () => {
    const head = (await world.ledger.read(id))!
    for (const epoch of [1, head.retainedFrom, head.committed.epoch - 1, head.committed.epoch]) {
      goBack(world, whole)
      world.ledger.dropHistory(id, epoch)
      expect(codesOf((await verifyWorld(world)).faults)).toContain('HISTORY_MISSING')
    }
  })

  test('whose ledger was rewound is known by the markers of its sinks, and by the store alone', async () => {
    for (const moment of moments.slice(0, -2)) {
      goBack(world, whole)
      world.ledger.restore(moment.ledger)
      expect(codesOf((await verifyWorld(world)).faults)).toContain('LEDGER_REWOUND')
      world.sinks.get('counts')!.restore(moment.sink)
      expect(codesOf((await verifyWorld(world)).faults)).toContain('LEDGER_REWOUND')
    }
  })

  test('whose sink was restored from a backup says which epoch the sink shows', async () => {
    const older = moments.filter((moment) => markersOf(moment) !== markersOf(whole))
    expect(older.length).toBeGreaterThan(5)
    for (const moment of older) {
      goBack(world, whole)
      world.sinks.get('counts')!.restore(moment.sink)
      expect(codesOf((await verifyWorld(world)).faults)).toEqual(['SINK_ROLLED_BACK'])
    }
  })

  test('that shows no marker, a foreign one or an unknown one is told apart', async () => {
    const sink = world.sinks.get('counts')!
    const judge = async (change: () => void) => {
      goBack(world, whole)
      change()
      return codesOf((await verifyWorld(world)).faults)
    }
    const put = (change: object) => sink.transact(0, (found) => ({ rows: [], marker: { ...found!, ...change } }))
    expect(await judge(() => sink.dropMarker(0))).toEqual(['MARKER_MISSING'])
    expect(await judge(() => put({ incarnation: 'other' }))).toEqual(['MARKER_FOREIGN'])
    expect(await judge(() => put({ hash: 'other' }))).toEqual(['MARKER_UNKNOWN'])
    expect(await judge(() => put({ epoch: 1_000_000 }))).toEqual(['LEDGER_REWOUND'])
  })

  test('whose newest manifest says something else, under a hash that fits, is broken', async () => {
    const change = async (changed: (manifest: Manifest) => object) => {
      goBack(world, whole)
      const head = (await world.ledger.read(id))!
      const { name } = head.committed.manifest
      const manifest = JSON.parse((await world.store.read(name))!.toString()) as Manifest
      const bytes = Buffer.from(JSON.stringify({ ...manifest, ...changed(manifest) }))
      const ref = { name, bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') }
      world.store.drop(name)
      await world.store.create(name, [bytes])
      const item = (await world.ledger.history(id, manifest.epoch))!
      world.ledger.dropHistory(id, manifest.epoch)
      const write = 'a'.repeat(32)
      await world.ledger.swap(
        head.revision,
        { ...head, revision: head.revision + 1, write, committed: { ...head.committed, manifest: ref } },
        { history: { ...item, manifest: ref } },
      )
      const { faults } = await verifyWorld(world)
      return faults.filter(({ code }) => code === 'CHAIN_BROKEN').map(({ fault }) => fault.replace(/^epoch \d+: /, ''))
    }
    const first = <T>(list: readonly T[], changed: object) =>
      list.map((one, i) => (i === 0 ? { ...one, ...changed } : one))
    expect(await change(() => ({}))).toEqual([])
    const changes: [(manifest: Manifest) => object, RegExp][] = [
      [({ progress }) => ({ progress: first(progress, { start: '1' }) }), /^lines\/0 goes on at 1, the epoch before/],
      [({ progress }) => ({ progress: first(progress, { topicId: 'other' }) }), /^lines\/0 is of topic other/],
      [({ progress }) => ({ progress: first(progress, { maxTimestampMs: 0 }) }), /^the largest event time of lines\/0/],
      [({ progress }) => ({ progress: progress.slice(1) }), /^lines\/0 is missing/],
      [() => ({ watermarkMs: 0 }), /^its watermark is lower/],
      [({ parent }) => ({ parent: { ...parent, sha256: 'other' } }), /^its parent is not the manifest of epoch/],
      [() => ({ parent: null }), /^its parent is not the manifest of epoch/],
      [() => ({ genesis: 'other' }), /^it names another genesis manifest/],
      [() => ({ incarnation: 'other' }), /^it is of incarnation other/],
      [() => ({ generation: -1 }), /^its manifest is of generation -1/],
      [({ counts }) => ({ counts: { ...counts, in: 10_000 } }), /^it counts 10000 records of \d offsets/],
      [({ counts }) => ({ counts: { ...counts, out: { counts: 1000 } } }), /^it counts 1000 rows for sink counts/],
      [({ laneMarkers }) => ({ laneMarkers: first(laneMarkers, { epoch: 1 }) }), /^the marker of lane counts\/0/],
      [({ snapshots }) => ({ snapshots: snapshots.slice(1) }), /^the state of counter lacks or repeats key groups/],
      [
        ({ snapshots }) => ({ snapshots: snapshots.slice(0, -1) }),
        /^the state of counter ends at key group 64, before at 128/,
      ],
    ]
    for (const [changed, sentence] of changes) {
      expect(await change(changed)).toContainEqual(expect.stringMatching(sentence))
    }
  })

  test('says which lanes it could not look at', async () => {
    goBack(world, whole)
    const { ledger, store } = world
    const verified = await verify({ ledger, store, pipeline: id, readMarker: async () => 'unreadable' })
    expect(verified).toMatchObject({ faults: [], unreadable: ['counts/0', 'counts/1'] })
  })

  test('counts objects that nothing reaches, and calls them no fault', async () => {
    goBack(world, whole)
    const { incarnation } = (await world.ledger.read(id))!
    const before = (await verifyWorld(world)).orphans.objects
    await world.store.create(`pipelines/${id}/${incarnation}/attempts/dead/1/state-0`, [Buffer.from('12345')])
    const { orphans, faults } = await verifyWorld(world)
    expect(faults).toEqual([])
    expect(orphans.objects).toBe(before + 1)
  })
})

test('a pipeline that the ledger does not know is refused', async () => {
  const { world } = await worldAtRest()
  const { ledger, store } = world
  const answer = verify({ ledger, store, pipeline: 'other', readMarker: async () => null })
  await expect(answer).rejects.toMatchObject({ code: 'PIPELINE_NOT_FOUND' })
})
