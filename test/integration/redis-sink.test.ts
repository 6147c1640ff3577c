import { cpSync, readdirSync, rmSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished } from 'vitest'
import { markerKey } from '../../lib/adapters/redis/keys.ts'
import { type RedisOptions, redis as redisSink } from '../../lib/adapters/redis/sink.ts'
import { isPawlError } from '../../lib/model/errors.ts'
import { prng } from '../../lib/model/prng.ts'
import { bytes, nullable, text } from '../../lib/model/serde.ts'
import { pipeline } from '../../lib/stream/pipeline.ts'
import { topic } from '../../lib/stream/topic.ts'
import { cuttingProxy } from '../support/cutting-proxy.ts'
import {
  clusterUp,
  missingRedis,
  type RedisServer,
  startRedis,
  startRedisCluster,
  redisTest as test,
} from '../support/redis.ts'
import { freshName, markerOf, settled, type TableRig, tableRig } from '../support/table-rig.ts'
import { install } from '../support/table-runs.ts'

/** A rig on a key of its own, and a client to look with. */
async function rigOn(
  server: RedisServer,
  options: Partial<RedisOptions<unknown, unknown>> & Pick<RedisOptions<unknown, unknown>, 'type'>,
) {
  const key = options.key ?? freshName('key')
  const rig = await tableRig(redisSink<unknown, unknown>({ connection: () => server.url, key, ...options }))
  await rig.base()
  const client = server.connect()
  onTestFinished(async () => {
    await rig.sink.close()
    client.disconnect()
  })
  return { key, rig, client }
}

test('a hash has the last value of each key, and no field for a tombstone', async ({ redis }) => {
  const { key, rig, client } = await rigOn(redis, { type: 'hash' })
  const random = prng(7)
  const wanted: Record<string, string> = {}
  for (let epoch = 1; epoch <= 5; epoch++) {
    const rows = Array.from(
      { length: 100 },
      (_, i) => [random.chance(0.3) ? null : { i, epoch }, `k${random.int(20)}`] as const,
    )
    for (const [value, name] of rows) {
      if (value === null) delete wanted[name]
      else wanted[name] = JSON.stringify(value)
    }
    await rig.run(rows, 13)
    expect(await client.hgetall(key)).toEqual(wanted)
  }
})

test('strings, sets and sorted sets take and lose their members', async ({ redis }) => {
  const strings = await rigOn(redis, { type: 'string', key: `${freshName('s')}:`, value: text() as never })
  await strings.rig.run([
    ['one', 'a'],
    ['two', 'b'],
    ['', 'c'],
    [null, 'b'],
  ])
  const read = (name: string) => strings.client.get(strings.key + name)
  expect([await read('a'), await read('b'), await read('c')]).toEqual(['one', null, ''])

  const set = await rigOn(redis, { type: 'set' })
  await set.rig.run([
    [1, 'a'],
    [1, 'b'],
    [1, 'č'],
    [null, 'a'],
  ])
  expect((await set.client.smembers(set.key)).sort()).toEqual(['b', 'č'])

  const board = await rigOn(redis, { type: 'sorted-set', score: (value) => (value as { points: number }).points })
  await board.rig.run([
    [{ points: 5 }, 'ann'],
    [{ points: 7.5 }, 'bob'],
    [{ points: 1 }, 'eve'],
    [null, 'eve'],
    [{ points: 9 }, 'ann'],
  ])
  expect(await board.client.call('ZRANGE', board.key, '0', '-1', 'WITHSCORES')).toEqual([
    ['bob', '7.5'],
    ['ann', '9'],
  ])
})

test('keeps bytes as they are', async ({ redis }) => {
  const { key, rig, client } = await rigOn(redis, { type: 'hash', keys: bytes() as never, value: bytes() as never })
  const all = Uint8Array.from({ length: 256 }, (_, i) => i)
  await rig.run([
    [all, all],
    [new Uint8Array(), new Uint8Array([0])],
  ])
  expect(await client.hgetallBuffer(key)).toBeDefined()
  expect(await client.hgetBuffer(key, Buffer.from(all))).toEqual(Buffer.from(all))
  expect(await client.hgetBuffer(key, Buffer.from([0]))).toEqual(Buffer.alloc(0))
})

