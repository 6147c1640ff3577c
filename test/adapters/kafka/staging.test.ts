import fc from 'fast-check'
import { expect, test } from 'vitest'
import { stagedTopics, stagedWindows } from '../../../lib/adapters/kafka/staged.ts'
import { batchBytesMax, type StagingTarget, stagingWriter } from '../../../lib/adapters/kafka/staging.ts'
import { memoryStore } from '../../../lib/adapters/memory/store.ts'
import { headersOf } from '../../../lib/adapters/shared/headers.ts'
import type { StagedPart } from '../../../lib/model/manifest.ts'
import { partitionOf } from '../../../lib/model/murmur2.ts'
import { decodeBatches } from '../../../lib/model/record-decode.ts'
import { bytes, json, nullable, text } from '../../../lib/model/serde.ts'
import type { TopicSpec } from '../../../lib/ports/spec.ts'
import { topicSpec } from '../../support/kafka-sink.ts'

const target: StagingTarget = {
  topic: 'out',
  topicId: 'id-1',
  partitions: 4,
  messageBytesMax: 1_048_588,
  timestampMinMs: Number.NEGATIVE_INFINITY,
  timestampMaxMs: Number.POSITIVE_INFINITY,
  keyRequired: false,
}

function writer(spec: Partial<TopicSpec<unknown, unknown>> = {}, lanes = 1, targets = [target]) {
  const store = memoryStore()
  const context = { store, prefix: 'a/b/', incarnation: 'i', epoch: 1, lanes }
  return { store, writer: stagingWriter(topicSpec('out', spec), targets, context) }
}

interface Row {
  readonly lane: number
  readonly topic: string
  readonly partition: number
  readonly key: string | null
  readonly value: string | null
  readonly timestampMs: number
  readonly headers: readonly (readonly [string, string | null])[]
}

async function rowsOf(store: ReturnType<typeof memoryStore>, parts: readonly StagedPart[]): Promise<Row[]> {
  const rows: Row[] = []
  for (const part of parts) {
    for await (const window of stagedWindows(store, [part])) {
      for (const { topic, partition, batch } of window) {
        for (const decoded of decodeBatches(batch, { partition, start: 0n, end: 1n << 40n }).batches) {
          const cut = (start: number, end: number) => (start < 0 ? null : decoded.bytes.toString('utf8', start, end))
          for (let i = 0; i < decoded.count; i++) {
            rows.push({
              lane: part.lane,
              topic,
              partition,
              key: cut(decoded.keyStarts[i], decoded.keyEnds[i]),
              value: cut(decoded.valueStarts[i], decoded.valueEnds[i]),
              timestampMs: decoded.timestamps[i],
              headers: headersOf(decoded, i).map(([name, value]) => [name, value === null ? null : String(value)]),
            })
          }
        }
      }
    }
  }
  return rows
}

test('what is staged comes back as it was, with null apart from empty', async () => {
  const { store, writer: stage } = writer({ key: nullable(text()), value: nullable(text()) })
  stage.add('k', 'v', 5, 0)
  stage.add('', '', 6, 0)
  stage.add(null, null, -1, 2)
  stage.add('clé', 'größe ✓', 1_700_000_000_000, 0)
  const parts = await stage.seal()
  const rows = await rowsOf(store, parts)
  const plain = rows.map(({ key, value, timestampMs }) => [key, value, timestampMs])
  expect(plain).toHaveLength(4)
  expect(plain).toEqual(
    expect.arrayContaining([
      ['k', 'v', 5],
      ['', '', 6],
      [null, null, -1],
      ['clé', 'größe ✓', 1_700_000_000_000],
    ]),
  )
  expect(parts).toMatchObject([{ lane: 0, rows: 4 }])
})

