/**
 * What every sink must do, whatever shows its rows: the obligations of `ports/sink.ts` as checks.
 *
 * A place holds one sink of three lanes, made with `contractRowSpec`. The checks here are about staging and what
 * becomes visible; those about markers, repeats and restored sinks lie in `sink-markers.ts`.
 */
import assert from 'node:assert/strict'
import { type Contract, type Obligation, refusedWith } from './contract.ts'
import { sinkMarkers } from './sink-markers.ts'
import { sinkReassign } from './sink-reassign.ts'
import {
  contractLanes,
  type InputRow,
  type SinkCheck,
  SinkDriver,
  type SinkSubject,
  unencodable,
} from './sink-subject.ts'

const rowsOf = (key: string, prefix: string, count: number): InputRow[] =>
  Array.from({ length: count }, (_, i) => ({ key, value: `${prefix}-${i}` }))

const staging: Record<string, SinkCheck> = {
  'shows nothing of what is only staged': async (driver) => {
    await driver.register()
    const [committable] = await driver.commit(1, rowsOf('k', 'a', 3))
    assert.deepEqual(await driver.values(), [])
    assert.equal(committable?.rows, 3)
  },
  'shows what was promoted, with key, value and timestamp': async (driver) => {
    await driver.register()
    await driver.run(1, [{ key: 'ключ', value: 'a "quoted"\nline', timestampMs: -5 }])
    assert.deepEqual(await driver.subject.controls.visible(), [
      { key: 'ключ', value: 'a "quoted"\nline', timestampMs: -5 },
    ])
  },
  'case 39: tells a tombstone from an empty value, and no key from an empty one': async (driver) => {
    await driver.register()
    const rows: InputRow[] = [{ value: null }, { value: '' }, { key: '', value: null }, { key: '', value: '' }]
    await driver.run(1, rows)
    const seen = (await driver.subject.controls.visible()).map(({ key, value }) => JSON.stringify([key, value]))
    assert.deepEqual(seen.sort(), ['["",""]', '["",null]', '[null,""]', '[null,null]'])
  },
  'case 19: makes no part of an invocation without rows': async (driver) => {
    await driver.register()
    assert.deepEqual(await driver.stage(1, []), [])
    assert.deepEqual(await driver.commit(1, []), [])
    await driver.run(2, [], [{ key: 'k', value: 'only' }], [])
    assert.deepEqual(await driver.values(), ['only'])
  },
  'keeps nothing of a row that does not encode': async (driver) => {
    await driver.register()
    const writer = await driver.sink.stage(driver.context(1))
    writer.add('k', 'before', 1, 0)
    const buffered = writer.bufferedBytes
    assert.throws(() => writer.add('k', unencodable, 1, 0), RangeError)
    assert.equal(writer.bufferedBytes, buffered)
    writer.add('k', 'after', 1, 0)
    const [committable] = await driver.commitParts(1, await writer.seal())
    assert.equal(committable?.rows, 2)
    await driver.promote(committable!)
    assert.deepEqual(await driver.values(), ['before', 'after'])
  },
  'gives a key the same lane in every invocation, and rows without one that of their partition': async (driver) => {
    await driver.register()
    const keys = Array.from({ length: 50 }, (_, i) => `key-${i}`)
    const lanes = new Map<string, number>()
    for (const [epoch, key] of [...keys, ...keys].entries()) {
      const [part, ...others] = await driver.stage(epoch, [{ key, value: 'v', partition: epoch }])
      assert.equal(others.length, 0)
      assert.ok(part!.lane >= 0 && part!.lane < contractLanes)
      assert.equal(lanes.get(key) ?? part!.lane, part!.lane)
      lanes.set(key, part!.lane)
    }
    assert.equal(new Set(lanes.values()).size, contractLanes)
    const spread = await driver.stage(
      1,
      [0, 1, 2].map((partition) => ({ value: 'v', partition })),
    )
    assert.deepEqual(spread.map(({ lane }) => lane).sort(), [0, 1, 2])
  },
  'keeps the rows of a key in order, task after task, epoch after epoch': async (driver) => {
    await driver.register()
    const mixed = (prefix: string): InputRow[] =>
      Array.from({ length: 300 }, (_, i) => ({ key: `key-${i % 11}`, value: `${prefix}-${i}` }))
    const tasks = ['t0', 't1', 't2'].map(mixed)
    for (const epoch of [1, 2]) await driver.run(epoch, ...tasks.map((rows) => rows.map((row) => after(row, epoch))))
    const visible = await driver.subject.controls.visible()
    assert.equal(visible.length, 2 * 3 * 300)
    for (let k = 0; k < 11; k++) {
      const seen = visible.filter(({ key }) => key === `key-${k}`).map(({ value }) => value)
      const expected = [1, 2].flatMap((epoch) => tasks.flat().map((row) => after(row, epoch)))
      assert.deepEqual(
        seen,
        expected.filter(({ key }) => key === `key-${k}`).map(({ value }) => value),
      )
    }
  },
  'takes 200,000 rows through flushes in bounded memory': async (driver) => {
    await driver.register()
    const writer = await driver.sink.stage(driver.context(1))
    const value = 'v'.repeat(40)
    let bufferedMax = 0
    for (let i = 0; i < 200_000; i++) {
      writer.add(`key-${i % 997}`, `${i} ${value}`, i, 0)
      if (i % 1000 === 999) {
        bufferedMax = Math.max(bufferedMax, writer.bufferedBytes)
        if (writer.bufferedBytes > 512 * 1024) await writer.flush()
      }
    }
    assert.ok(bufferedMax > 0 && bufferedMax < 1024 * 1024, `${bufferedMax} bytes were buffered`)
    const committables = await driver.commitParts(1, await writer.seal())
    assert.equal(writer.bufferedBytes, 0)
    for (const committable of committables) await driver.promote(committable)
    const visible = await driver.subject.controls.visible()
    assert.equal(visible.length, 200_000)
    const last = new Map<string | null, number>()
    for (const { key, value: seen, timestampMs } of visible) {
      assert.ok(timestampMs > (last.get(key) ?? -1) && seen?.startsWith(`${timestampMs} `))
      last.set(key, timestampMs)
    }
  },
  'lets invocations of one task stage side by side, and shows only the one that was committed': async (driver) => {
    await driver.register()
    const writers = [await driver.sink.stage(driver.context(1)), await driver.sink.stage(driver.context(1))] as const
    writers[0].add('k', 'zombie', 1, 0)
    writers[1].add('k', 'chosen', 1, 0)
    await writers[0].flush()
    const chosen = await driver.commitParts(1, await writers[1].seal())
    writers[0].add('k', 'zombie again', 1, 0)
    await writers[0].seal()
    for (const committable of chosen) await driver.promote(committable)
    assert.deepEqual(await driver.values(), ['chosen'])
  },
  'can discard what was staged, twice and while others stage': async (driver) => {
    await driver.register()
    const failed = await driver.stage(1, rowsOf('k', 'failed', 3))
    const abandoned = await driver.sink.stage(driver.context(1))
    abandoned.add('k', 'abandoned', 1, 0)
    await abandoned.flush()
    const staged = await driver.stage(1, rowsOf('k', 'good', 2))
    await driver.sink.discard?.(failed)
    await driver.sink.discard?.(failed)
    for (const committable of await driver.commitParts(1, staged)) await driver.promote(committable)
    assert.deepEqual(await driver.values(), ['good-0', 'good-1'])
  },
  'can assemble the same parts again': async (driver) => {
    await driver.register()
    const parts = [...(await driver.stage(1, rowsOf('k', 'a', 2))), ...(await driver.stage(1, rowsOf('k', 'b', 2)))]
    await driver.sink.assemble?.(parts, driver.context(1))
    for (const committable of await driver.commitParts(1, parts)) await driver.promote(committable)
    assert.deepEqual(await driver.values(), ['a-0', 'a-1', 'b-0', 'b-1'])
  },
  'shows nothing of staged rows that were damaged': async (driver) => {
    await driver.register()
    const [committable] = await driver.commit(1, rowsOf('k', 'a', 3))
    await driver.subject.controls.damageStaging(committable!)
    await refusedWith('OBJECT_DAMAGED', () => driver.promote(committable!))
    assert.deepEqual(await driver.values(), [])
    assert.deepEqual(await driver.sink.marker(committable!.lane), driver.markerOf(0))
  },
}

const after = ({ value, ...row }: InputRow, epoch: number): InputRow => ({ ...row, value: `e${epoch}-${value}` })

/** The obligations of an exactly-once sink. */
export const sinkContract: Contract<SinkSubject> = {
  port: 'sink',
  obligations: Object.entries({ ...staging, ...sinkMarkers, ...sinkReassign }).map(
    ([name, check]): Obligation<SinkSubject> => ({
      name,
      check: async (place) => check(new SinkDriver(await place.open()), place),
    }),
  ),
}