test('refuses what has no place when it is staged', async ({ redis }) => {
  const { rig } = await rigOn(redis, { type: 'sorted-set' })
  const writer = await rig.sink.stage({ store: rig.store, prefix: 'x/', incarnation: 'i', epoch: 1, lanes: 1 })
  for (const [key, score] of [
    ['a', Number.NaN],
    ['a', '7'],
    [null, 1],
  ] as const) {
    expect(() => writer.add(key, score, 0, 0)).toThrow(expect.objectContaining({ code: 'ENCODE_FAILED' }))
  }
  expect(writer.bufferedBytes).toBe(0)
  expect(() => redisSink({ connection: '', type: 'stream', key: 's', lanes: 2 })).toThrow(/a stream takes one lane/)
})

test('a key of another type is refused before anything is written, and written once it is gone', async ({ redis }) => {
  for (const type of ['hash', 'set', 'sorted-set', 'stream'] as const) {
    const { key, rig, client } = await rigOn(redis, { type })
    await client.set(key, 'mine')
    const committable = await rig.stage([[1, 'a']])
    const error = await rig.promote(committable).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'SINK_SCHEMA_INVALID', details: { sink: 'rows', lane: 0, epoch: 1, key } })
    expect(await client.get(key)).toBe('mine')
    await client.del(key)
    expect(await rig.promote(committable)).toEqual({ result: 'promoted' })
  }
})

test('a user who may not send all commands shows no part of an epoch, and the command is named', async ({ redis }) => {
  const admin = redis.connect()
  onTestFinished(() => admin.disconnect())
  const lacking = [
    ['hash', 'hdel'],
    ['string', 'del'],
    ['set', 'srem'],
    ['sorted-set', 'zrem'],
    ['stream', 'xadd'],
  ] as const
  for (const [type, command] of lacking) {
    const user = freshName('user')
    await admin.call('ACL', 'SETUSER', user, 'on', '>pw', '~*', '+@all')
    const connection = redis.url.replace(':open-sesame@', `${user}:pw@`)
    const { key, rig, client } = await rigOn(redis, { type, connection, key: `${freshName('k')}:` })
    await rig.run([[1, 'a']])
    await admin.call('ACL', 'SETUSER', user, `-${command}`)
    const before = await client.keys(`${key}*`)
    const dump = await Promise.all(before.map((name) => client.dump(name)))
    const committable = await rig.stage([
      [2, 'b'],
      [null, 'a'],
    ])
    await expect(rig.promote(committable)).rejects.toMatchObject({
      code: 'AUTHORIZATION_FAILED',
      details: { sink: 'rows', lane: 0, epoch: 2, reason: expect.stringContaining(command.toUpperCase()) },
    })
    expect(await client.keys(`${key}*`)).toEqual(before)
    expect(await Promise.all(before.map((name) => client.dump(name)))).toEqual(dump)
    await admin.call('ACL', 'SETUSER', user, `+${command}`)
    expect(await rig.promote(committable)).toEqual({ result: 'promoted' })
  }
})

test('a stream whose ids end in the middle of an epoch takes nothing of it', async ({ redis }) => {
  const { key, rig, client } = await rigOn(redis, { type: 'stream' })
  await client.xadd(key, '18446744073709551615-18446744073709551613', 'a', 'b')
  const committable = await rig.stage(['1', '2', '3', '4'].map((value) => [value, 'k'] as const))
  const refused = { code: 'SINK_SCHEMA_INVALID', details: { lane: 0, epoch: 1, key } }
  await expect(rig.promote(committable)).rejects.toMatchObject(refused)
  expect(await client.xlen(key)).toBe(1)
  await client.del(key)
  expect(await rig.promote(committable)).toEqual({ result: 'promoted' })
})

test('a Redis without memory, or that only reads, shows no part of an epoch, and takes it later', async ({ redis }) => {
  const { key, rig, client } = await rigOn(redis, { type: 'hash' })
  const hinder = [
    [['CONFIG', 'SET', 'maxmemory', '1'], 'OOM', ['CONFIG', 'SET', 'maxmemory', '0']],
    [['CONFIG', 'SET', 'min-replicas-to-write', '1'], 'NOREPLICAS', ['CONFIG', 'SET', 'min-replicas-to-write', '0']],
    [['REPLICAOF', '127.0.0.1', '1'], 'READONLY', ['REPLICAOF', 'NO', 'ONE']],
  ] as const
  for (const [index, [hindering, reason, freeing]] of hinder.entries()) {
    const committable = await rig.stage([
      [index, 'a'],
      [index, 'b'],
    ])
    const before = await client.hgetall(key)
    await client.call(hindering[0], ...hindering.slice(1))
    await expect(rig.promote(committable)).rejects.toMatchObject({
      code: 'SINK_UNAVAILABLE',
      details: { lane: 0, epoch: index + 1, reason: expect.stringContaining(reason) },
    })
    expect(await client.hgetall(key)).toEqual(before)
    await client.call(freeing[0], ...freeing.slice(1))
    expect(await settled(rig, committable)).toEqual({ result: 'promoted' })
  }
})

