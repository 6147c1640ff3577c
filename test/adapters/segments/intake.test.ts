import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { type MemoryLog, memoryLog } from '../../../lib/adapters/memory/log.ts'
import { type MemoryStore, memoryStore } from '../../../lib/adapters/memory/store.ts'
import { type IntakeLog, openIntakeLog } from '../../../lib/adapters/segments/intake-log.ts'
import { recoverIntake } from '../../../lib/adapters/segments/intake-recover.ts'
import { PawlError } from '../../../lib/model/errors.ts'
import { batchesOf } from '../../../lib/model/mapping-event.ts'
import { records } from '../../../lib/testing/contracts/log-subject.ts'
import { eventOf, placedRecords } from '../../support/intake.ts'

let store: MemoryStore
let broker: MemoryLog
let log: IntakeLog
const none: ReadonlyMap<number, bigint> = new Map()

beforeEach(() => {
  store = memoryStore()
  broker = memoryLog({ topic: 'in', partitions: 1 })
  log = openIntakeLog(store, 'p', 'in')
})

const recover = (more: { committed?: ReadonlyMap<number, bigint>; endsBefore?: ReadonlyMap<number, bigint> } = {}) =>
  recoverIntake({ log, broker, start: { at: 'earliest' }, committed: none, endsBefore: none, ...more })

/** Hands `[start, end)` over as the event of a mapping. */
async function deliver(start: number, end: number, committed: bigint | null = null): Promise<void> {
  const placed = await placedRecords(broker, 0, BigInt(start), BigInt(end))
  for (const batch of batchesOf(eventOf('in', 0, placed))!) await log.lay(batch, committed)
}

const span = async () => (await log.bounds()).partitions[0]!
const coded = (code: string) => expect.objectContaining({ code })