test('case 41, case 42, case 43: keys go to the partition of the Java client, text and bytes alike', async () => {
  for (const [key, partitions, expected] of [
    ['100:48069', 12, 9],
    ['TT0124', 15, 10],
    ['fd7af248-ce5c-46a5-93d7-1c0c9005b99d', 32, 26],
    ['wu', 10, 0],
  ] as const) {
    for (const asBytes of [false, true]) {
      const spec = asBytes ? { key: bytes() as TopicSpec<unknown, unknown>['key'] } : {}
      const { store, writer: stage } = writer(spec, 1, [{ ...target, partitions }])
      stage.add(asBytes ? Buffer.from(key) : key, 'v', 0, 0)
      expect(await rowsOf(store, await stage.seal())).toMatchObject([{ partition: expected, key }])
    }
  }
})

test('a text goes where its UTF-8 bytes go, whatever its length and script', async () => {
  const keys = fc.sample(fc.string({ unit: 'grapheme', maxLength: 200 }), 200)
  const asText = writer({}, 3)
  const asBytes = writer({ key: bytes() as TopicSpec<unknown, unknown>['key'] }, 3)
  for (const [i, key] of keys.entries()) {
    asText.writer.add(key, `v${i}`, 0, 0)
    asBytes.writer.add(Buffer.from(key), `v${i}`, 0, 0)
  }
  const rows = await rowsOf(asText.store, await asText.writer.seal())
  expect(rows).toEqual(await rowsOf(asBytes.store, await asBytes.writer.seal()))
  for (const { key, partition } of rows) expect(partition).toBe(partitionOf(Buffer.from(key!), 4))
})

test('a key takes one lane and one partition always, a row without a key those of its source partition', async () => {
  const { store, writer: stage } = writer({ key: nullable(text()) }, 3)
  for (let i = 0; i < 300; i++) stage.add(i % 2 ? `key-${i % 50}` : null, `v${i}`, i, i % 7)
  const rows = await rowsOf(store, await stage.seal())
  expect(rows).toHaveLength(300)
  const places = new Map<string, string>()
  for (const { key, lane, partition, value } of rows) {
    const source = Number(value!.slice(1)) % 7
    if (key === null) expect([lane, partition]).toEqual([source % 3, source % 4])
    else {
      const place = `${lane}/${partition}`
      expect(places.get(key) ?? place).toBe(place)
      places.set(key, place)
    }
  }
  expect(new Set(rows.map(({ lane }) => lane))).toEqual(new Set([0, 1, 2]))
})

test('rows of a key keep their order over batches and flushes', async () => {
  const { store, writer: stage } = writer({}, 2)
  const pad = 'x'.repeat(20_000)
  for (let i = 0; i < 200; i++) {
    stage.add(`k${i % 3}`, `${i}:${pad}`, i, 0)
    if (i % 70 === 69) await stage.flush()
  }
  const parts = await stage.seal()
  expect(parts.flatMap((part) => part.objects).length).toBeGreaterThan(parts.length)
  const last = new Map<string | null, number>()
  for (const { key, value } of await rowsOf(store, parts)) {
    const number = Number.parseInt(value!, 10)
    expect(number).toBeGreaterThan(last.get(key) ?? -1)
    last.set(key, number)
  }
})

test('no batch exceeds its bound, whatever the sizes of the rows', async () => {
  const { store, writer: stage } = writer()
  for (const size of [899_000, 2000, 890_000, 950_000, 10, 450_000, 450_000, 300_000])
    stage.add('k', 'é'.repeat(size / 2), 0, 0)
  const parts = await stage.seal()
  for await (const window of stagedWindows(store, parts)) {
    for (const { batch, rows } of window) {
      if (rows > 1) expect(batch.length).toBeLessThanOrEqual(batchBytesMax)
      expect(batch.length).toBeLessThanOrEqual(target.messageBytesMax)
    }
  }
  expect(await rowsOf(store, parts)).toHaveLength(8)
})