test('something that is no marker under its key stops the lane in place of being asked again', async ({ redis }) => {
  const { key, rig, client } = await rigOn(redis, { type: 'hash' })
  const committable = await rig.stage([[1, 'a']])
  const [marker] = await client.keys(`pawl:{${key}}:*`)
  await client.set(marker!, 'mine')
  await expect(rig.promote(committable)).rejects.toMatchObject({ code: 'MARKER_UNKNOWN', kind: 'Corrupt' })
  expect(await client.exists(key)).toBe(0)
})

for (const when of ['before', 'after'] as const) {
  test(`case 1: an epoch shows once when the connection is cut ${when} the script`, async ({ redis }) => {
    const proxy = await cuttingProxy(redis.port)
    onTestFinished(() => proxy.close())
    const url = redis.url.replace(String(redis.port), String(proxy.port))
    const { key, rig, client } = await rigOn(redis, { type: 'stream', connection: url })
    const committable = await rig.stage([['x', 'a']])
    proxy.cut(/EVAL/i, when)
    await expect(rig.promote(committable)).rejects.toMatchObject({ code: 'UNKNOWN_RESULT', kind: 'Retryable' })
    expect(proxy.cuts).toBe(1)
    const mine = markerOf(rig.incarnation, 1)
    const then = when === 'after' ? { result: 'refused', found: mine } : { result: 'promoted' }
    expect(await settled(rig, committable)).toEqual(then)
    expect(await client.xlen(key)).toBe(1)
  })
}

test('gives up on a network that swallows everything, and goes on when it is back', async ({ redis }) => {
  const proxy = await cuttingProxy(redis.port)
  onTestFinished(() => proxy.close())
  const connection = redis.url.replace(String(redis.port), String(proxy.port))
  const { key, rig, client } = await rigOn(redis, { type: 'stream', connection, timeoutMs: 500 })
  const committable = await rig.stage([['x', 'a']])
  proxy.silent = true
  await expect(rig.promote(committable)).rejects.toMatchObject({ kind: 'Retryable' })
  await expect(rig.promote(committable)).rejects.toMatchObject({ code: 'SINK_UNAVAILABLE' })
  proxy.silent = false
  await settled(rig, committable)
  expect(await client.xlen(key)).toBe(1)
})

test('shows each epoch once when the server is killed while it is promoted', async ({ skip }) => {
  const missing = missingRedis()
  if (missing !== null) skip(missing)
  // Keeps what it has answered: what becomes of an epoch that it loses is the next but one test.
  const redis = await startRedis('--appendfsync', 'always')
  onTestFinished(() => redis.remove())
  const { key, rig } = await rigOn(redis, { type: 'stream' })
  const random = prng(11)
  const epochs = 6
  for (let epoch = 1; epoch <= epochs; epoch++) {
    const committable = await rig.stage(Array.from({ length: 5000 }, (_, i) => [`${epoch}-${i}`, `k${i}`]))
    const promoting = rig.promote(committable).catch((error: unknown) => {
      if (!isPawlError(error) || error.kind !== 'Retryable') throw error
    })
    await sleep(random.int(60))
    await redis.kill()
    await redis.restart()
    await promoting
    const then = await settled(rig, committable)
    if (then.result === 'refused') expect(then.found).toEqual(markerOf(rig.incarnation, epoch))
  }
  const client = redis.connect()
  onTestFinished(() => client.disconnect())
  const entries = await client.xrange(key, '-', '+')
  const values = entries.map(([, fields]) => fields[fields.indexOf('value') + 1])
  expect(values).toHaveLength(epochs * 5000)
  expect(new Set(values).size).toBe(epochs * 5000)
})

test('a wrong password is refused without being told', async ({ redis }) => {
  const connection = redis.url.replace('open-sesame', 'wrong-sesame')
  const rig = await tableRig(redisSink({ connection, type: 'hash', key: 'h' }))
  const error = await rig.base().catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: 'AUTHENTICATION_FAILED' })
  expect(inspect(error, { depth: 10, showHidden: true })).not.toContain('wrong-sesame')
})

