import { setTimeout as sleep } from 'node:timers/promises'
import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { describe, expect, onTestFinished } from 'vitest'
import { decimal } from '../../lib/adapters/dynamodb/attributes.ts'
import { type DynamoOptions, dynamodb } from '../../lib/adapters/dynamodb/sink.ts'
import type { KeyType } from '../../lib/adapters/dynamodb/sink-form.ts'
import type { CommitPermit } from '../../lib/model/manifest.ts'
import { prng } from '../../lib/model/prng.ts'
import { text } from '../../lib/model/serde.ts'
import { pipeline } from '../../lib/stream/pipeline.ts'
import { topic } from '../../lib/stream/topic.ts'
import { type Emulator, startEmulator, awsTest as test } from '../support/aws.ts'
import { createTable, type Item, putItem, scan } from '../support/dynamodb-contract.ts'
import { faultProxy, type ProxiedCall, type ProxyFault } from '../support/fault-proxy.ts'
import { markerOf, settled, tableRig } from '../support/table-rig.ts'
import { install } from '../support/table-runs.ts'

type Options = Partial<DynamoOptions<unknown, unknown>>

/** A rig on a table of its own behind a proxy, and a client that goes around it. */
async function rigOn(emulator: Emulator, options: Options = {}) {
  const { keys = { k: 'S' as KeyType } } = options
  const client = new DynamoDBClient(emulator.client)
  let body = ''
  const proxy = await faultProxy(emulator.endpoint, (_, bytes) => {
    body = bytes.toString()
  })
  const table = await createTable(client, keys)
  const aws = { ...emulator.client, endpoint: proxy.endpoint }
  const rig = await tableRig(dynamodb<unknown, unknown>({ ...aws, table, keys, ...options }))
  await rig.base()
  onTestFinished(async () => {
    await rig.sink.close()
    await proxy.close()
    client.destroy()
  })
  const rows = async () => (await scan(client, table)).filter((item) => !item.k?.S?.startsWith('pawl#'))
  /** Of a request whose body has this in it. */
  const putOf = (what: string) => (call: ProxiedCall) => put(call) && body.includes(what)
  return { rig, client, proxy, table, rows, putOf }
}