test('a refused row leaves nothing behind', async () => {
  const { store, writer: stage } = writer({ value: json() as TopicSpec<unknown, unknown>['value'] }, 1, [
    { ...target, messageBytesMax: 5000, timestampMaxMs: 1000 },
  ])
  const circular: unknown[] = []
  circular.push(circular)
  stage.add('k', 'first', 1, 0)
  expect(() => stage.add('k', 'y'.repeat(5000), 1, 0)).toThrow(/^RECORD_TOO_LARGE/)
  expect(() => stage.add('k', circular, 1, 0)).toThrow(/circular/)
  expect(() => stage.add('k', undefined, 1, 0)).toThrow(/undefined/)
  expect(() => stage.add('k', 'z', 1.5, 0)).toThrow(/^ENCODE_FAILED/)
  expect(() => stage.add('k', 'z', 1001, 0)).toThrow(/^ENCODE_FAILED.*timestamp/)
  expect(() => stage.add('k', 'z', Number.NaN, 0)).toThrow(/^ENCODE_FAILED/)
  stage.add('k', 'last', 2, 0)
  expect((await rowsOf(store, await stage.seal())).map(({ value }) => value)).toEqual(['"first"', '"last"'])
})

test('a serde that gives neither text, bytes nor null is refused', async () => {
  const odd = { name: 'odd', encode: (value: unknown) => value as string, decode: () => '' }
  const { store, writer: stage } = writer({ value: odd })
  for (const value of [undefined, 5, {}]) expect(() => stage.add('k', value, 1, 0)).toThrow(/^ENCODE_FAILED/)
  expect(await stage.seal()).toEqual([])
  expect(store.names()).toEqual([])
})

test('a compacted topic takes no row without a key', () => {
  const { writer: stage } = writer({}, 1, [{ ...target, keyRequired: true }])
  expect(() => stage.add(null, 'v', 0, 0)).toThrow(/^ENCODE_FAILED.*without a key/)
  expect(stage.bufferedBytes).toBe(0)
})

test('a route sends each row to its topic and refuses one that is not listed', async () => {
  const route = {
    topics: ['even', 'odd'],
    choose: (value: unknown) => (value === '9' ? 'nine' : Number(value) % 2 ? 'odd' : 'even'),
  }
  const targets = route.topics.map((topic, index) => ({ ...target, topic, topicId: topic, partitions: index + 1 }))
  const { store, writer: stage } = writer({ route }, 2, targets)
  for (const value of ['1', '2', '3']) stage.add(value, value, 0, 0)
  expect(() => stage.add('9', '9', 0, 0)).toThrow(/^ENCODE_FAILED.*unlisted topic nine/)
  const parts = await stage.seal()
  const rows = await rowsOf(store, parts)
  expect(rows.map(({ topic, value }) => `${topic} ${value}`).sort()).toEqual(['even 2', 'odd 1', 'odd 3'])
  expect(new Set(stagedTopics(parts).map(({ topic }) => topic))).toEqual(new Set(route.topics))
})

test('headers travel, with null apart from empty', async () => {
  const headers = (value: unknown) =>
    value === 'plain'
      ? []
      : ([
          ['a', Buffer.from('1')],
          ['b', null],
          ['', Buffer.alloc(0)],
        ] as const)
  const { store, writer: stage } = writer({ headers })
  stage.add('k', 'v', 0, 0)
  stage.add('k', 'plain', 0, 0)
  expect((await rowsOf(store, await stage.seal())).map((row) => row.headers)).toEqual([
    [
      ['a', '1'],
      ['b', null],
      ['', ''],
    ],
    [],
  ])
})

test('an invocation without rows stages nothing', async () => {
  const { store, writer: stage } = writer()
  expect(await stage.seal()).toEqual([])
  expect(store.names()).toEqual([])
})

test('a lost or damaged object is told by its name', async () => {
  const stagedOnce = async () => {
    const { store, writer: stage } = writer()
    stage.add('k', 'v', 0, 0)
    return { store, parts: await stage.seal() }
  }
  const lost = await stagedOnce()
  lost.store.drop(lost.parts[0].objects[0].name)
  await expect(rowsOf(lost.store, lost.parts)).rejects.toThrow(/^OBJECT_MISSING.*a\/b\/lane-0-0/)
  const damaged = await stagedOnce()
  damaged.store.damage(damaged.parts[0].objects[0].name)
  await expect(rowsOf(damaged.store, damaged.parts)).rejects.toThrow(/^OBJECT_DAMAGED.*a\/b\/lane-0-0/)
})