test('a Redis that lost its last second is healed', async ({ skip }) => {
  const missing = missingRedis()
  if (missing !== null) skip(missing)
  const server = await startRedis()
  onTestFinished(() => server.remove())
  const words = pipeline('words', { checkpoint: { intervalMs: 0 }, retain: { epochs: 20 } }).from(
    topic('words', { key: nullable(text()), value: text() }),
  )
  const counts = redisSink<number>({ connection: () => server.url, type: 'hash', key: 'counts' })
  const said = redisSink({
    connection: () => server.url,
    type: 'stream',
    key: 'said',
    keys: nullable(text()),
    value: text(),
  })
  const runs = install(
    words
      .keyBy((word) => word)
      .count('count')
      .to('counts', counts)
      .also(words.to('said', said)),
  )
  onTestFinished(runs.remove)
  const epoch = async (number: number) => {
    await runs.append('a', `w${number % 3}`)
    expect(await runs.run()).toMatchObject({ reason: 'caught-up' })
  }
  for (let number = 1; number <= 4; number++) await epoch(number)
  const log = join(server.directory, 'appendonlydir')
  await sleep(1100)
  const saved = join(server.directory, 'saved')
  cpSync(log, saved, { recursive: true })
  for (let number = 5; number <= 9; number++) await epoch(number)
  await server.kill()
  loseTail(log, saved)
  await server.restart()
  const client = server.connect()
  onTestFinished(() => client.disconnect())
  // Several epochs are gone, and not all.
  const left = Number(await client.hget('counts', 'a'))
  expect(left).toBeGreaterThanOrEqual(4)
  expect(left).toBeLessThan(8)
  expect(await client.xlen('said')).toBeLessThan(2 * 8)
  await epoch(10)
  for (const sink of ['counts', 'said'])
    expect(runs.events).toContainEqual(expect.objectContaining({ event: 'healed', sink, lane: 0 }))
  expect(await client.hgetall('counts')).toEqual({ a: '10', w0: '3', w1: '4', w2: '3' })
  const entries = await client.xrange('said', '-', '+')
  const inOrder = Array.from({ length: 10 }, (_, i) => ['a', `w${(i + 1) % 3}`]).flat()
  expect(entries.map(([, fields]) => fields[fields.indexOf('value') + 1])).toEqual(inOrder)
})

test('what a crash left half written in the log of Redis changes nothing, also at the start after the next', async ({
  skip,
}) => {
  const missing = missingRedis()
  if (missing !== null) skip(missing)
  // By itself Redis may hold a write back while the disk is busy; here each is in the file that is cut.
  const server = await startRedis('--appendfsync', 'always')
  onTestFinished(() => server.remove())
  const log = join(server.directory, 'appendonlydir')
  const file = () => join(log, readdirSync(log).find((name) => name.endsWith('.incr.aof'))!)
  const reading = {
    hash: ['HGETALL'],
    string: ['KEYS'],
    set: ['SMEMBERS'],
    'sorted-set': ['ZRANGE', '0', '-1', 'WITHSCORES'],
    stream: ['XRANGE', '-', '+'],
  }
  for (const type of ['hash', 'string', 'set', 'sorted-set', 'stream'] as const) {
    for (const share of type === 'stream' ? [0.3, 0.6, 0.999] : [0.5]) {
      const { key, rig, client } = await rigOn(server, { type, key: `${freshName(type)}:` })
      await rig.run([[0, 'k0']])
      const shown = async () => {
        const [command, ...range] = reading[type]
        const rows = (await client.call(command!, type === 'string' ? `${key}*` : key, ...range)) as unknown[]
        return type === 'stream' ? rows.map((row) => (row as unknown[])[1]) : rows.map(String).sort()
      }
      const committable = await rig.stage(Array.from({ length: 20 }, (_, i) => [i, `k${i}`]))
      const before = await shown()
      const bytes = statSync(file()).size
      await rig.promote(committable)
      const wanted = await shown()
      await server.kill()
      truncateSync(file(), bytes + Math.floor((statSync(file()).size - bytes) * share))
      await server.restart()
      expect(await shown()).toEqual(before)
      expect(await settled(rig, committable)).toEqual({ result: 'promoted' })
      expect(await shown()).toEqual(wanted)
      await server.kill()
      await server.restart()
      expect(await rig.sink.marker(0)).toEqual(markerOf(rig.incarnation, 2))
      expect(await shown()).toEqual(wanted)
    }
  }
})

/** Cuts each file of the log in the middle of what was appended since it was saved. */
function loseTail(log: string, saved: string): void {
  for (const name of readdirSync(log).filter((file) => file.endsWith('.incr.aof'))) {
    const before = statSync(join(saved, name)).size
    const now = statSync(join(log, name)).size
    expect(now).toBeGreaterThan(before)
    truncateSync(join(log, name), Math.floor((before + now) / 2))
  }
  rmSync(saved, { recursive: true })
}