/** Items as a reader takes them: without what is ours, and without tombstones. */
const shown = (items: readonly Item[]) =>
  Object.fromEntries(
    items
      .filter(({ _pawl }) => _pawl?.M?.d?.BOOL !== true)
      .map(({ k, v }) => [k!.S!, Number(v!.N)] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  )

const put = ({ operation }: ProxiedCall) => operation === 'PutItem'
const transact = ({ operation }: ProxiedCall) => operation === 'TransactWriteItems'
const value = (v: number) => ({ v })
const answered = (status: number, code: string, more?: Readonly<Record<string, unknown>>): ProxyFault => ({
  fault: 'answered',
  status,
  code,
  ...(more === undefined ? {} : { more }),
})

describe.each(['upsert', 'transactions'] as const)('mode %s', (mode) => {
  test('a table has the last item of each key, and none for a tombstone', async ({ emulator }) => {
    const { rig, rows } = await rigOn(emulator, { mode })
    const random = prng(7)
    const wanted = new Map<string, number>()
    for (let epoch = 1; epoch <= 5; epoch++) {
      const batch = Array.from(
        { length: 60 },
        (_, i) => [random.chance(0.3) ? null : value(100 * epoch + i), `k${random.int(20)}`] as const,
      )
      for (const [item, key] of batch) {
        if (item === null) wanted.delete(key)
        else wanted.set(key, item.v)
      }
      await rig.run(batch, 13)
      expect(shown(await rows())).toEqual(Object.fromEntries([...wanted].sort()))
    }
  })

  test('types arrive as they are', async ({ emulator }) => {
    const { rig, rows } = await rigOn(emulator, { mode })
    const item = {
      long: 9007199254740993n,
      price: '12.50',
      exact: decimal('0.1234567890123456789012345678901234567'),
      bytes: new Uint8Array([0, 255]),
      nothing: null,
      missing: undefined,
      at: new Date(0),
      list: [1, { deep: [true] }],
    }
    await rig.run([[item, 'a']])
    const [{ k, _pawl, ...found }] = (await rows()) as [Item]
    expect(found).toEqual({
      long: { N: '9007199254740993' },
      price: { S: '12.50' },
      exact: { N: '0.1234567890123456789012345678901234567' },
      bytes: { B: new Uint8Array([0, 255]) },
      nothing: { NULL: true },
      at: { S: '1970-01-01T00:00:00.000Z' },
      list: { L: [{ N: '1' }, { M: { deep: { L: [{ BOOL: true }] } } }] },
    })
  })

  test('case 1: an epoch shows once when answers are lost, and everything is asked again', async ({ emulator }) => {
    const { rig, proxy, rows } = await rigOn(emulator, { mode })
    const first = await rig.stage([
      [value(1), 'a'],
      [value(2), 'b'],
      [null, 'c'],
    ])
    proxy.plan((call) => put(call) || transact(call), { fault: 'answer-lost' }, 3)
    expect(await settled(rig, first)).toEqual({ result: 'promoted' })
    const second = await rig.stage([[value(3), 'a']])
    proxy.plan(
      (call) => put(call) || transact(call),
      { fault: 'repeated', answer: 'second' },
      mode === 'upsert' ? 2 : 1,
    )
    await settled(rig, second)
    expect(shown(await rows())).toEqual({ a: 3, b: 2 })
    expect(await rig.sink.marker(0)).toEqual(markerOf(rig.incarnation, 2))
    expect(proxy.left).toBe(0)
  })

  test('case 7: throttles, conflicts and transactions in progress are waited for', async ({ emulator }) => {
    const { rig, proxy, rows } = await rigOn(emulator, { mode })
    const committable = await rig.stage([[value(1), 'a']])
    if (mode === 'upsert') {
      proxy.plan(put, answered(400, 'ProvisionedThroughputExceededException'), 2)
      proxy.plan(put, answered(400, 'TransactionConflictException'))
      proxy.plan(put, answered(500, 'InternalServerError'))
    } else {
      const cancelled = (...codes: string[]) =>
        answered(400, 'TransactionCanceledException', { CancellationReasons: codes.map((Code) => ({ Code })) })
      proxy.plan(transact, cancelled('None', 'TransactionConflict'))
      proxy.plan(transact, cancelled('ThrottlingError', 'None'))
      proxy.plan(transact, cancelled('None', 'ProvisionedThroughputExceeded'))
      proxy.plan(transact, answered(400, 'TransactionInProgressException'))
    }
    expect(await rig.promote(committable)).toEqual({ result: 'promoted' })
    expect(proxy.left).toBe(0)
    expect(shown(await rows())).toEqual({ a: 1 })
  })

  test('case 4: the condition that fails because of an earlier try of its own is a success', async ({ emulator }) => {
    const { rig, proxy, rows } = await rigOn(emulator, { mode })
    const committable = await rig.stage([[value(1), 'a']])
    proxy.plan((call) => put(call) || transact(call), { fault: 'answer-lost' }, mode === 'upsert' ? 2 : 1)
    expect(await rig.promote(committable)).toEqual({ result: 'promoted' })
    expect(proxy.left).toBe(0)
    expect(shown(await rows())).toEqual({ a: 1 })
  })

  test('case 6: a request that arrives after the next epoch changes nothing, whatever its token', async ({
    emulator,
  }) => {
    const { rig, proxy, rows } = await rigOn(emulator, { mode })
    const first = await rig.stage([
      [value(1), 'a'],
      [null, 'b'],
    ])
    proxy.plan((call) => put(call) || transact(call), { fault: 'late', afterMs: 400 }, mode === 'upsert' ? 3 : 1)
    await settled(rig, first)
    await rig.run([
      [value(2), 'a'],
      [value(2), 'b'],
    ])
    await sleep(600)
    expect(shown(await rows())).toEqual({ a: 2, b: 2 })
    expect(await rig.sink.marker(0)).toEqual(markerOf(rig.incarnation, 2))
  })

  test('a row that the table refuses is named, and written once the table is mended', async ({ emulator }) => {
    const { rig, proxy, table, rows } = await rigOn(emulator, { mode })
    const committable = await rig.stage([[value(1), 'a']])
    const message = 'One or more parameter values were invalid: Type mismatch for Index Key v'
    const refusal =
      mode === 'upsert'
        ? answered(400, 'ValidationException', { message })
        : answered(400, 'TransactionCanceledException', {
            CancellationReasons: [{ Code: 'None' }, { Code: 'ValidationError', Message: message }],
          })
    proxy.plan(mode === 'upsert' ? put : transact, refusal)
    await expect(rig.promote(committable)).rejects.toMatchObject({
      code: 'ROWS_REFUSED',
      details: { sink: 'rows', lane: 0, epoch: 1, table, rowKey: 'k=a' },
    })
    expect(await rig.promote(committable)).toEqual({ result: 'promoted' })
    expect(shown(await rows())).toEqual({ a: 1 })
  })

  test('a table that answers nothing for a while is waited for', async ({ emulator }) => {
    const { rig, proxy, rows } = await rigOn(emulator, { mode })
    const committable = await rig.stage([[value(1), 'a']])
    proxy.plan(() => true, answered(400, 'ThrottlingException'), 8)
    await expect(rig.promote(committable)).rejects.toMatchObject({ code: 'SINK_UNAVAILABLE', kind: 'Retryable' })
    await settled(rig, committable)
    expect(shown(await rows())).toEqual({ a: 1 })
  })
})

test('case 66: an item that a dead promotion writes late changes nothing, be it a put or a tombstone', async ({
  emulator,
}) => {
  const { rig, proxy, rows, putOf } = await rigOn(emulator)
  const first = await rig.stage([
    [value(1), 'a'],
    [value(1), 'b'],
    [null, 'c'],
  ])
  for (const key of ['a', 'b', 'c']) proxy.plan(putOf(`"${key}"`), { fault: 'late', afterMs: 700 })
  expect(await settled(rig, first)).toEqual({ result: 'promoted' })
  await rig.run([
    [value(2), 'a'],
    [null, 'b'],
    [value(2), 'c'],
  ])
  await sleep(900)
  expect(shown(await rows())).toEqual({ a: 2, c: 2 })
})

test('case 18: a promotion that died in the middle is ended by the next one', async ({ emulator }) => {
  const { rig, proxy, rows } = await rigOn(emulator)
  const committable = await rig.stage(Array.from({ length: 200 }, (_, i) => [value(i), `k${i}`]))
  let seen = 0
  proxy.plan((call) => put(call) && ++seen > 90, answered(403, 'AccessDeniedException'), 40)
  await expect(rig.promote(committable)).rejects.toMatchObject({ code: 'AWS_ACCESS_DENIED' })
  const partly = (await rows()).length
  expect(partly).toBeGreaterThan(0)
  expect(partly).toBeLessThan(200)
  expect(await rig.sink.marker(0)).toEqual(markerOf(rig.incarnation, 0))
  proxy.forget()
  expect(await rig.promote(committable)).toEqual({ result: 'promoted' })
  expect(await rows()).toHaveLength(200)
})

test('items of another incarnation or history are never replaced', async ({ emulator }) => {
  const { rig, client, table, rows } = await rigOn(emulator)
  const guard = (i: string, e: number, h: string): Item => ({
    k: { S: 'a' },
    v: { N: '7' },
    _pawl: { M: { i: { S: i }, e: { N: `${e}` }, h: { S: h } } },
  })
  const committable = await rig.stage([[value(1), 'a']])
  for (const [item, code] of [
    [guard('another', 0, 'x'), 'MARKER_FOREIGN'],
    [guard(rig.incarnation, 1, 'other-history'), 'MARKER_UNKNOWN'],
    [guard(rig.incarnation, 5, 'later'), 'MARKER_UNKNOWN'],
  ] as const) {
    await putItem(client, table, item)
    await expect(rig.promote(committable)).rejects.toMatchObject({ code, details: { rowKey: 'k=a', epoch: 1 } })
    expect(shown(await rows())).toEqual({ a: 7 })
  }
  await putItem(client, table, { k: { S: 'a' }, v: { N: '8' } })
  expect(await rig.promote(committable)).toEqual({ result: 'promoted' })
  expect(shown(await rows())).toEqual({ a: 1 })
})

test('items of an incarnation from which the lane was taken over are replaced, by its new owner alone', async ({
  emulator,
}) => {
  const { rig, proxy, rows, putOf } = await rigOn(emulator)
  await rig.run([
    [value(1), 'a'],
    [value(1), 'b'],
  ])
  const late = await rig.stage([[value(7), 'a']])
  const other = { incarnation: 'other', epoch: 0, hash: 'h0' }
  proxy.plan(putOf('"a"'), { fault: 'late', afterMs: 400 })
  proxy.plan(putOf('"a"'), { fault: 'request-lost' }, 20)
  await expect(rig.promote(late)).rejects.toMatchObject({ kind: 'Retryable' })
  proxy.forget()
  for (const to of [null, other]) {
    const from = to === null ? markerOf(rig.incarnation, 1) : null
    expect(await rig.sink.reassign!(0, from, to)).toEqual(to)
  }
  const staged = await rig.stage([[value(2), 'a']])
  const taken = { ...staged, epoch: 1, prev: other }
  const permit = { incarnation: 'other', epoch: 1, manifest: { name: 'm', bytes: 1, sha256: 'h1' } } as CommitPermit
  expect(await rig.sink.promote(taken, permit)).toEqual({ result: 'promoted' })
  expect(await rig.promote(late)).toMatchObject({ result: 'refused', found: { incarnation: 'other' } })
  expect(shown(await rows())).toEqual({ a: 2, b: 1 })
})

test('the table of markers is made when a person asks for it, and its request is shown', async ({ emulator }) => {
  const client = new DynamoDBClient(emulator.client)
  onTestFinished(() => client.destroy())
  const table = await createTable(client, { k: 'S' })
  const markerTable = `${table}-markers`
  const rig = await tableRig(dynamodb<unknown, unknown>({ ...emulator.client, table, keys: { k: 'S' }, markerTable }))
  onTestFinished(() => rig.sink.close())
  const shownRequest = await rig.sink.prepare!({ dryRun: true })
  await expect(rig.base()).rejects.toMatchObject({ code: 'AWS_RESOURCE_MISSING' })
  expect(await rig.sink.prepare!({ dryRun: false })).toEqual(shownRequest)
  expect(await rig.sink.prepare!({ dryRun: false })).toEqual(shownRequest)
  expect(shownRequest).toEqual([expect.stringContaining(markerTable)])
  expect(await rig.base()).toEqual(markerOf(rig.incarnation, 0))
})

test('a tombstone keeps its guard, and the time at which it may go where one is wanted', async ({ emulator }) => {
  const { rig, rows } = await rigOn(emulator, { tombstoneTtl: { attribute: 'expires', afterMs: 86_400_000 } })
  await rig.run([[value(1), 'a']])
  await rig.run([[null, 'a']])
  const [item] = await rows()
  expect(item).toMatchObject({ k: { S: 'a' }, _pawl: { M: { e: { N: '2' }, d: { BOOL: true } } } })
  expect(item).not.toHaveProperty('v')
  expect(Number(item!.expires!.N) * 1000).toBeGreaterThan(Date.now() + 86_000_000)
  await rig.run([[value(3), 'a']])
  expect((await rows())[0]).not.toHaveProperty('expires')
})

test('an item beyond 400 KB is refused when it is staged, naming sink, epoch and key', async ({ emulator }) => {
  const { rig } = await rigOn(emulator)
  const writer = await rig.sink.stage({ store: rig.store, prefix: 'x/', incarnation: 'i', epoch: 4, lanes: 1 })
  expect(() => writer.add('a', { v: 'x'.repeat(400 * 1024) }, 0, 0)).toThrow(
    expect.objectContaining({
      code: 'RECORD_TOO_LARGE',
      details: expect.objectContaining({ sink: 'rows', epoch: 4, rowKey: 'k=a' }),
    }),
  )
  for (const [key, item] of [
    ['pawl#marker', {}],
    ['', {}],
    [7, {}],
    ['a', { _pawl: 1 }],
    ['a', [1]],
    ['a', { v: new Set([1]) }],
  ] as const) {
    expect(() => writer.add(key, item, 0, 0)).toThrow(expect.objectContaining({ code: 'ENCODE_FAILED' }))
  }
  expect(writer.bufferedBytes).toBe(0)
})

test('markers have a table of their own where the partition key is a number', async ({ emulator }) => {
  const client = new DynamoDBClient(emulator.client)
  onTestFinished(() => client.destroy())
  const markerTable = await createTable(client, { pk: 'S' })
  for (const mode of ['upsert', 'transactions'] as const) {
    const { rig, rows } = await rigOn(emulator, { mode, keys: { day: 'N', at: 'B' }, markerTable })
    await rig.run([[{ v: 1 }, { day: 20_000n, at: new Uint8Array([1]) }]])
    await rig.run([[{ v: 2 }, { day: 2e4, at: new Uint8Array([1]) }]])
    expect((await rows()).map(({ day, at, v }) => [day, at, v])).toEqual([
      [{ N: '20000' }, { B: new Uint8Array([1]) }, { N: '2' }],
    ])
    expect(await rig.sink.marker(0)).toEqual(markerOf(rig.incarnation, 2))
  }
  expect(await scan(client, markerTable)).toHaveLength(2)
})

test('a table restored from a backup of five epochs ago is healed', async ({ emulator }) => {
  const client = new DynamoDBClient(emulator.client)
  onTestFinished(() => client.destroy())
  const table = await createTable(client, { word: 'S' })
  const counts = pipeline('counts', { checkpoint: { intervalMs: 0 }, retain: { epochs: 20 } })
    .from(topic('words', { value: text() }))
    .keyBy((word) => word)
    .count('count')
    .to('counts', dynamodb({ ...emulator.client, table, keys: { word: 'S' }, item: (count: number) => ({ count }) }))
  const runs = install(counts)
  onTestFinished(runs.remove)
  const epoch = async (number: number) => {
    await runs.append('a', `w${number % 3}`)
    expect(await runs.run()).toMatchObject({ reason: 'caught-up' })
  }
  for (let number = 1; number <= 4; number++) await epoch(number)
  const backup = await scan(client, table)
  for (let number = 5; number <= 9; number++) await epoch(number)
  for (const item of backup) await putItem(client, table, item)
  await epoch(10)
  expect(runs.events).toContainEqual(expect.objectContaining({ event: 'healed', sink: 'counts', lane: 0 }))
  const found = (await scan(client, table)).filter(({ word }) => !word!.S!.startsWith('pawl#'))
  expect(Object.fromEntries(found.map(({ word, count }) => [word!.S, count!.N]))).toEqual({
    a: '10',
    w0: '3',
    w1: '4',
    w2: '3',
  })
})

test('goes on where it was when the emulator is stopped and started in mid-promote', async ({ emulator: shared }) => {
  expect(shared.endpoint).toMatch(/^http/)
  const emulator = await startEmulator()
  onTestFinished(() => emulator.remove())
  const { rig, rows } = await rigOn(emulator)
  for (let epoch = 1; epoch <= 2; epoch++) {
    const committable = await rig.stage(Array.from({ length: 400 }, (_, i) => [value(epoch), `k${i}`]))
    const promoting = rig.promote(committable).catch((error: { kind?: string }) => error)
    await sleep(60)
    await emulator.stop()
    await emulator.restart()
    await promoting
    await settled(rig, committable)
    expect(Object.values(shown(await rows()))).toEqual(Array(400).fill(epoch))
  }
})
