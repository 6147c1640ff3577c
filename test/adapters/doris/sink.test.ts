import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type DorisOptions, doris } from '../../../lib/adapters/doris/sink.ts'
import { type MemoryStore, memoryStore } from '../../../lib/adapters/memory/store.ts'
import type { Committable } from '../../../lib/model/manifest.ts'
import { SinkDriver } from '../../../lib/testing/contracts/sink-subject.ts'
import { type DorisDouble, type DorisMisdeed, dorisDouble } from '../../support/doris-double.ts'
import { duplicateModel, uniqueModel } from '../../support/doris-loads.ts'

let double: DorisDouble
let store: MemoryStore

beforeEach(async () => {
  double = await dorisDouble()
  store = memoryStore()
  const columns = { k: () => true, v: (value: unknown) => value !== 'too long' }
  double.createTable('shop.log', duplicateModel(columns))
  double.createTable('shop.totals', uniqueModel(['k'], columns))
})

afterEach(() => double.stop())

type Options = Partial<DorisOptions<string | null, string | null>>

async function openDriver(options: Options = {}): Promise<SinkDriver> {
  const spec = doris<string | null, string | null>({
    connection: () => double.url,
    table: 'shop.log',
    row: (value, key) => ({ k: key, v: value }),
    lanes: 3,
    timeoutMs: 2000,
    ...options,
  })
  const context = { pipeline: 'p', incarnation: 'unused', stage: 'test', directory: null, store }
  const driver = new SinkDriver({ sink: await spec.open('rows', context), store, controls: {} as never })
  await driver.register()
  return driver
}

const inLane0 = (...values: string[]) => values.map((value) => ({ value, partition: 0 }))
const values = () => double.rows('shop.log').map(({ v }) => v)

/** Promotes until it succeeds. */
async function promoteAtLast(driver: SinkDriver, committable: Committable, between = async () => {}): Promise<void> {
  for (let tries = 1; tries <= 20; tries++) {
    try {
      expect((await driver.promote(committable)).result).toBe('promoted')
      return
    } catch (error) {
      expect(error).toMatchObject({ code: 'SINK_UNAVAILABLE', kind: 'Retryable' })
      await between()
    }
  }
  throw new Error('it never succeeds')
}