describe('the intake', () => {
  test('says nothing before the broker was asked', async () => {
    await broker.append(0, records('a', 2))
    await deliver(0, 2)
    await expect(log.bounds()).rejects.toEqual(coded('INTAKE_UNDESCRIBED'))
    expect(await recover()).toMatchObject({ described: 1 })
    expect(await log.bounds()).toEqual({ topicId: 'in-0', partitions: [{ partition: 0, start: 0n, end: 2n }] })
  })

  test('case 67: doubled, overlapping and reordered batches read as the log', async () => {
    await broker.append(0, records('a', 30))
    await recover()
    for (const [start, end] of [
      [10, 20],
      [5, 25],
      [0, 6],
      [10, 20],
      [24, 30],
      [0, 30],
    ] as const)
      await deliver(start, end)
    expect(await span()).toEqual({ partition: 0, start: 0n, end: 30n })
    expect(await placedRecords(log, 0, 0n, 30n)).toEqual(await placedRecords(broker, 0, 0n, 30n))
    expect(await placedRecords(log, 0, 7n, 22n)).toEqual(await placedRecords(broker, 0, 7n, 22n))
    const before = store.names()
    await deliver(5, 25)
    expect(store.names()).toEqual(before)
  })

  test('never reads over a gap before the broker explains it, within an event or between two', async () => {
    await broker.append(0, records('a', 4))
    broker.skip(0, 1n)
    await broker.append(0, records('b', 10))
    await recover()
    await deliver(0, 8)
    expect(await span()).toMatchObject({ end: 4n, known: 8n })
    await deliver(11, 15)
    expect(await span()).toMatchObject({ end: 4n, known: 15n })
    await expect(placedRecords(log, 0, 0n, 6n)).rejects.toEqual(coded('LOG_SHRUNK'))
    const { ranges } = await recover()
    expect(ranges).toEqual([
      { partition: 0, start: '4', end: '5', records: 0 },
      { partition: 0, start: '8', end: '11', records: 3 },
    ])
    expect(await span()).toEqual({ partition: 0, start: 0n, end: 15n })
    expect(await placedRecords(log, 0, 0n, 15n)).toEqual(await placedRecords(broker, 0, 0n, 15n))
  })

  test('the first batch of a partition may be the one that was lost', async () => {
    await broker.append(0, records('a', 9))
    await recover()
    await deliver(6, 9)
    expect(await span()).toMatchObject({ start: 0n, end: 0n, known: 9n })
    await recover()
    expect(await span()).toEqual({ partition: 0, start: 0n, end: 9n })
  })

  test('what a mapping does not bring until the next look is read from the broker', async () => {
    await broker.append(0, records('a', 5))
    const { ends, ranges } = await recover()
    expect(ranges).toEqual([])
    await broker.append(0, records('b', 5))
    await recover({ endsBefore: ends })
    expect(await span()).toMatchObject({ end: 5n })
  })

  test('a gap that the broker has lost is an error, never a skip', async () => {
    await broker.append(0, records('a', 9))
    await recover()
    await deliver(0, 2)
    await deliver(6, 9)
    broker.truncateBefore(0, 4n)
    await expect(recover()).rejects.toEqual(coded('LOG_OFFSET_LOST'))
    expect(await span()).toMatchObject({ end: 2n })
  })

  test('a broker that does not answer leaves the gap, with a code that says what to do', async () => {
    await broker.append(0, records('a', 9))
    await recover()
    await deliver(6, 9)
    const bounds = broker.bounds
    broker.bounds = async () => {
      throw new PawlError('LOG_UNAVAILABLE', 'in')
    }
    await expect(recover()).rejects.toEqual(coded('INTAKE_GAP'))
    broker.bounds = bounds
    expect(await span()).toMatchObject({ end: 0n })
  })

  test('a record that no event can carry is read from the broker, and one that is too large is named', async () => {
    await broker.append(0, [{ key: null, value: Buffer.alloc(7 * 1024 * 1024), timestampMs: 0 }])
    await broker.append(0, records('a', 2))
    await recover()
    await deliver(1, 3)
    await recover()
    expect(await span()).toMatchObject({ end: 3n })
    await broker.append(0, [{ key: null, value: Buffer.alloc(9 * 1024 * 1024), timestampMs: 0 }])
    await expect(recover({ endsBefore: new Map([[0, 4n]]) })).rejects.toMatchObject({
      code: 'RECORD_TOO_LARGE',
      message: expect.stringContaining('offset 3 of in/0'),
    })
  })
})

describe('a topic that was created again', () => {
  test('is noticed where its records lie over those of the old one', async () => {
    await broker.append(0, records('a', 9))
    await recover()
    await deliver(0, 9)
    broker.recreate()
    await broker.append(0, records('z', 4))
    await deliver(0, 4)
    await expect(placedRecords(log, 0, 0n, 9n)).rejects.toEqual(coded('INTAKE_CONFLICT'))
  })

  test('is noticed below what is committed, while it can be compared', async () => {
    await broker.append(0, records('a', 9))
    await recover()
    await deliver(0, 9)
    broker.recreate()
    await broker.append(0, records('z', 4))
    const before = store.names()
    await expect(deliver(0, 4, 9n)).rejects.toEqual(coded('INTAKE_CONFLICT'))
    expect(store.names()).toEqual(before)
  })

  test('stops the reader below what is kept, until the broker says which topic it is', async () => {
    await broker.append(0, records('a', 9))
    await recover()
    await deliver(0, 9)
    await log.retain!(new Map([[0, 9n]]))
    await deliver(0, 4, 9n)
    await expect(log.bounds()).rejects.toEqual(coded('INTAKE_UNVERIFIED'))
    expect(await recover()).toMatchObject({ settled: 1 })
    expect(await span()).toEqual({ partition: 0, start: 9n, end: 9n })
    await log.retain!(new Map([[0, 9n]]))
    broker.recreate()
    await broker.append(0, records('z', 4))
    await deliver(0, 4, 9n)
    await expect(recover()).rejects.toEqual(coded('TOPIC_RECREATED'))
    await expect(log.bounds()).rejects.toEqual(coded('TOPIC_RECREATED'))
  })
})

