/**
 * The obligations of a sink about markers: repeats, races, late promoters, other histories, restored backups.
 *
 * Invariant 6 as checks. A refusal writes nothing and tells what was found; who is right is judged by the caller.
 */
import assert from 'node:assert/strict'
import type { Committable } from '../../model/manifest.ts'
import { type InputRow, type SinkCheck, SinkDriver } from './sink-subject.ts'

/** Rows without a key, which take the lane of their partition. */
const inLane = (lane: number, ...values: string[]): InputRow[] => values.map((value) => ({ value, partition: lane }))

/** Holds that a promotion is refused and changes nothing. */
async function refused(driver: SinkDriver, committable: Committable, found: unknown, healing = false): Promise<void> {
  const before = await driver.subject.controls.visible()
  assert.deepEqual(await driver.promote(committable, { healing }), { result: 'refused', found })
  assert.deepEqual(await driver.subject.controls.visible(), before)
  assert.deepEqual(await driver.sink.marker(committable.lane), found)
}

const repeating: Record<string, SinkCheck> = {
  'gives a lane its base marker once': async (driver, place) => {
    const other = (await place.open()).sink
    assert.equal(await driver.sink.marker(0), null)
    const base = driver.markerOf(0)
    const rival = { ...base, incarnation: 'ffffffffffffffffffffffffffffffff' }
    assert.deepEqual(await driver.sink.base(0, base), base)
    assert.deepEqual(await driver.sink.base(0, rival), base)
    assert.deepEqual(await other.base(0, base), base)
    assert.deepEqual(await other.marker(0), base)
    assert.equal(await driver.sink.marker(1), null)
  },
  'agrees on one base marker when two register a lane at once': async (driver, place) => {
    const other = (await place.open()).sink
    const rival = { ...driver.markerOf(0), incarnation: 'ffffffffffffffffffffffffffffffff' }
    const [mine, theirs] = await Promise.all([driver.sink.base(2, driver.markerOf(0)), other.base(2, rival)])
    assert.deepEqual(mine, theirs)
    assert.deepEqual(await driver.sink.marker(2), mine)
  },
  'keeps its marker when the lane is registered again': async (driver) => {
    await driver.register()
    await driver.run(1, inLane(0, 'a'))
    assert.deepEqual(await driver.sink.base(0, driver.markerOf(0)), driver.markerOf(1))
    assert.deepEqual(await driver.sink.marker(0), driver.markerOf(1))
  },
  'leaves the marker of the epoch that it promoted': async (driver) => {
    await driver.register()
    await driver.run(1, inLane(0, 'a'))
    assert.deepEqual(await driver.sink.marker(0), driver.markerOf(1))
    assert.deepEqual(await driver.sink.marker(1), driver.markerOf(0))
  },
  'case 1: changes nothing when a promotion is repeated': async (driver, place) => {
    await driver.register()
    const [committable] = await driver.run(1, inLane(0, 'a', 'b'))
    await refused(driver, committable!, driver.markerOf(1))
    const restarted = new SinkDriver(await place.open())
    await refused(restarted, committable!, driver.markerOf(1))
    assert.deepEqual(await driver.values(), ['a', 'b'])
  },
  'changes nothing when an epoch is promoted late, after the next one': async (driver) => {
    await driver.register()
    const [first] = await driver.run(1, inLane(0, 'a'))
    await driver.run(2, inLane(0, 'b'))
    await driver.run(3, inLane(0, 'c'))
    await refused(driver, first!, driver.markerOf(3))
    assert.deepEqual(await driver.values(), ['a', 'b', 'c'])
  },
  'refuses an epoch whose predecessor is not promoted': async (driver) => {
    await driver.register()
    const [first] = await driver.commit(1, inLane(0, 'a'))
    const [second] = await driver.commit(2, inLane(0, 'b'))
    await refused(driver, second!, driver.markerOf(0))
    assert.deepEqual(await driver.promote(first!), { result: 'promoted' })
    assert.deepEqual(await driver.promote(second!), { result: 'promoted' })
    assert.deepEqual(await driver.values(), ['a', 'b'])
  },
  'has one effect when several promote at once': async (driver, place) => {
    await driver.register()
    const clients = [driver.sink, (await place.open()).sink, (await place.open()).sink]
    const expected: string[] = []
    for (let epoch = 1; epoch <= 8; epoch++) {
      const values = [`${epoch}-a`, `${epoch}-b`]
      expected.push(...values)
      const [committable] = await driver.commit(epoch, inLane(0, ...values))
      const results = await Promise.all([...clients, ...clients].map((sink) => driver.promote(committable!, { sink })))
      assert.ok(results.some(({ result }) => result === 'promoted'))
      for (const answer of results) {
        if (answer.result === 'refused') assert.deepEqual(answer.found, driver.markerOf(epoch))
      }
      assert.deepEqual(await driver.sink.marker(0), driver.markerOf(epoch))
    }
    assert.deepEqual(await driver.values(), expected)
  },
  'promotes lanes on their own, at once or long after one another': async (driver) => {
    await driver.register()
    const all = await driver.commit(1, [...inLane(0, 'a0'), ...inLane(1, 'a1'), ...inLane(2, 'a2')])
    assert.equal(all.length, 3)
    await Promise.all(all.slice(0, 2).map((committable) => driver.promote(committable)))
    const [next] = await driver.commit(2, inLane(0, 'b0'))
    assert.deepEqual(await driver.promote(next!), { result: 'promoted' })
    assert.deepEqual(await driver.promote(all[2]!), { result: 'promoted' })
    assert.deepEqual((await driver.values()).sort(), ['a0', 'a1', 'a2', 'b0'])
  },
  'goes on after epochs in which a lane had no rows': async (driver) => {
    await driver.register()
    await driver.run(1, inLane(0, 'a'))
    await driver.run(2, inLane(1, 'x'))
    await driver.run(7, inLane(0, 'b'))
    assert.deepEqual(await driver.sink.marker(0), driver.markerOf(7))
    assert.deepEqual(await driver.sink.marker(1), driver.markerOf(2))
    assert.deepEqual((await driver.values()).sort(), ['a', 'b', 'x'])
  },
  'promotes what another process staged': async (driver, place) => {
    await driver.register()
    const [committable] = await driver.commit(1, inLane(0, 'a'), inLane(0, 'b'))
    const sink = (await place.open()).sink
    assert.deepEqual(await driver.promote(committable!, { sink }), { result: 'promoted' })
    assert.deepEqual(await driver.values(), ['a', 'b'])
  },
}

