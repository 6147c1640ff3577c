import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished } from 'vitest'
import { redis as redisSink } from '../../lib/adapters/redis/sink.ts'
import type { CommitPermit, RejectedRecord } from '../../lib/model/manifest.ts'
import { prng } from '../../lib/model/prng.ts'
import { json, nullable, text } from '../../lib/model/serde.ts'
import { deadLetter, pipeline } from '../../lib/stream/pipeline.ts'
import { topic } from '../../lib/stream/topic.ts'
import { memory } from '../../lib/testing/index.ts'
import { cuttingProxy } from '../support/cutting-proxy.ts'
import { missingRedis, type RedisServer, startRedis, redisTest as test } from '../support/redis.ts'
import { freshName, markerOf, type RigRow, settled, tableRig } from '../support/table-rig.ts'
import { install } from '../support/table-runs.ts'

const bound = { rows: 1000, bytes: 1024 * 1024 }

/** Strings under a prefix of their own, of which every seventh key is a list of somebody else. */
async function rigOn(server: RedisServer, onReject: 'park' | 'dead-letter' = 'dead-letter', url = server.url) {
  const prefix = `${freshName('s')}:`
  const spec = redisSink<unknown, unknown>({
    connection: () => url,
    type: 'string',
    key: prefix,
    value: text() as never,
    onReject,
  })
  const rig = await tableRig(spec)
  await rig.base()
  const client = server.connect()
  onTestFinished(async () => {
    await rig.sink.close()
    client.disconnect()
  })
  const take = async (numbers: readonly number[]) => {
    for (const n of numbers) await client.rpush(`${prefix}k${n}`, 'theirs')
  }
  const strings = async (count: number) => {
    const keys = Array.from({ length: count }, (_, n) => `${prefix}k${n}`)
    const kinds = await Promise.all(keys.map((key) => client.type(key)))
    return keys.map((_, n) => n).filter((n) => kinds[n] === 'string')
  }
  return { rig, client, prefix, take, strings }
}

const rowsOf = (count: number, value = 'v'): RigRow[] =>
  Array.from({ length: count }, (_, n) => [`${value}${n}`, `k${n}`])
const every = (count: number, wanted: (n: number) => boolean) =>
  Array.from({ length: count }, (_, n) => n).filter(wanted)
const isTaken = (n: number) => n % 7 === 3

test('parks on a key that holds something else, naming it, and writes all of the epoch once it is gone', async ({
  redis,
}) => {
  const { rig, client, prefix, take, strings } = await rigOn(redis, 'park')
  await take([5])
  const committable = await rig.stage(rowsOf(10))
  await expect(rig.promote(committable)).rejects.toMatchObject({
    code: 'ROWS_REFUSED',
    message: expect.stringContaining(
      `sink rows, lane 0, epoch 1, row ${prefix}k5: key ${prefix}k5 is a list, not a string`,
    ),
    details: { sink: 'rows', lane: 0, epoch: 1, rowKey: `${prefix}k5` },
  })
  expect(await strings(10)).toEqual([])
  expect(await client.lrange(`${prefix}k5`, 0, -1)).toEqual(['theirs'])
  await client.del(`${prefix}k5`)
  expect(await rig.promote(committable)).toEqual({ result: 'promoted' })
  expect(await strings(10)).toHaveLength(10)
})