describe('a Doris sink', () => {
  test('prepares a load when rows are staged and commits that one, sending no row twice', async () => {
    const driver = await openDriver()
    const [committable] = await driver.commit(1, inLane0('a', 'b'))
    expect(double.txns()).toMatchObject([{ state: 'PRECOMMITTED' }])
    expect(values()).toEqual([])
    await driver.promote(committable!)
    expect(values()).toEqual(['a', 'b'])
    // The frontend redirects the load to the backend.
    expect(double.requests.filter((request) => request.endsWith('/_stream_load')).length).toBe(2)
    expect(double.txns()[0]!.label).toMatch(/^pawl-test-p-rows-0-1-[0-9a-f]{40}$/)
  })

  test('aborts what is discarded, and what it cannot abort leaves no trace', async () => {
    const driver = await openDriver()
    const parts = await driver.stage(1, inLane0('a'))
    const others = await driver.stage(1, inLane0('b'))
    await driver.sink.discard!(parts)
    expect(double.txns().map(({ state }) => state)).toEqual(['ABORTED', 'PRECOMMITTED'])
    await double.stop()
    await driver.sink.discard!(others)
    await double.start()
    double.expirePrepared()
    expect(values()).toEqual([])
  })

  test('stages while Doris is away, and prepares when it promotes', async () => {
    const driver = await openDriver()
    await double.stop()
    const [committable] = await driver.commit(1, inLane0('a', 'b'))
    await double.start()
    await driver.promote(committable!)
    expect(values()).toEqual(['a', 'b'])
  })

  test('waits out an outage longer than every timeout of Doris between commit and promote', async () => {
    const driver = await openDriver()
    const [committable] = await driver.commit(1, inLane0('a', 'b'))
    await double.stop()
    await expect(driver.promote(committable!)).rejects.toMatchObject({ code: 'SINK_UNAVAILABLE' })
    double.forgetLabels()
    await double.start()
    await driver.promote(committable!)
    expect(values()).toEqual(['a', 'b'])
    expect(await driver.sink.marker(0)).toEqual(driver.markerOf(1))
  })

  test('loads again under its label when Doris aborted the prepared load by its clock', async () => {
    const driver = await openDriver()
    const [committable] = await driver.commit(1, inLane0('a'))
    double.expirePrepared()
    await driver.promote(committable!)
    expect(values()).toEqual(['a'])
    expect(double.txns().map(({ state }) => state)).toEqual(['ABORTED', 'VISIBLE'])
    expect(new Set(double.txns().map(({ label }) => label)).size).toBe(1)
  })

  test.each(
    (['load', 'commit', 'state'] as const).flatMap((deed) =>
      (['lost', 'never', 'busy', 'away'] as const).map((does) => ({ deed, does })),
    ),
  )('loses and repeats nothing when $deed is $does, at each request of two epochs', async ({ deed, does }) => {
    for (let at = 0; at < 4; at++) {
      for (const expires of [false, true]) {
        double.misdeeds.length = 0
        const before = values().length
        store = memoryStore()
        const driver = await openDriver()
        const place = (index: number): DorisMisdeed[] => (index === at ? [{ deed, does }] : [])
        double.misdeeds.push(...place(0))
        const one = await driver.commit(1, inLane0('a', 'b'), inLane0('c'))
        const two = await driver.commit(2, inLane0('d'))
        double.misdeeds.push(...place(1), ...place(2), ...place(3))
        if (expires) double.expirePrepared()
        for (const committable of [...one, ...two]) await promoteAtLast(driver, committable)
        expect(values().slice(before)).toEqual(['a', 'b', 'c', 'd'])
      }
    }
  })

  test('goes on where it was when the frontend restarts between two requests', async () => {
    const driver = await openDriver()
    const [committable] = await driver.commit(1, inLane0('a'), inLane0('b'), inLane0('c'))
    double.misdeeds.push({ deed: 'commit', does: 'lost' }, { deed: 'state', does: 'never' })
    await promoteAtLast(driver, committable!, async () => {
      await double.stop()
      await double.start()
    })
    expect(values()).toEqual(['a', 'b', 'c'])
  })

  test('has one effect when two promote a load that must be prepared again', async () => {
    for (let round = 1; round <= 5; round++) {
      const driver = await openDriver()
      driver.markers.set(0, (await driver.sink.marker(0))!)
      const [committable] = await driver.commit(round, inLane0(`r${round}`))
      double.expirePrepared()
      const other = await openDriver()
      await Promise.allSettled([
        driver.promote(committable!),
        other.promote(committable!),
        driver.promote(committable!),
      ])
      await driver.promote(committable!).catch(() => driver.promote(committable!))
    }
    expect(values()).toEqual(['r1', 'r2', 'r3', 'r4', 'r5'])
  })
})

describe('a Doris that forgot the label of a load whose commit was attempted', () => {
  /** The commit took effect, its answer got lost, and then so did the label. */
  async function forgotten(driver: SinkDriver): Promise<Committable> {
    const [committable] = await driver.commit(1, [{ key: 'k', value: 'a', partition: 0 }])
    double.misdeeds.push({ deed: 'commit', does: 'lost' })
    await expect(driver.promote(committable!)).rejects.toMatchObject({ code: 'SINK_UNAVAILABLE' })
    double.forgetLabels()
    return committable!
  }

  test('stops an append with the label, since nobody knows', async () => {
    const driver = await openDriver()
    const committable = await forgotten(driver)
    const { lane } = committable
    const label = expect.stringMatching(/^pawl-test-p-rows-\d-1-/)
    await expect(driver.promote(committable)).rejects.toMatchObject({
      code: 'LABEL_FORGOTTEN',
      details: { sink: 'rows', lane, epoch: 1, label },
    })
    expect(values()).toEqual(['a'])
  })

  test('appends again where the pipeline file says so', async () => {
    const committable = await forgotten(await openDriver())
    const driver = await openDriver({ onForgotten: 'append-again' })
    await driver.promote(committable)
    expect(values()).toEqual(['a', 'a'])
  })

  test('loads an upsert again, which changes nothing', async () => {
    const driver = await openDriver({ table: 'shop.totals', mode: 'upsert', key: ['k'] })
    await driver.promote(await forgotten(driver))
    expect(double.rows('shop.totals')).toEqual([{ k: 'k', v: 'a' }])
  })
})

