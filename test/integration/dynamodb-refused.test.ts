import { setTimeout as sleep } from 'node:timers/promises'
import { DeleteTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { describe, expect, onTestFinished } from 'vitest'
import { dynamodb } from '../../lib/adapters/dynamodb/sink.ts'
import type { RejectedRecord } from '../../lib/model/manifest.ts'
import { prng } from '../../lib/model/prng.ts'
import { json, nullable, text } from '../../lib/model/serde.ts'
import { deadLetter, pipeline } from '../../lib/stream/pipeline.ts'
import { topic } from '../../lib/stream/topic.ts'
import { memory } from '../../lib/testing/index.ts'
import { awsTest as test } from '../support/aws.ts'
import { createTable, scan } from '../support/dynamodb-contract.ts'
import { allRefused, judged, refusingTable, row } from '../support/dynamodb-refusals.ts'
import type { ProxiedCall } from '../support/fault-proxy.ts'
import { markerOf, type RigRow, settled } from '../support/table-rig.ts'
import { install } from '../support/table-runs.ts'

const modes = ['upsert', 'transactions'] as const
const put = ({ operation }: ProxiedCall) => operation === 'PutItem'
const transact = ({ operation }: ProxiedCall) => operation === 'TransactWriteItems'
const writes = (call: ProxiedCall) => put(call) || transact(call) || call.operation === 'UpdateItem'
const positions = (rows: readonly { readonly row: number }[]) => rows.map((one) => one.row)

describe.each(modes)('mode %s', (mode) => {
  test('refused rows are recorded as they were sent, and forgotten by id', async ({ emulator }) => {
    const { rig, shown, refused, recordings } = await refusingTable(emulator, { mode })
    const rows = Array.from({ length: 60 }, (_, i) => row(`k${i}`, i, i % 5 === 3, { b: new Uint8Array([1]) }))
    expect(await rig.promote(await rig.stage(rows, 13))).toEqual({ result: 'promoted', refused: 12 })
    expect(Object.values(await shown()).sort((a, b) => a - b)).toEqual([...rows.keys()].filter((i) => i % 5 !== 3))
    const found = await refused()
    expect(positions(found)).toEqual([...rows.keys()].filter((i) => i % 5 === 3))
    for (const { row: index, key, value, code, reason, column, ...place } of found) {
      expect(Buffer.from(key!, 'base64').toString()).toBe(`k=k${index}`)
      const item = { v: { N: `${index}` }, x: { N: '1' }, b: { B: 'AQ==' }, k: { S: `k${index}` } }
      expect(JSON.parse(Buffer.from(value!, 'base64').toString())).toEqual(item)
      expect([code, column]).toEqual(['ValidationException', null])
      expect(reason).toMatch(/Type mismatch for Index Key x/)
      expect(place).toMatchObject({ epoch: 1, incarnation: rig.incarnation, cutBytes: 0 })
    }
    await rig.sink.forget!(0, [...positions(found), 'nobody', '#', ...found.slice(1).map(({ id }) => id)].map(String))
    expect(await refused()).toEqual([found[0]])
    await rig.sink.forget!(0, [found[0]!.id, found[0]!.id])
    expect(await recordings()).toEqual([])
  })

  test('the newest row of a key that is not refused is written, and without one the item stays', async ({
    emulator,
  }) => {
    const { rig, shown, refused } = await refusingTable(emulator, { mode })
    await rig.run(['a', 'b', 'c', 'd'].map((key, i) => row(key, i)))
    const rows = [
      ...[row('a', 10), row('a', 11), row('a', 12, true), row('a', 13, true)],
      ...[row('b', 20, true), row('b', 21, true)],
      ...[row('c', null), row('c', 31, true), row('d', 40, true), row('d', 41)],
      ...[row('e', 50, true), row('f', null), row('f', 61, true), row('g', 70), row('g', 71, false, { x: '' })],
    ]
    expect(await rig.promote(await rig.stage(rows))).toEqual({ result: 'promoted', refused: 8 })
    expect(await shown()).toEqual({ a: 11, b: 1, d: 41, g: 70 })
    expect(positions(await refused())).toEqual([2, 3, 4, 5, 7, 10, 12, 14])
    await rig.run(['a', 'b', 'c', 'e', 'f'].map((key, i) => row(key, 100 + i)))
    expect(await shown()).toEqual({ a: 100, b: 101, c: 102, d: 41, e: 103, f: 104, g: 70 })
  })

  test('case 1: answers are lost, requests arrive twice: what is refused is recorded once', async ({ emulator }) => {
    const { rig, proxy, shown, refused } = await refusingTable(emulator, { mode })
    const rows = [row('a', 1), row('a', 2, true), row('b', 3, true), row('c', 4)]
    for (let nth = 0, struck = true, epoch = 1; struck; nth++) {
      for (const fault of ['answer-lost', 'repeated'] as const) {
        const committable = await rig.stage(rows)
        let seen = 0
        proxy.plan(() => seen++ === nth, fault === 'repeated' ? { fault, answer: 'second' } : { fault })
        await settled(rig, committable)
        struck = proxy.left === 0
        proxy.forget()
        expect(await rig.sink.marker(0)).toEqual(markerOf(rig.incarnation, epoch))
        const found = await refused()
        expect(found.map((one) => [one.epoch, one.row])).toEqual([1, 2].map((at) => [epoch, at]))
        await rig.sink.forget!(
          0,
          found.map(({ id }) => id),
        )
        epoch++
      }
    }
    expect(await shown()).toEqual({ a: 1, c: 4 })
  })

  test('rows and recordings stay one whole while the table is mended and broken, and two promote at once', async ({
    emulator,
  }) => {
    const at = await refusingTable(emulator, { mode })
    const { rig, proxy, mend, breakAgain, shown, refused } = at
    const other = await at.another()
    const random = prng(mode === 'upsert' ? 11 : 12)
    let before: Record<string, number> = {}
    let broken = true
    for (let epoch = 1; epoch <= 12; epoch++) {
      const rows: RigRow[] = Array.from({ length: 12 }, (_, i) =>
        row(`k${random.int(8)}`, random.chance(0.15) ? null : epoch * 100 + i, random.chance(0.6)),
      )
      const committable = await rig.stage(rows)
      for (const way of [proxy, other.proxy]) {
        for (const fault of ['answer-lost', 'request-lost'] as const)
          way.plan((call) => writes(call) && random.chance(0.1), { fault }, 2)
        way.plan((call) => writes(call) && random.chance(0.15), { fault: 'late', afterMs: 5 + random.int(60) }, 2)
        // Room for the other promoter between a decision and its recording.
        way.plan((call) => writes(call) && random.chance(0.5), { fault: 'delayed', afterMs: random.int(30) }, 10)
      }
      let promoting = true
      const weather = async () => {
        while (promoting) {
          await sleep(random.int(12))
          await (broken ? mend() : breakAgain())
          broken = !broken
        }
      }
      const first = settled(rig, committable)
      const second = sleep(random.int(15)).then(() => settled({ ...rig, promote: other.promote }, committable))
      const both = Promise.all([first, second]).finally(() => {
        promoting = false
      })
      const [[answer]] = await Promise.all([both, weather()])
      proxy.forget()
      other.proxy.forget()
      expect(answer.result === 'promoted' || answer.found?.epoch === epoch).toBe(true)
      const found = await refused()
      const wanted = judged(before, rows, found)
      expect(await shown()).toEqual(wanted)
      await sleep(epoch % 5 === 0 ? 80 : 0)
      expect(await shown()).toEqual(wanted)
      before = wanted
      await rig.sink.forget!(
        0,
        found.map(({ id }) => id),
      )
      if (broken) await mend()
      await at.repair()
      await breakAgain()
      broken = true
    }
    expect(await at.recordings()).toEqual([])
  })

  test('a table for refused rows that is missing or of another form is said, and nothing is decided', async ({
    emulator,
  }) => {
    const { rig, client, refusedTable, refused, recordings, shown } = await refusingTable(emulator, { mode })
    await client.send(new DeleteTableCommand({ TableName: refusedTable }))
    const committable = await rig.stage([row('a', 1), row('a', 2, true)])
    const missing = { code: 'AWS_RESOURCE_MISSING', message: expect.stringContaining('`pawl sinks prepare`') }
    await expect(rig.promote(committable)).rejects.toMatchObject(missing)
    await expect(rig.base()).rejects.toMatchObject(missing)
    await expect(refused()).rejects.toMatchObject(missing)
    expect(await shown()).toEqual({})
    const other = await createTable(client, { pk: 'S' })
    const misshapen = await refusingTable(emulator, { mode, refusedTable: other }).catch((error: unknown) => error)
    expect(misshapen).toMatchObject({ code: 'SINK_SCHEMA_INVALID' })
    expect(await rig.sink.prepare!({ dryRun: true })).toEqual([expect.stringContaining(refusedTable)])
    await rig.sink.prepare!({ dryRun: false })
    expect(await rig.promote(committable)).toEqual({ result: 'promoted', refused: 1 })
    expect(await shown()).toEqual({ a: 1 })
    expect(await recordings()).toHaveLength(1)
  })

  test('a table with other keys parks, since every row would be refused', async ({ emulator }) => {
    const client = new DynamoDBClient(emulator.client)
    onTestFinished(() => client.destroy())
    const markerTable = await createTable(client, { pk: 'S' })
    const table = await createTable(client, { k: 'N' })
    const { rig } = await refusingTable(emulator, { mode, table, markerTable })
    await expect(rig.promote(await rig.stage([row('a', 1)]))).rejects.toMatchObject({ code: 'SINK_SCHEMA_INVALID' })
  })

  test('hundreds of rows are read within bounds and forgotten piece by piece', async ({ emulator }) => {
    const { rig, refused, recordings } = await refusingTable(emulator, { mode })
    const count = mode === 'upsert' ? 250 : 60
    const large = 'x'.repeat(mode === 'upsert' ? 4000 : 30_000)
    await rig.run([row('z', 1, true)])
    await rig.run(Array.from({ length: count }, (_, i) => row(`k${i}`, i, true, { large })))
    expect((await recordings()).length).toBeGreaterThan(3)
    const found = await refused()
    const all = [...Array(count).keys()]
    expect(positions(found)).toEqual([0, ...all])
    expect(await rig.sink.refused!(0, { rows: 42, bytes: allRefused.bytes })).toEqual(found.slice(0, 42))
    expect((await rig.sink.refused!(0, { rows: 900, bytes: 100_000 })).length).toBeLessThan(25)
    const [even, odd] = [0, 1].map((rest) => found.filter((_, index) => index % 2 === rest))
    await rig.sink.forget!(
      0,
      even!.map(({ id }) => id),
    )
    expect(await refused()).toEqual(odd)
    await rig.sink.forget!(
      0,
      odd!.map(({ id }) => id),
    )
    expect(await recordings()).toEqual([])
  })

  test('more refusals than a few park, and once the table is mended every row gets in', async ({ emulator }) => {
    const { rig, mend, shown, refused } = await refusingTable(emulator, { mode })
    const large = 'x'.repeat(45_000)
    const rows = Array.from({ length: mode === 'upsert' ? 1001 : 70 }, (_, i) =>
      row(`k${i}`, i, true, mode === 'upsert' ? {} : { large }),
    )
    const committable = await rig.stage(rows)
    await expect(rig.promote(committable)).rejects.toMatchObject({ code: 'ROWS_REFUSED' })
    expect(await shown()).toEqual({})
    await mend()
    expect(await rig.promote(committable)).toEqual({ result: 'promoted' })
    expect(Object.keys(await shown())).toHaveLength(rows.length)
    expect(await refused()).toEqual([])
  })
})

test('case 66: a request of a refused row that arrives after the table was mended changes nothing', async ({
  emulator,
}) => {
  const at = await refusingTable(emulator)
  await at.rig.run([row('a', 1)])
  const committable = await at.rig.stage([row('a', 2, true), row('b', 3, true), row('c', 4), row('c', 5, true)])
  for (const key of ['a', 'b', 'c'])
    at.proxy.plan((call) => put(call) && at.body().includes(`"${key}"`), { fault: 'late', afterMs: 500 })
  expect(await settled(at.rig, committable)).toEqual({ result: 'promoted', refused: 3 })
  await at.mend()
  await sleep(700)
  expect(at.proxy.left).toBe(0)
  expect(await at.shown()).toEqual({ a: 1, c: 4 })
  expect(positions(await at.refused())).toEqual([0, 1, 3])
})

test('a row that was refused by a promotion that died is accepted or refused by the next one, never both', async ({
  emulator,
}) => {
  const at = await refusingTable(emulator)
  await at.rig.run([row('a', 1)])
  const rows = [row('a', 2, true), row('b', 3), row('b', 4, true), row('c', 5)]
  for (let nth = 0, died = true, before = await at.shown(); died; nth++) {
    const committable = await at.rig.stage(rows)
    let seen = 0
    at.proxy.plan(() => seen++ >= nth, { fault: 'answered', status: 403, code: 'AccessDeniedException' }, 50)
    died = await at.rig.promote(committable).then(
      () => false,
      () => true,
    )
    at.proxy.forget()
    await at.mend()
    await settled(at.rig, committable)
    const found = await at.refused()
    before = judged(before, rows, found)
    expect(await at.shown()).toEqual(before)
    await at.rig.sink.forget!(
      0,
      found.map(({ id }) => id),
    )
    await at.repair()
    await at.breakAgain()
  }
})

test('a key without an item is guarded by a tombstone that may go like any other', async ({ emulator }) => {
  const { rig, client, table } = await refusingTable(emulator, {
    tombstoneTtl: { attribute: 'ttl', afterMs: 86_400_000 },
  })
  await rig.run([row('a', 1)])
  await rig.run([row('a', 2, true), row('b', 3, true)])
  const items = Object.fromEntries((await scan(client, table)).map((item) => [item.k!.S!, item]))
  expect(items.a).toMatchObject({ v: { N: '1' }, _pawl: { M: { e: { N: '2' }, r: { N: '0' }, k: { BOOL: true } } } })
  expect(items.a).not.toHaveProperty('ttl')
  expect(items.b).toMatchObject({ ttl: { N: expect.any(String) }, _pawl: { M: { d: { BOOL: true } } } })
})

test('a promotion that parks on refused rows says so of rows that were decided before', async ({ emulator }) => {
  const at = await refusingTable(emulator)
  const committable = await at.rig.stage([row('a', 1, true)])
  at.proxy.plan(transact, { fault: 'answered', status: 403, code: 'AccessDeniedException' })
  await expect(at.rig.promote(committable)).rejects.toMatchObject({ code: 'AWS_ACCESS_DENIED' })
  await at.mend()
  const parking = await at.another({ onReject: 'park' })
  await expect(parking.promote(committable)).rejects.toMatchObject({
    code: 'ROWS_REFUSED',
    message: expect.stringContaining("onReject: 'dead-letter'"),
  })
  expect(parking.sink.refused).toBeUndefined()
  expect(await at.rig.promote(committable)).toEqual({ result: 'promoted', refused: 1 })
})

for (const mode of modes) {
  test(`mode ${mode}: each row of a pipeline is in the table or a dead letter, once`, async ({ emulator }) => {
    const at = await refusingTable(emulator, { mode })
    const letters = memory<RejectedRecord, string | null>({ value: json(), key: nullable(text()) })
    const { endpoint } = at.proxy
    const numbers = pipeline(`numbers-${mode}`, {
      checkpoint: { intervalMs: 0 },
      promotionRetryMs: [20, 50],
      onError: deadLetter('letters', letters),
    })
      .from(topic('numbers', { value: text() }))
      .to(
        'table',
        dynamodb<string, unknown>({
          ...{ ...emulator.client, endpoint, table: at.table, refusedTable: at.refusedTable, keys: { k: 'S' } },
          ...{ mode, onReject: 'dead-letter' },
          item: (n) => ({ k: `n${Math.abs(Number(n))}`, v: Number(n), x: Number(n) < 0 ? 1 : 'fine' }),
        }),
      )
    const runs = install(numbers)
    onTestFinished(runs.remove)
    const random = prng(5)
    for (let batch = 0; batch < 4; batch++) {
      await runs.append(...Array.from({ length: 40 }, (_, i) => `${(i % 7 === 3 ? -1 : 1) * (1 + batch * 40 + i)}`))
      for (const fault of ['answer-lost', 'request-lost'] as const)
        at.proxy.plan(() => random.chance(0.05), { fault }, 3)
      expect(await runs.run()).toMatchObject({ reason: 'caught-up' })
    }
    const all = Array.from({ length: 160 }, (_, n) => n + 1)
    const isBad = (n: number) => ((n - 1) % 40) % 7 === 3
    const sorted = (values: readonly number[]) => [...values].sort((a, b) => a - b)
    expect(sorted(Object.values(await at.shown()))).toEqual(all.filter((n) => !isBad(n)))
    const buried = letters.entries().map(({ value }) => {
      const item = JSON.parse(Buffer.from(value!.value!, 'base64').toString()) as { v: { N: string } }
      expect(value!.refused).toMatchObject({ sink: 'table', lane: 0, code: 'ValidationException' })
      return -Number(item.v.N)
    })
    expect(sorted(buried)).toEqual(all.filter(isBad))
    expect(await at.recordings()).toEqual([])
  })
}
