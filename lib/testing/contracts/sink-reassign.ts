/**
 * The obligations of a sink about a person's decisions: markers prepared for, handed over, reset and given back.
 *
 * `reassign` is a compare-and-set of the marker alone. A sink that has none says so among its differences.
 */
import assert from 'node:assert/strict'
import type { Marker } from '../../model/manifest.ts'
import type { Sink } from '../../ports/sink.ts'
import { type InputRow, type SinkCheck, SinkDriver } from './sink-subject.ts'

const inLane0 = (...values: string[]): InputRow[] => values.map((value) => ({ value, partition: 0 }))

const otherIncarnation = '00112233445566778899aabbccddeeff'

/** Another life of the pipeline at the same sink. */
function rivalOf(driver: SinkDriver): SinkDriver {
  const rival = new SinkDriver(driver.subject, otherIncarnation)
  for (const lane of driver.markers.keys()) rival.markers.set(lane, rival.markerOf(0))
  return rival
}

function reassign(sink: Sink, from: Marker | null, to: Marker | null): Promise<Marker | null> {
  assert.ok(sink.reassign !== undefined, 'the sink has no reassign')
  return sink.reassign(0, from, to)
}

/** Obligations by name. */
export const sinkReassign: Record<string, SinkCheck> = {
  'hands a lane over to another incarnation, and then refuses the one before': async (driver) => {
    await driver.register()
    await driver.run(1, inLane0('a'))
    await driver.run(2, inLane0('b'))
    const [late] = await driver.commit(3, inLane0('late'))
    const rival = rivalOf(driver)
    assert.deepEqual(await reassign(driver.sink, driver.markerOf(2), rival.markerOf(0)), rival.markerOf(0))
    assert.deepEqual(await driver.sink.marker(0), rival.markerOf(0))
    assert.deepEqual(await driver.sink.marker(1), driver.markerOf(0))
    assert.deepEqual(await driver.promote(late!), { result: 'refused', found: rival.markerOf(0) })
    assert.deepEqual(await driver.values(), ['a', 'b'])
    await rival.run(1, inLane0('c'))
    await rival.run(2, inLane0('d'))
    assert.deepEqual((await rival.values()).sort(), ['a', 'b', 'c', 'd'])
    assert.deepEqual(await driver.sink.marker(0), rival.markerOf(2))
  },
  'hands no lane over whose marker is not the one that was seen': async (driver) => {
    await driver.register()
    await driver.run(1, inLane0('a'))
    const rival = rivalOf(driver)
    for (const seen of [null, driver.markerOf(0), driver.markerOf(1, 'another'), rival.markerOf(1)]) {
      for (const to of [rival.markerOf(0), null]) {
        assert.deepEqual(await reassign(driver.sink, seen, to), driver.markerOf(1))
      }
    }
    assert.deepEqual(await driver.sink.marker(0), driver.markerOf(1))
    await driver.run(2, inLane0('b'))
  },
  'forgets a marker that is reset, and begins anew': async (driver) => {
    await driver.register()
    await driver.run(1, inLane0('a'))
    assert.equal(await reassign(driver.sink, driver.markerOf(1), null), null)
    assert.equal(await driver.sink.marker(0), null)
    const [second] = await driver.commit(2, inLane0('b'))
    assert.deepEqual(await driver.promote(second!), { result: 'refused', found: null })
    assert.equal(await reassign(driver.sink, driver.markerOf(1), null), null)
    const rival = rivalOf(driver)
    assert.deepEqual(await driver.sink.base(0, rival.markerOf(0)), rival.markerOf(0))
    await rival.run(1, inLane0('c'))
    assert.deepEqual((await driver.values()).sort(), ['a', 'c'])
  },
  'gives a lost marker back, and goes on from it': async (driver) => {
    await driver.register()
    await driver.run(1, inLane0('a'))
    await driver.subject.controls.dropMarker(0)
    assert.deepEqual(await reassign(driver.sink, null, driver.markerOf(1)), driver.markerOf(1))
    await driver.run(2, inLane0('b'))
    assert.deepEqual(await driver.values(), ['a', 'b'])
  },
  'lets one of two decide at once': async (driver, place) => {
    await driver.register()
    const other = (await place.open()).sink
    const rival = rivalOf(driver)
    const third = { ...rival.markerOf(0), incarnation: 'cccccccccccccccccccccccccccccccc' }
    const [mine, theirs] = await Promise.all([
      reassign(driver.sink, driver.markerOf(0), rival.markerOf(0)),
      reassign(other, driver.markerOf(0), third),
    ])
    assert.deepEqual(mine, theirs)
    assert.deepEqual(await driver.sink.marker(0), mine)
    assert.notDeepEqual(mine, driver.markerOf(0))
  },
  'can be prepared before and after lanes are registered, and changes no marker by it': async (driver) => {
    const said = (await driver.sink.prepare?.({ dryRun: true })) ?? []
    assert.deepEqual((await driver.sink.prepare?.({ dryRun: false })) ?? [], said)
    assert.equal(await driver.sink.marker(0), null)
    await driver.register()
    await driver.run(1, inLane0('a'))
    assert.deepEqual((await driver.sink.prepare?.({ dryRun: false })) ?? [], said)
    assert.deepEqual(await driver.sink.marker(0), driver.markerOf(1))
    await driver.run(2, inLane0('b'))
    assert.deepEqual(await driver.values(), ['a', 'b'])
  },
}