describe('rows of a Doris sink', () => {
  test.each(['json', 'csv'] as const)('as %s: the last row of a key wins, and a tombstone deletes', async (format) => {
    const options = { table: 'shop.totals', mode: 'upsert', key: ['k'], format, columns: ['k', 'v'] } as const
    const driver = await openDriver(options)
    const row = (key: string, value: string | null) => ({ key, value })
    await driver.run(1, [row('a', '1'), row('b', '1'), row('a', '2'), row('c', '1')], [row('a', '3')])
    await driver.run(2, [row('b', null), row('c', null), row('c', '2')])
    const sorted = [...double.rows('shop.totals')].sort((a, b) => String(a.k).localeCompare(String(b.k)))
    expect(sorted).toEqual([
      { k: 'a', v: '3' },
      { k: 'c', v: '2' },
    ])
  })

  test('that the table refuses fail the attempt that stages them, with epoch, row and column', async () => {
    const driver = await openDriver()
    await expect(driver.stage(7, inLane0('a', 'b', 'too long', 'c'))).rejects.toMatchObject({
      code: 'ROWS_REFUSED',
      message: expect.stringMatching(/sink \S+, lane 0, epoch 7, table shop\.log, row .*too long.*, column v: /),
      details: { lane: 0, epoch: 7, rowKey: expect.stringContaining('too long'), column: 'v' },
    })
    const missing = await openDriver({ table: 'shop.other' })
    await expect(missing.stage(1, inLane0('a'))).rejects.toMatchObject({ code: 'SINK_SCHEMA_INVALID' })
  })

  test.each([
    [new Uint8Array(2), 'takes no bytes'],
    [Number.NaN, 'is no number'],
    ['\ud800', 'lone surrogate'],
    [new Date(Number.NaN), 'date is invalid'],
  ])('refuse %s when they are staged', async (value, fault) => {
    const driver = await openDriver({ row: () => ({ k: 'k', v: value }) })
    await expect(driver.stage(1, inLane0('a'))).rejects.toMatchObject({
      code: 'ENCODE_FAILED',
      message: expect.stringContaining(fault),
    })
  })

  test('keep int64, decimals, dates, JSON and null as they are', async () => {
    const sent: Record<string, unknown> = {
      i: 2n ** 63n - 1n,
      d: '1.10',
      at: new Date(0),
      j: { a: [1] },
      n: null,
      b: true,
    }
    double.createTable(
      'shop.types',
      duplicateModel(Object.fromEntries(Object.keys(sent).map((name) => [name, () => true]))),
    )
    await (await openDriver({ table: 'shop.types', row: () => sent as never })).run(1, inLane0('a'))
    const at = '1970-01-01 00:00:00.000'
    expect(double.rows('shop.types')).toEqual([
      { i: '9223372036854775807', d: '1.10', at, j: { a: [1] }, n: null, b: true },
    ])
  })

  test('never carry the password into an error', async () => {
    const wrong = await openDriver({ connection: () => double.url.replace(/:[^:@]*@/, ':wrong-horse@') })
    const error: Error = await wrong.stage(1, inLane0('a')).then(
      () => new Error('it was let in'),
      (refusal) => refusal,
    )
    expect(error).toMatchObject({ code: 'AUTHENTICATION_FAILED' })
    expect(JSON.stringify([error, error.message, error.stack])).not.toContain('wrong-horse')
  })

  test.each<[Options, string]>([
    [{ table: 'log' }, 'database.table'],
    [{ format: 'csv' }, 'needs columns'],
    [{ mode: 'upsert' }, 'needs key'],
    [{ mode: 'upsert', key: ['k'], columns: ['v', 'k=upper(v)'] }, 'lacks key column k'],
  ])('are not described by %o', async (options, fault) => {
    await expect(openDriver(options)).rejects.toMatchObject({
      code: 'PIPELINE_INVALID',
      message: expect.stringContaining(fault),
    })
  })
})