const judging: Record<string, SinkCheck> = {
  'refuses when its marker is missing': async (driver) => {
    await driver.register()
    await driver.run(1, inLane(0, 'a'))
    await driver.subject.controls.dropMarker(0)
    const [committable] = await driver.commit(2, inLane(0, 'b'))
    await refused(driver, committable!, null)
  },
  'refuses when its marker is of another incarnation': async (driver) => {
    await driver.register()
    await driver.run(1, inLane(0, 'a'))
    const reset = new SinkDriver(driver.subject, '00112233445566778899aabbccddeeff')
    assert.deepEqual(await reset.sink.base(0, reset.markerOf(0)), driver.markerOf(1))
    reset.markers.set(0, reset.markerOf(0))
    const [committable] = await reset.commit(1, inLane(0, 'again'))
    await refused(reset, committable!, driver.markerOf(1))
  },
  'refuses when its marker is of another history: the ledger was rewound': async (driver) => {
    await driver.register()
    await driver.run(1, inLane(0, 'a'))
    await driver.run(2, inLane(0, 'b'))
    driver.markers.set(0, driver.markerOf(1))
    const staged = await driver.stage(2, inLane(0, 'other'))
    const [second] = await driver.commitParts(2, staged, 'rewound')
    await refused(driver, second!, driver.markerOf(2))
    const [third] = await driver.commitParts(3, await driver.stage(3, inLane(0, 'next')), 'rewound')
    await refused(driver, third!, driver.markerOf(2))
  },
  'refuses when it was restored to an earlier epoch': async (driver) => {
    await driver.register()
    await driver.run(1, inLane(0, 'a'))
    const restore = await driver.subject.controls.backup()
    for (const epoch of [2, 3]) await driver.run(epoch, inLane(0, `${epoch}`))
    await restore()
    assert.deepEqual(await driver.values(), ['a'])
    const [fourth] = await driver.commit(4, inLane(0, 'd'))
    await refused(driver, fourth!, driver.markerOf(1))
  },
  'heals when the missing epochs are promoted again in order': async (driver) => {
    await driver.register()
    await driver.run(1, inLane(0, 'a'))
    const restore = await driver.subject.controls.backup()
    const missing = [...(await driver.run(2, inLane(0, 'b'))), ...(await driver.run(3, inLane(0, 'c')))]
    await restore()
    const [fourth] = await driver.commit(4, inLane(0, 'd'))
    await refused(driver, missing[1]!, driver.markerOf(1), true)
    for (const committable of [...missing, fourth!]) {
      assert.deepEqual(await driver.promote(committable, { healing: true }), { result: 'promoted' })
    }
    assert.deepEqual(await driver.values(), ['a', 'b', 'c', 'd'])
    assert.deepEqual(await driver.sink.marker(0), driver.markerOf(4))
  },
  'heals when it lost one epoch alone, in one lane of several': async (driver) => {
    await driver.register()
    await driver.run(1, [...inLane(0, 'a0'), ...inLane(1, 'a1')])
    const restore = await driver.subject.controls.backup()
    const [lost] = await driver.run(2, inLane(0, 'b0'))
    await restore()
    const next = await driver.commit(3, [...inLane(0, 'c0'), ...inLane(1, 'c1')])
    await refused(driver, next[0]!, driver.markerOf(1))
    for (const committable of [lost!, ...next]) {
      assert.deepEqual(await driver.promote(committable, { healing: true }), { result: 'promoted' })
    }
    const values = await driver.values()
    assert.deepEqual([...values].sort(), ['a0', 'a1', 'b0', 'c0', 'c1'])
    assert.deepEqual(
      values.filter((value) => value?.endsWith('0')),
      ['a0', 'b0', 'c0'],
    )
  },
  'refuses in every lane when all markers are gone': async (driver) => {
    await driver.register()
    await driver.run(1, [...inLane(0, 'a'), ...inLane(1, 'b'), ...inLane(2, 'c')])
    for (const lane of [0, 1, 2]) await driver.subject.controls.dropMarker(lane)
    for (const committable of await driver.commit(2, [...inLane(0, 'd'), ...inLane(1, 'e'), ...inLane(2, 'f')]))
      await refused(driver, committable, null)
  },
  'never takes absent staging for success when it lost epochs': async (driver) => {
    await driver.register()
    await driver.run(1, inLane(0, 'a'))
    const restore = await driver.subject.controls.backup()
    const [second] = await driver.run(2, inLane(0, 'b'))
    await restore()
    await driver.subject.controls.loseStaging(second!)
    await assert.rejects(driver.promote(second!, { healing: true }), hasCode('SINK_ROLLED_BACK', 'OBJECT_MISSING'))
    assert.deepEqual(await driver.sink.marker(0), driver.markerOf(1))
  },
  'never takes absent staging for success when it was not promoted': async (driver) => {
    await driver.register()
    const [first] = await driver.commit(1, inLane(0, 'a'))
    await driver.subject.controls.loseStaging(first!)
    await assert.rejects(driver.promote(first!), hasCode('SINK_ROLLED_BACK', 'OBJECT_MISSING'))
    assert.deepEqual(await driver.sink.marker(0), driver.markerOf(0))
  },
}

const hasCode =
  (...codes: string[]) =>
  (error: Error & { code?: string }) =>
    codes.includes(error.code ?? '')

/** Obligations by name. */
export const sinkMarkers: Record<string, SinkCheck> = { ...repeating, ...judging }