describe('what no root reads again', () => {
  test('goes, and nothing else; the start stays behind it, also when the deletion is cut short', async () => {
    await broker.append(0, records('a', 20))
    await recover()
    for (const at of [0, 5, 10, 15]) await deliver(at, at + 5)
    await log.retain!(new Map([[0, 12n]]))
    expect(await span()).toEqual({ partition: 0, start: 12n, end: 20n })
    expect(store.names().filter((name) => name.includes('/segments/'))).toHaveLength(2)
    await log.retain!(new Map([[0, 3n]]))
    expect(await span()).toMatchObject({ start: 12n })
    const { delete: remove } = store
    store.delete = async () => {
      throw new PawlError('STORE_UNAVAILABLE', 'delete')
    }
    await expect(log.retain!(new Map([[0, 15n]]))).rejects.toEqual(coded('STORE_UNAVAILABLE'))
    store.delete = remove
    expect(await span()).toEqual({ partition: 0, start: 15n, end: 20n })
    await log.retain!(new Map([[0, 20n]]))
    expect(await span()).toEqual({ partition: 0, start: 20n, end: 20n })
    expect(store.names()).toHaveLength(2)
  })

  test('a segment that was damaged is told from one that was not', async () => {
    await broker.append(0, records('a', 4))
    await recover()
    await deliver(0, 4)
    const name = store.names().find((one) => one.includes('/segments/'))!
    const bytes = (await store.read(name))!
    bytes[bytes.length - 1]! ^= 1
    await store.delete([name])
    await store.create(name, [bytes])
    await expect(placedRecords(log, 0, 0n, 4n)).rejects.toEqual(coded('LOG_SEGMENT_DAMAGED'))
  })
})

/** What a broker takes: records, or offsets that hold none. */
const written = fc.array(
  fc.oneof(
    { arbitrary: fc.integer({ min: 1, max: 9 }), weight: 4 },
    { arbitrary: fc.integer({ min: -3, max: -1 }), weight: 1 },
  ),
  { minLength: 1, maxLength: 12 },
)
const hostile = fc.array(
  fc.record({ at: fc.nat(99), length: fc.integer({ min: 1, max: 40 }), lost: fc.boolean(), asks: fc.boolean() }),
  { maxLength: 25 },
)

test('whatever is doubled, overlaps, is reordered or lost: what is read is the log, and nothing lies over a gap', async () => {
  await fc.assert(
    fc.asyncProperty(written, hostile, async (writes, events) => {
      store = memoryStore()
      broker = memoryLog({ topic: 'in', partitions: 1 })
      log = openIntakeLog(store, 'p', 'in')
      for (const count of writes) {
        if (count < 0) broker.skip(0, BigInt(-count))
        else await broker.append(0, records(`w${count}`, count))
      }
      await recover()
      const { end } = (await broker.bounds()).partitions[0]!
      const brought = new Set<bigint>()
      let explained = 0n
      for (const { at, length, lost, asks } of events) {
        const start = (BigInt(at) * end) / 100n
        const until = start + BigInt(length) < end ? start + BigInt(length) : end
        const placed = await placedRecords(broker, 0, start, until)
        if (!lost && placed.length > 0) {
          for (const batch of batchesOf(eventOf('in', 0, placed))!) await log.lay(batch, null)
          for (const { offset } of placed) brought.add(offset)
        }
        if (asks) {
          await recover()
          for (const offset of brought) if (offset >= explained) explained = offset + 1n
        }
        const seen = await span()
        let reach = explained
        while (brought.has(reach)) reach++
        expect(seen.end).toBe(reach)
        expect(await placedRecords(log, 0, 0n, seen.end)).toEqual(await placedRecords(broker, 0, 0n, seen.end))
      }
      await recover({ endsBefore: new Map([[0, end]]) })
      expect(await placedRecords(log, 0, 0n, (await span()).end)).toEqual(await placedRecords(broker, 0, 0n, end))
    }),
    { numRuns: 150 },
  )
})