test('writes the welcome rows and records the others with the marker, until they are forgotten', async ({ redis }) => {
  const { rig, client, prefix, take, strings } = await rigOn(redis)
  await take(every(100, isTaken))
  const committable = await rig.stage([...rowsOf(100), [null, 'k3'], ['again', 'k10'], ['last', 'k11']], 30)
  const count = every(100, isTaken).length + 2
  expect(await rig.promote(committable)).toEqual({ result: 'promoted', refused: count })
  expect(await strings(100)).toEqual(every(100, (n) => !isTaken(n)))
  expect(await client.get(`${prefix}k11`)).toBe('last')
  expect(await client.lrange(`${prefix}k3`, 0, -1)).toEqual(['theirs'])
  const refused = await rig.sink.refused!(0, bound)
  expect(refused.map(({ row }) => row)).toEqual([...every(100, isTaken), 100, 101])
  for (const { row, epoch, incarnation, code, key, value, reason } of refused) {
    expect({ epoch, incarnation, code }).toEqual({ epoch: 1, incarnation: rig.incarnation, code: 'WRONGTYPE' })
    const name = `${prefix}k${row === 100 ? 3 : row === 101 ? 10 : row}`
    expect(Buffer.from(key!, 'base64').toString()).toBe(name)
    expect(reason).toBe(`key ${name} is a list, not a string`)
    const content = row === 100 ? null : row === 101 ? 'again' : `v${row}`
    expect(value === null ? null : Buffer.from(value, 'base64').toString()).toBe(content)
  }
  expect(await rig.promote(committable)).toEqual({ result: 'refused', found: markerOf(rig.incarnation, 1) })
  expect(await rig.sink.refused!(0, { rows: 2, bytes: 9999 })).toEqual(refused.slice(0, 2))
  expect(await rig.sink.refused!(0, { rows: 9, bytes: 1 })).toEqual(refused.slice(0, 1))
  await rig.sink.forget!(0, ['nobody', ...refused.slice(1).map(({ id }) => id)])
  await rig.sink.forget!(0, [refused[1]!.id])
  expect(await rig.sink.refused!(0, bound)).toEqual([refused[0]])
})

test('moves the marker past an epoch of which every row is refused', async ({ redis }) => {
  const { rig, take, strings } = await rigOn(redis)
  await take([0, 1])
  expect(await rig.promote(await rig.stage(rowsOf(2)))).toEqual({ result: 'promoted', refused: 2 })
  expect(await rig.sink.marker(0)).toEqual(markerOf(rig.incarnation, 1))
  await rig.run([['v', 'k2']])
  expect(await strings(3)).toEqual([2])
})

test('more refusals than a few are no matter of rows: nothing is written', async ({ redis }) => {
  const { rig, take, strings } = await rigOn(redis)
  await take(every(1002, (n) => n > 0))
  const committable = await rig.stage(rowsOf(1002))
  await expect(rig.promote(committable)).rejects.toMatchObject({ code: 'ROWS_REFUSED' })
  expect(await strings(2)).toEqual([])
  expect(await rig.sink.refused!(0, bound)).toEqual([])
})

test('case 1: records each once when the answer is lost, when two promote at once, and in a later repetition', async ({
  redis,
}) => {
  const proxy = await cuttingProxy(redis.port)
  onTestFinished(() => proxy.close())
  const url = redis.url.replace(String(redis.port), String(proxy.port))
  const { rig, take, strings } = await rigOn(redis, 'dead-letter', url)
  await take(every(50, isTaken))
  const first = await rig.stage(rowsOf(50))
  proxy.cut(/HSET|EVAL/i, 'after')
  await expect(rig.promote(first)).rejects.toMatchObject({ code: 'UNKNOWN_RESULT' })
  const then = await settled(rig, first)
  expect(then.result === 'promoted' || then.found?.epoch === 1).toBe(true)
  const second = await rig.stage(rowsOf(50, 'w'))
  const answers = await Promise.all([settled(rig, second), settled(rig, second), settled(rig, second)])
  expect(answers.map(({ result }) => result).sort()).toEqual(['promoted', 'refused', 'refused'])
  expect((await rig.promote(first)).result).toBe('refused')
  const refused = await rig.sink.refused!(0, bound)
  const places = every(50, isTaken)
  expect(refused.map(({ epoch, row }) => [epoch, row])).toEqual([
    ...places.map((n) => [1, n]),
    ...places.map((n) => [2, n]),
  ])
  expect(await strings(50)).toEqual(every(50, (n) => !isTaken(n)))
})

