import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { seededRandom } from '../../../lib/adapters/memory/random.ts'
import { type MemoryStore, memoryStore } from '../../../lib/adapters/memory/store.ts'
import { createSegmentLog, openSegmentLog } from '../../../lib/adapters/segments/log.ts'
import { segmentHeaderBytes } from '../../../lib/adapters/segments/segment.ts'
import { PawlError } from '../../../lib/model/errors.ts'
import type { Store } from '../../../lib/ports/store.ts'
import { readAll, readRange, records } from '../../../lib/testing/contracts/log-subject.ts'

const random = seededRandom(3)
const create = (store: Store, baseOffset = 0n) =>
  createSegmentLog(store, { topic: 't', partitions: 1, random, baseOffset })
const nameOf = (base: number) => `logs/t/0/${String(base).padStart(20, '0')}`
const values = (all: readonly { value: string | null }[]) => all.map(({ value }) => value)

/** Three segments of three records each. */
async function filled(): Promise<MemoryStore> {
  const store = memoryStore()
  const log = await create(store)
  for (const prefix of ['a', 'b', 'c']) await log.append(0, records(prefix, 3))
  return store
}

/** Changes an object behind the back of the log. */
async function change(store: MemoryStore, name: string, edit: (bytes: Buffer) => Buffer): Promise<void> {
  const edited = edit((await store.read(name))!)
  await store.delete([name])
  await store.create(name, [edited])
}

describe('damage', () => {
  test('is found wherever a bit of a segment flips, and names topic, partition and offset', async () => {
    const store = await filled()
    const size = (await store.read(nameOf(3)))!.length
    const snapshot = store.snapshot()
    for (let at = 0; at < size; at++) {
      store.restore(snapshot)
      await change(store, nameOf(3), (bytes) => {
        bytes[at]! ^= 1 << (at % 8)
        return bytes
      })
      const log = await openSegmentLog(store, 't', random)
      const error = await readAll(log, 0).catch((thrown: PawlError) => thrown)
      // Nothing reads the epoch of a partition leader, which a segment does not have: bytes 12 to 15 of a batch.
      if (at >= segmentHeaderBytes + 12 && at < segmentHeaderBytes + 16) continue
      expect(error, `bit in byte ${at}`).toBeInstanceOf(PawlError)
      const { code, details } = error as PawlError
      expect(['LOG_SEGMENT_DAMAGED', 'BATCH_DAMAGED', 'LOG_TOO_NEW']).toContain(code)
      expect(details).toMatchObject({ topic: 't', partition: 0, offset: '3' })
    }
  })

  test('is found when a segment is cut short anywhere', async () => {
    const store = await filled()
    const size = (await store.read(nameOf(3)))!.length
    const snapshot = store.snapshot()
    for (let length = 0; length < size; length += 7) {
      store.restore(snapshot)
      await change(store, nameOf(3), (bytes) => bytes.subarray(0, length))
      const log = await openSegmentLog(store, 't', random)
      await expect(readAll(log, 0), `${length} bytes`).rejects.toMatchObject({ code: 'LOG_SEGMENT_DAMAGED' })
    }
  })

  test('is told from retention: a segment missing in the middle is no later start', async () => {
    const store = await filled()
    store.drop(nameOf(3))
    const log = await openSegmentLog(store, 't', random)
    expect((await log.bounds()).partitions).toEqual([{ partition: 0, start: 0n, end: 9n }])
    await expect(readAll(log, 0)).rejects.toMatchObject({ code: 'LOG_SEGMENT_DAMAGED', details: { offset: '0' } })
    await expect(readRange(log, 0, 3n, 6n)).rejects.toMatchObject({ code: 'LOG_SEGMENT_DAMAGED' })
    expect(values(await readRange(log, 0, 6n, 9n))).toEqual(['c-0', 'c-1', 'c-2'])
  })

  test('of the last segment keeps an appender from building on it', async () => {
    const store = await filled()
    store.damage(nameOf(6))
    const log = await openSegmentLog(store, 't', random)
    await expect(log.append(0, records('d', 1))).rejects.toMatchObject({ kind: 'Corrupt' })
    expect(store.names().at(-2)).toBe(nameOf(6))
  })

  test('of the topic object is told from a topic that is missing', async () => {
    const store = await filled()
    await change(store, 'logs/t/topic', () => Buffer.from('{'))
    await expect(openSegmentLog(store, 't', random)).rejects.toMatchObject({ code: 'LOG_SEGMENT_DAMAGED' })
    await expect(openSegmentLog(store, 'u', random)).rejects.toMatchObject({ code: 'TOPIC_MISSING' })
  })

  test('is not what a newer version is called', async () => {
    const store = await filled()
    await change(store, 'logs/t/topic', (bytes) => Buffer.from(bytes.toString().replace('"version":1', '"version":2')))
    await expect(openSegmentLog(store, 't', random)).rejects.toMatchObject({ code: 'LOG_TOO_NEW', kind: 'Invalid' })
  })
})

