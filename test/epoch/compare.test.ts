import { describe, expect, test } from 'vitest'
import { compare, type Deployed } from '../../lib/epoch/compare.ts'
import { compile, json, pipeline, text, topic } from '../../lib/index.ts'
import type { Manifest } from '../../lib/model/manifest.ts'
import { createDriver } from '../../lib/testing/drive.ts'
import { workbench } from './support.ts'

/** What the word count of the workbench left behind. */
async function deployed(): Promise<Deployed> {
  const bench = workbench({ partitions: 1 })
  bench.append(0, 'a', 'b')
  bench.world.starts.push({ pipeline: 'counting', sequence: 1, wakes: 0 })
  await createDriver({ world: bench.world, mortal: true, script: () => () => null }).untilQuiet()
  const head = await bench.head()
  const bytes = (await bench.world.store.read(head.committed.manifest.name))!
  return { head, manifest: JSON.parse(bytes.toString()) as Manifest, unpromoted: [] }
}

/** The same pipeline with other ids or settings. */
function counting({
  source = 'lines',
  operator = 'count',
  sink = 'counts',
  settings = {} as { shards?: number },
} = {}) {
  return compile(
    pipeline('counting', settings)
      .from(topic(source, { value: text() }))
      .keyBy((line) => line)
      .count(operator)
      .to(sink, topic(sink, { key: text(), value: json<number>() })),
  )
}

const told = async (changed: Parameters<typeof counting>[0], more: (was: Deployed) => Deployed = (was) => was) =>
  compare(counting(changed), more(await deployed())).map(({ kind, id, change, code }) =>
    [kind, id, change, code].join(' ').trim(),
  )

describe('a comparison with what runs', () => {
  test('keeps what has the same ids', async () => {
    expect(await told({})).toEqual(['source lines kept', 'operator count kept', 'sink counts kept'])
  })

  test('refuses a renamed source and a renamed operator with state, as a plan does', async () => {
    expect(await told({ source: 'others', operator: 'counter' })).toEqual([
      'source lines refused LINEAGE_CHANGED',
      'source others added',
      'operator count refused LINEAGE_CHANGED',
      'operator counter added',
      'sink counts kept',
    ])
  })

  test('refuses other shards, and a state that is newer than the operator', async () => {
    expect(await told({ settings: { shards: 3 } })).toContain('operator count refused LINEAGE_CHANGED')
    const newer = (was: Deployed): Deployed => {
      const snapshots = was.manifest.snapshots.map((snapshot) => ({ ...snapshot, stateVersion: 9 }))
      return { ...was, manifest: { ...was.manifest, snapshots } }
    }
    expect(await told({}, newer)).toContain('operator count refused STATE_VERSION_NEWER')
  })

  test('migrates a state that is older than the operator', async () => {
    const older = (was: Deployed): Deployed => {
      const snapshots = was.manifest.snapshots.map((snapshot) => ({ ...snapshot, stateVersion: 0 }))
      return { ...was, manifest: { ...was.manifest, snapshots } }
    }
    expect(await told({}, older)).toContain('operator count migrated')
  })

  test('drops a sink that owes nothing, and refuses to drop one whose output is not visible', async () => {
    expect(await told({ sink: 'totals' })).toEqual(expect.arrayContaining(['sink totals added', 'sink counts dropped']))
    const owing = (was: Deployed): Deployed => ({ ...was, unpromoted: [was.manifest] })
    expect(await told({ sink: 'totals' }, owing)).toContain('sink counts refused SINK_MISSING')
  })

  test('names another guarantee', async () => {
    const was = await deployed()
    const weaker = { ...was, manifest: { ...was.manifest, guarantee: 'at-least-once' as const } }
    expect(compare(counting(), weaker)).toContainEqual(
      expect.objectContaining({ kind: 'setting', change: 'changed', text: 'at-least-once becomes exactly-once' }),
    )
  })

  test('finds all new where nothing ever ran', () => {
    expect(compare(counting(), null).map(({ change }) => change)).toEqual(['added', 'added', 'added'])
  })
})