test('all tries of an epoch record a row under one id, and a sink that was put back under another', async ({
  redis,
}) => {
  const { rig, take } = await rigOn(redis, 'dead-letter')
  await take([1])
  const committable = await rig.stage(rowsOf(3))
  const permit = { incarnation: rig.incarnation, epoch: 1, manifest: { sha256: 'hash-of-1' } } as CommitPermit
  const idsAfter = async (healing: boolean) => {
    await rig.sink.reassign!(0, markerOf(rig.incarnation, 1), committable.prev)
    expect(await rig.sink.promote(committable, permit, { healing })).toEqual({ result: 'promoted', refused: 1 })
    return (await rig.sink.refused!(0, bound)).map(({ id }) => id)
  }
  await rig.promote(committable)
  const [first] = await idsAfter(false)
  expect(await idsAfter(false)).toEqual([first])
  const both = await idsAfter(true)
  expect(both).toHaveLength(2)
  expect(both).toContain(first)
})

test('a key that is taken away between two tries is recorded or written, never both', async ({ redis }) => {
  const { rig, client, prefix, take, strings } = await rigOn(redis)
  for (let epoch = 1; epoch <= 20; epoch++) {
    await take([1])
    const promoting = rig.promote(await rig.stage([[`e${epoch}`, 'k1']]))
    await client.del(`${prefix}k1`)
    const answer = await promoting
    const recorded = await rig.sink.refused!(0, bound)
    expect(answer).toEqual(recorded.length === 0 ? { result: 'promoted' } : { result: 'promoted', refused: 1 })
    expect(await strings(2)).toEqual(recorded.length === 0 ? [1] : [])
    await client.del(`${prefix}k1`)
    await rig.sink.forget!(
      0,
      recorded.map(({ id }) => id),
    )
  }
})

test('each refused row is a dead letter once, and each other row is there once, while the server is killed', async ({
  skip,
}) => {
  const missing = missingRedis()
  if (missing !== null) skip(missing)
  // Nothing that was acknowledged is lost, so nothing is healed: what is healed may be a dead letter again.
  const redis = await startRedis('--appendfsync', 'always')
  onTestFinished(() => redis.remove())
  const prefix = `${freshName('p')}:`
  const letters = memory<RejectedRecord, string | null>({ value: json(), key: nullable(text()) })
  const numbers = pipeline(prefix.slice(0, -1).replace('_', '-'), {
    checkpoint: { intervalMs: 0 },
    promotionRetryMs: [50, 200],
    onError: deadLetter('letters', letters),
  })
    .from(topic('numbers', { value: text() }))
    .to(
      'table',
      redisSink<string, unknown>({
        connection: () => redis.url,
        ...{ type: 'string', key: prefix, value: text(), onReject: 'dead-letter' },
        member: (value) => value,
      }),
    )
  const runs = install(numbers)
  onTestFinished(runs.remove)
  const before = redis.connect()
  for (const n of every(150, isTaken)) await before.rpush(`${prefix}${n}`, 'theirs')
  before.disconnect()
  const random = prng(5)
  for (let batch = 0; batch < 3; batch++) {
    await runs.append(...Array.from({ length: 50 }, (_, i) => `${batch * 50 + i}`))
    const running = runs.run()
    await sleep(random.int(120))
    await redis.kill()
    await redis.restart()
    expect((await running).reason).toBe('caught-up')
  }
  const client = redis.connect()
  onTestFinished(() => client.disconnect())
  const shown: number[] = []
  for (let n = 0; n < 150; n++) if ((await client.type(`${prefix}${n}`)) === 'string') shown.push(n)
  expect(shown).toEqual(every(150, (n) => !isTaken(n)))
  const buried = letters.entries().map(({ value }) => Number(Buffer.from(value!.value!, 'base64').toString()))
  expect(buried.sort((a, b) => a - b)).toEqual(every(150, isTaken))
  expect(await client.keys(`pawl:{${prefix}}:*:refused`)).toEqual([])
})

test('one key for all rows refuses no row alone', () => {
  for (const type of ['hash', 'set', 'sorted-set', 'stream'] as const)
    expect(() => redisSink({ connection: () => '', type, key: 'k', onReject: 'dead-letter' })).toThrow(
      expect.objectContaining({ code: 'PIPELINE_INVALID', message: expect.stringContaining('leave out onReject') }),
    )
})