describe.skipIf(missingRedis() !== null)('in a cluster', () => {
  let server: RedisServer
  let nodes: readonly RedisServer[]
  beforeAll(async () => {
    ;[[server], nodes] = (await Promise.all([startRedisCluster(1), startRedisCluster(3)])) as [
      [RedisServer],
      RedisServer[],
    ]
  })
  afterAll(() => Promise.all([server, ...nodes].map((node) => node.remove())))

  test('rows and markers of a lane lie in one slot, and untagged prefixes are refused', async () => {
    const client = server.connect()
    onTestFinished(() => client.disconnect())
    for (const cluster of [true, false]) {
      const tagged = await rigOn(server, { type: 'string', key: `{board-${cluster}}:`, cluster })
      await tagged.rig.run(Array.from({ length: 200 }, (_, i) => [i, `k${i}`]))
      expect(await client.get(`{board-${cluster}}:k77`)).toBe('77')
      const hash = await rigOn(server, { type: 'hash', key: `board-${cluster}`, cluster })
      await hash.rig.run([[1, 'a']])
      expect(await client.hgetall(hash.key)).toEqual({ a: '1' })
    }
    const lane = { stage: 's', pipeline: 'p', sink: 'o{ther}', lane: 0 }
    const slotOf = (key: string) => client.call('CLUSTER', 'KEYSLOT', key)
    for (const key of ['totals', '{totals}:', 'a{b}c', 'a{b}{c}', 'č']) {
      expect(await slotOf(markerKey(key, lane))).toBe(await slotOf(key))
    }
    const untagged: RedisOptions<unknown, unknown> = { connection: server.url, type: 'string', key: 'board:' }
    const rig: TableRig = await tableRig(redisSink(untagged))
    await expect(rig.base()).rejects.toMatchObject({ code: 'SINK_SCHEMA_INVALID' })
    expect(() => redisSink({ ...untagged, cluster: true })).toThrow(
      expect.objectContaining({ code: 'PIPELINE_INVALID' }),
    )
  })

  test('keys of three nodes take their rows, also from one that is killed and comes back', async () => {
    const owners = new Set<string>()
    for (let n = 0; n < 6; n++) {
      const options = { type: 'hash', key: `board-${n}`, cluster: true, value: text() as never } as const
      const { rig, key } = await rigOn(nodes[n % 3]!, options)
      await rig.run([[`${n}`, 'a']])
      const holders = await Promise.all(nodes.map((node) => keysOn(node, key)))
      expect(holders.flat()).toEqual([key])
      owners.add(String(holders.findIndex(({ length }) => length === 1)))
      if (n > 0) continue
      const committable = await rig.stage([[`${n}`, 'b']])
      const owner = nodes[holders.findIndex(({ length }) => length === 1)]!
      await owner.kill()
      await expect(rig.promote(committable)).rejects.toMatchObject({ kind: 'Retryable' })
      await owner.restart()
      // A node that comes back serves no slots for its first 2 seconds.
      const then = await settled(rig, committable)
      if (then.result === 'refused') expect(then.found).toEqual(markerOf(rig.incarnation, 2))
      await clusterUp(nodes)
      const client = owner.connect()
      onTestFinished(() => client.disconnect())
      expect(await client.hgetall(key)).toEqual({ a: '0', b: '0' })
    }
    expect(owners.size).toBeGreaterThan(1)
  })

  test('a cluster that is down is told at once, on an open connection and on a new one, and gone on with', async () => {
    const { rig, key, client } = await rigOn(server, { type: 'hash', cluster: true })
    const committable = await rig.stage([[1, 'a']])
    const slot = Number(await client.call('CLUSTER', 'KEYSLOT', key)) === 0 ? 1 : 0
    await client.call('CLUSTER', 'DELSLOTS', slot)
    const beganMs = performance.now()
    for (const reason of [/CLUSTERDOWN/, /not ready/]) {
      const refused = { code: 'SINK_UNAVAILABLE', details: { reason: expect.stringMatching(reason) } }
      await expect(rig.promote(committable)).rejects.toMatchObject(refused)
    }
    // Far from the 30 seconds after which a session is given up.
    expect(performance.now() - beganMs).toBeLessThan(10_000)
    await client.call('CLUSTER', 'ADDSLOTS', slot)
    expect(await settled(rig, committable)).toEqual({ result: 'promoted' })
    expect(await client.hgetall(key)).toEqual({ a: '1' })
  })
})

/** The key, if this node of a cluster has it. */
async function keysOn(node: RedisServer, key: string): Promise<string[]> {
  const client = node.connect()
  const found = await client.keys(key)
  client.disconnect()
  return found
}
