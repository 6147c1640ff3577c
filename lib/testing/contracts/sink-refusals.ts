/**
 * What a sink must do with rows that it refuses, where it offers `onReject: 'dead-letter'`.
 *
 * A contract of its own, since a sink may always park. The place is that of the sink contract; the sink is made with
 * `onReject: 'dead-letter'` and refuses rows whose value is `refusedValue`, as a constraint does.
 */
import assert from 'node:assert/strict'
import type { RefusedRow } from '../../model/manifest.ts'
import type { Contract, Obligation } from './contract.ts'
import { type InputRow, type SinkCheck, SinkDriver, type SinkSubject } from './sink-subject.ts'

/** The value that the sink under test refuses. */
export const refusedValue = 'refused'

const all: { readonly rows: number; readonly bytes: number } = Object.freeze({ rows: 1000, bytes: 1024 * 1024 })

/** Rows without a key, which take the lane of their partition; `!` stands for a row that is refused. */
const inLane = (lane: number, ...values: string[]): InputRow[] =>
  values.map((value) => ({ value: value === '!' ? refusedValue : value, partition: lane }))

async function refusedIn(driver: SinkDriver, lane = 0, max = all): Promise<readonly RefusedRow[]> {
  const { sink } = driver
  assert.ok(sink.refused !== undefined && sink.forget !== undefined, 'the sink has refused and forget')
  return sink.refused(lane, max)
}

async function placesIn(driver: SinkDriver, lane = 0) {
  const rows = await refusedIn(driver, lane)
  return rows.map(({ epoch, row }) => [epoch, row])
}

const checks: Record<string, SinkCheck> = {
  'writes the welcome rows and records the others, in the step that moves the marker': async (driver) => {
    await driver.register()
    const [committable] = await driver.commit(1, inLane(0, 'a', '!', 'b'), inLane(0, '!', 'c'))
    assert.deepEqual(await driver.promote(committable!), { result: 'promoted', refused: 2 })
    assert.deepEqual(await driver.values(), ['a', 'b', 'c'])
    assert.deepEqual(await driver.sink.marker(0), driver.markerOf(1))
    const rows = await refusedIn(driver)
    assert.deepEqual(
      rows.map(({ epoch, row, incarnation, cutBytes }) => ({ epoch, row, incarnation, cutBytes })),
      [1, 3].map((row) => ({ epoch: 1, row, incarnation: driver.incarnation, cutBytes: 0 })),
    )
    assert.equal(new Set(rows.map(({ id }) => id)).size, 2)
    for (const { code, reason, value } of rows) {
      assert.ok(code.length > 0 && reason.length > 0)
      assert.match(Buffer.from(value ?? '', 'base64').toString(), /refused/)
    }
  },
  'says nothing of refusals when there are none': async (driver) => {
    await driver.register()
    const [committable] = await driver.commit(1, inLane(0, 'a'))
    assert.deepEqual(await driver.promote(committable!), { result: 'promoted' })
    assert.deepEqual(await refusedIn(driver), [])
  },
  'moves the marker past an epoch of which every row is refused': async (driver) => {
    await driver.register()
    await driver.run(1, inLane(0, '!', '!'))
    assert.deepEqual(await driver.values(), [])
    assert.deepEqual(await driver.sink.marker(0), driver.markerOf(1))
    await driver.run(2, inLane(0, 'a'))
    assert.deepEqual(await driver.values(), ['a'])
  },
  'records each refusal once when a promotion is repeated, or several promote at once': async (driver, place) => {
    await driver.register()
    const clients = [driver.sink, (await place.open()).sink, (await place.open()).sink]
    for (let epoch = 1; epoch <= 4; epoch++) {
      const [committable] = await driver.commit(epoch, inLane(0, `${epoch}`, '!'))
      await Promise.all([...clients, ...clients].map((sink) => driver.promote(committable!, { sink })))
    }
    assert.deepEqual(
      await placesIn(driver),
      [1, 2, 3, 4].map((epoch) => [epoch, 1]),
    )
    assert.deepEqual(await driver.values(), ['1', '2', '3', '4'])
  },
  'records nothing when the marker is not the one before': async (driver) => {
    await driver.register()
    await driver.commit(1, inLane(0, 'a'))
    const [second] = await driver.commit(2, inLane(0, '!'))
    assert.equal((await driver.promote(second!)).result, 'refused')
    assert.deepEqual(await refusedIn(driver), [])
  },
  'keeps them by lane, epoch and row, for every client, within the bounds that are asked for': async (
    driver,
    place,
  ) => {
    await driver.register()
    await driver.run(1, [...inLane(0, '!', 'a', '!'), ...inLane(1, '!')])
    await driver.run(2, inLane(0, '!'))
    const other = new SinkDriver(await place.open())
    assert.deepEqual(await placesIn(other), [
      [1, 0],
      [1, 2],
      [2, 0],
    ])
    assert.deepEqual(await placesIn(other, 1), [[1, 0]])
    assert.deepEqual(await placesIn(other, 2), [])
    assert.equal((await refusedIn(other, 0, { rows: 2, bytes: 1024 })).length, 2)
    assert.equal((await refusedIn(other, 0, { rows: 9, bytes: 1 })).length, 1)
  },
  'forgets by id, and nothing else': async (driver) => {
    await driver.register()
    await driver.run(1, [...inLane(0, '!', '!', '!'), ...inLane(1, '!')])
    const [first, second] = await refusedIn(driver)
    await driver.sink.forget?.(0, [second!.id, 'nobody'])
    await driver.sink.forget?.(0, [second!.id])
    await driver.sink.forget?.(0, [])
    assert.deepEqual(await placesIn(driver), [
      [1, 0],
      [1, 2],
    ])
    assert.deepEqual(await placesIn(driver, 1), [[1, 0]])
    assert.deepEqual((await refusedIn(driver))[0], first)
  },
  'records what it refuses again after a restore under another id': async (driver) => {
    await driver.register()
    const restore = await driver.subject.controls.backup()
    const [committable] = await driver.run(1, inLane(0, 'a', '!'))
    const [before] = await refusedIn(driver)
    await restore()
    assert.deepEqual(await driver.promote(committable!, { healing: true }), { result: 'promoted', refused: 1 })
    const again = (await refusedIn(driver)).filter(({ id }) => id !== before!.id)
    assert.deepEqual(
      again.map(({ epoch, row }) => [epoch, row]),
      [[1, 1]],
    )
    await driver.sink.forget?.(0, [before!.id])
    assert.deepEqual(await refusedIn(driver), again)
  },
}

function obligation([name, check]: [string, SinkCheck]): Obligation<SinkSubject> {
  return {
    name,
    async check(place) {
      await check(new SinkDriver(await place.open()), place)
    },
  }
}

/** What a sink owes of the rows that it refuses. */
export const sinkRefusalContract: Contract<SinkSubject> = {
  port: 'sink with dead letters',
  obligations: Object.entries(checks).map(obligation),
}