describe('appending', () => {
  type Answer = 'created' | 'lost before' | 'lost after' | 'later'

  /** A store whose answers to `create` get lost; `later` writes happen while the appender reads back. */
  const losing = (store: Store, answers: Answer[]): Store => ({
    ...store,
    async create(name, chunks) {
      const answer = name.includes('/0/') ? (answers.shift() ?? 'created') : 'created'
      if (answer === 'lost after') await store.create(name, chunks)
      if (answer === 'later') setImmediate(() => store.create(name, chunks))
      if (answer !== 'created') throw new PawlError('UNKNOWN_RESULT', name)
      return store.create(name, chunks)
    },
    async read(name, range) {
      const bytes = await store.read(name, range)
      await new Promise((next) => setImmediate(next))
      return bytes
    },
  })

  test('loses and doubles nothing, whichever answers are lost, with a rival', async () => {
    const answer = fc.constantFrom<Answer>('created', 'lost before', 'lost after', 'later')
    const property = fc.asyncProperty(
      fc.array(fc.array(answer, { maxLength: 4 }), { maxLength: 6 }),
      async (losses) => {
        const store = memoryStore()
        await create(store)
        const rival = await openSegmentLog(store, 't', random)
        const offsets = new Map<string, bigint>()
        for (const [i, answers] of losses.entries()) {
          const log = await openSegmentLog(losing(store, [...answers]), 't', random)
          const appends = [log.append(0, records(`mine-${i}`, 2)), rival.append(0, records(`rival-${i}`, 1))]
          const [mine, theirs] = await Promise.all(appends)
          offsets.set(`mine-${i}-0`, mine!.baseOffset)
          offsets.set(`rival-${i}-0`, theirs!.baseOffset)
        }
        const all = await readAll(rival, 0)
        expect(values(all).sort()).toEqual(
          losses.flatMap((_, i) => [`mine-${i}-0`, `mine-${i}-1`, `rival-${i}-0`]).sort(),
        )
        for (const [value, offset] of offsets) expect(all.find((record) => record.value === value)?.offset).toBe(offset)
      },
    )
    await fc.assert(property, { numRuns: 60 })
  })

  test('says UNKNOWN_RESULT when no answer ever comes', async () => {
    const store = memoryStore()
    await create(store)
    const log = await openSegmentLog(losing(store, Array(20).fill('lost before')), 't', random)
    await expect(log.append(0, records('a', 1))).rejects.toMatchObject({ code: 'UNKNOWN_RESULT' })
    expect((await log.bounds()).partitions[0]!.end).toBe(0n)
  })

  test('adds nothing when one of the records cannot be encoded', async () => {
    const store = memoryStore()
    const log = await create(store)
    const broken = [...records('a', 20_000), { key: null, value: 'x', timestampMs: 0.5 }]
    await expect(log.append(0, broken)).rejects.toMatchObject({ code: 'ENCODE_FAILED' })
    expect((await log.bounds()).partitions[0]!.end).toBe(0n)
  })

  test('spreads a large append over segments that end where the next begins', async () => {
    const store = memoryStore()
    const log = await create(store, 9_007_199_254_740_991n)
    const value = 'v'.repeat(2000)
    const many = Array.from({ length: 10_000 }, (_, i) => ({ key: null, value: `${i} ${value}`, timestampMs: i }))
    expect(await log.append(0, many)).toEqual({ baseOffset: 9_007_199_254_740_991n })
    const segments = store.names().filter((name) => name.startsWith('logs/t/0/'))
    expect(segments.length).toBeGreaterThan(2)
    const all = await readAll(log, 0)
    expect(all.map(({ offset }) => offset - 9_007_199_254_740_991n)).toEqual(many.map((_, i) => BigInt(i)))
    expect(all.every(({ value: seen }, i) => seen === many[i]!.value)).toBe(true)
    expect((await log.resolve({ at: 'timestamp', timestampMs: 7777 })).get(0)).toBe(9_007_199_254_748_768n)
  })
})

describe('looking', () => {
  const counting = (store: Store) => {
    const calls = { lists: 0, bytes: 0 }
    const counted: Store = {
      ...store,
      async read(name, range) {
        const bytes = await store.read(name, range)
        calls.bytes += bytes?.length ?? 0
        return bytes
      },
      list(prefix) {
        if (/\/\d+\/$/.test(prefix)) calls.lists++
        return store.list(prefix)
      },
    }
    return { calls, counted }
  }

  test('reads headers only, and lists a partition once', async () => {
    const store = memoryStore()
    const writer = await create(store)
    const { calls, counted } = counting(store)
    for (let i = 0; i < 20; i++) await writer.append(0, records('long'.repeat(500), 10))
    const log = await openSegmentLog(counted, 't', random)
    for (let i = 0; i < 10; i++) {
      await log.bounds()
      await writer.append(0, records('more', 1))
    }
    expect((await log.bounds()).partitions[0]!.end).toBe(210n)
    expect(calls.lists).toBe(1)
    expect(calls.bytes).toBeLessThan(6000)
  })

  test('keeps version 1 readable for ever', async () => {
    const topic =
      '{"version":1,"id":"ffeeddccbbaa99887766554433221100","partitions":2,"baseOffset":"9007199254740993"}\n'
    const segment = [
      'UEFXTFNFRwEBAgMEBQYHCAkKCwwNDg8QACAAAAAAAAEAIAAAAAAAAwAAAAAAAAPpAAAAUIxvLiEAIAAAAAAAAQAAAET/////',
      'AsfluR8AAAAAAAEAAAAAAAAD6AAAAAAAAAPp//////////////////8AAAACFgAAAAJrAnYCAmgBDAACAgEBAA==',
    ]
    const store = memoryStore()
    await store.create('logs/t/topic', [Buffer.from(topic)])
    await store.create('logs/t/1/00009007199254740993', [Buffer.from(segment.join(''), 'base64')])
    const log = await openSegmentLog(store, 't', random)
    expect((await log.bounds()).topicId).toBe('ffeeddccbbaa99887766554433221100')
    expect(await readAll(log, 1)).toEqual([
      { offset: 2n ** 53n + 1n, key: 'k', value: 'v', timestampMs: 1000, headers: [['h', null]] },
      { offset: 2n ** 53n + 2n, key: null, value: null, timestampMs: 1001, headers: [] },
    ])
  })
})
