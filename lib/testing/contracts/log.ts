/**
 * What every log must do, whatever keeps its records: the obligations of `ports/log.ts` as checks.
 *
 * A place holds one topic of three partitions. Nothing assumes that its offsets begin at 0, so that the same
 * checks run beyond 2^53. What only some logs can be made to do (holes, retention, recreation) is asked of the
 * controls; a log without the control declares a difference.
 */
import assert from 'node:assert/strict'
import { prng } from '../../model/prng.ts'
import type { Header } from '../../model/records.ts'
import { type Contract, type Obligation, refusedWith } from './contract.ts'
import { logPositions } from './log-positions.ts'
import {
  control,
  type LogCheck,
  type LogSubject,
  type ReadRecord,
  readAll,
  readRange,
  records,
  spanOf,
} from './log-subject.ts'

const valuesOf = (all: readonly ReadRecord[]) => all.map(({ value }) => value)

const reading: Record<string, LogCheck> = {
  'starts empty, its partitions in order': async ({ log }) => {
    const { partitions, topicId } = await log.bounds()
    assert.deepEqual(
      partitions.map(({ partition }) => partition),
      [0, 1, 2],
    )
    assert.ok(topicId.length > 0)
    for (const { partition, start, end } of partitions) {
      assert.equal(start, end)
      assert.deepEqual(await readRange(log, partition, start, end), [])
    }
  },
  'delivers what was appended, in offset order': async ({ log }) => {
    const first = await log.append(1, records('a', 5))
    const second = await log.append(1, records('b', 3))
    assert.equal(second.baseOffset, first.baseOffset + 5n)
    const all = await readAll(log, 1)
    assert.deepEqual(valuesOf(all), ['a-0', 'a-1', 'a-2', 'a-3', 'a-4', 'b-0', 'b-1', 'b-2'])
    assert.deepEqual(
      all.map(({ offset }) => offset - first.baseOffset),
      [0n, 1n, 2n, 3n, 4n, 5n, 6n, 7n],
    )
    assert.deepEqual(all[3], {
      offset: first.baseOffset + 3n,
      key: 'key-3',
      value: 'a-3',
      timestampMs: 1_003_000,
      headers: [],
    })
  },
  'case 39: tells null from empty, in keys and values': async ({ log }) => {
    const contents = [null, '', 'x'].flatMap((key) => [null, '', 'y'].map((value) => ({ key, value, timestampMs: 1 })))
    await log.append(0, contents)
    assert.deepEqual(
      (await readAll(log, 0)).map(({ key, value }) => ({ key, value, timestampMs: 1 })),
      contents,
    )
  },
  'keeps bytes, text beyond ASCII, negative timestamps and headers': async ({ log }) => {
    const headers: Header[] = [
      ['trace', Buffer.from([0, 255])],
      ['', null],
      ['größe', Buffer.alloc(0)],
      ['large', Buffer.alloc(300, 7)],
    ]
    await log.append(0, [
      { key: Buffer.from('clé'), value: 'naïve ✓', timestampMs: -1, headers },
      ...records('plain', 1),
    ])
    const [record, plain] = await readAll(log, 0)
    assert.deepEqual([record?.key, record?.value, record?.timestampMs], ['clé', 'naïve ✓', -1])
    assert.deepEqual(
      record?.headers.map(([name, value]) => [name, value === null ? null : Buffer.from(value)]),
      headers,
    )
    assert.deepEqual(plain?.headers, [])
  },
  'delivers any part of a log as the same part of the whole': async (subject) => {
    const { log } = subject
    const random = prng(7)
    for (let round = 0; round < 30; round++) {
      await log.append(2, records(`r${round}`, 1 + random.int(60)))
      if (subject.controls.hole && random.chance(0.3)) await subject.controls.hole(2, 1 + random.int(5))
    }
    const { start, end } = await spanOf(log, 2)
    const whole = await readRange(log, 2, start, end)
    for (let round = 0; round < 60; round++) {
      const [a, b] = [random.int(Number(end - start) + 1), random.int(Number(end - start) + 1)]
      const [from, to] = [start + BigInt(Math.min(a, b)), start + BigInt(Math.max(a, b))]
      const expected = whole.filter(({ offset }) => offset >= from && offset < to)
      assert.deepEqual(await readRange(log, 2, from, to), expected, `[${from}, ${to})`)
    }
  },
  'delivers records of a megabyte': async ({ log }) => {
    const value = 'v'.repeat(1024 * 1024)
    await log.append(0, [{ key: null, value, timestampMs: 1 }, ...records('after', 1)])
    assert.deepEqual(valuesOf(await readAll(log, 0)), [value, 'after-0'])
  },
  'case 29: ends a range that holds no record': async (subject) => {
    const { log } = subject
    const { start } = await holed(subject)
    assert.deepEqual(await readRange(log, 0, start + 2n, start + 12n), [])
    assert.deepEqual(await readRange(log, 0, start + 3n, start + 9n), [])
    assert.deepEqual(await readRange(log, 0, start + 14n, start + 17n), [])
  },
  'case 30: ends a range whose end lies in a hole': async (subject) => {
    const { log } = subject
    const { start } = await holed(subject)
    assert.deepEqual(valuesOf(await readRange(log, 0, start + 1n, start + 5n)), ['before-1'])
  },
  'case 31: goes on behind a hole': async (subject) => {
    const { log } = subject
    const { start, end } = await holed(subject)
    assert.equal(end, start + 17n)
    assert.deepEqual(valuesOf(await readRange(log, 0, start + 5n, end)), ['after-0', 'after-1'])
    assert.deepEqual(valuesOf(await readAll(log, 0)), ['before-0', 'before-1', 'after-0', 'after-1'])
  },
}

/** Two records, ten offsets without, two records, three offsets without. */
async function holed(subject: LogSubject): Promise<{ start: bigint; end: bigint }> {
  await subject.log.append(0, records('before', 2))
  await control(subject, 'hole')(0, 10)
  await subject.log.append(0, records('after', 2))
  await control(subject, 'hole')(0, 3)
  return spanOf(subject.log, 0)
}

const appending: Record<string, LogCheck> = {
  'keeps partitions apart': async ({ log }) => {
    await log.append(0, records('zero', 2))
    await log.append(2, records('two', 1))
    assert.deepEqual(valuesOf(await readAll(log, 0)), ['zero-0', 'zero-1'])
    assert.deepEqual(await readAll(log, 1), [])
    assert.deepEqual(valuesOf(await readAll(log, 2)), ['two-0'])
  },
  'adds nothing for no records': async ({ log }) => {
    await log.append(0, records('a', 2))
    const { end } = await spanOf(log, 0)
    assert.equal((await log.append(0, [])).baseOffset, end)
    assert.equal((await spanOf(log, 0)).end, end)
  },
  'shows another client what was appended': async ({ log }, place) => {
    const reader = (await place.open()).log
    assert.deepEqual(await readAll(reader, 0), [])
    await log.append(0, records('a', 3))
    assert.deepEqual(valuesOf(await readAll(reader, 0)), ['a-0', 'a-1', 'a-2'])
    await reader.append(0, records('b', 1))
    assert.deepEqual(valuesOf(await readAll(log, 0)), ['a-0', 'a-1', 'a-2', 'b-0'])
  },
  'loses and doubles nothing when appenders race': async ({ log }, place) => {
    const clients = [log, (await place.open()).log, (await place.open()).log]
    const appends = clients.flatMap((client, c) =>
      Array.from({ length: 10 }, async (_, i) => {
        // Equal records on purpose: an appender must not take a rival's for its own.
        const { baseOffset } = await client.append(0, records(i % 2 ? 'same' : `c${c}-${i}`, 1 + (i % 3)))
        return { baseOffset, values: valuesOfRecords(i % 2 ? 'same' : `c${c}-${i}`, 1 + (i % 3)) }
      }),
    )
    const done = (await Promise.all(appends)).sort((a, b) => (a.baseOffset < b.baseOffset ? -1 : 1))
    const all = await readAll(log, 0)
    assert.deepEqual(
      valuesOf(all),
      done.flatMap(({ values }) => values),
    )
    for (const { baseOffset, values } of done) {
      const at = all.findIndex(({ offset }) => offset === baseOffset)
      assert.deepEqual(valuesOf(all.slice(at, at + values.length)), values)
    }
  },
}

const valuesOfRecords = (prefix: string, count: number) => records(prefix, count).map(({ value }) => value as string)

const refusing: Record<string, LogCheck> = {
  'refuses a partition that the topic does not have': async ({ log }) => {
    const { start } = await spanOf(log, 0)
    await refusedWith('TOPIC_MISSING', () => readRange(log, 3, start, start + 1n))
    await refusedWith('TOPIC_MISSING', () => log.append(3, records('a', 1)))
  },
  'refuses a range beyond its end': async ({ log }) => {
    await log.append(0, records('a', 3))
    const { start, end } = await spanOf(log, 0)
    await refusedWith('LOG_SHRUNK', () => readRange(log, 0, start, end + 1n))
  },
  'case 33: refuses a range that it lost, and starts later': async (subject, place) => {
    const { log } = subject
    await log.append(0, records('a', 4))
    await log.append(0, records('b', 4))
    const before = await spanOf(log, 0)
    await control(subject, 'loseBefore')(0, before.start + 4n)
    for (const client of [log, (await place.open()).log]) {
      await refusedWith('LOG_OFFSET_LOST', () => readRange(client, 0, before.start, before.end))
      assert.deepEqual(await spanOf(client, 0), { partition: 0, start: before.start + 4n, end: before.end })
      assert.deepEqual(valuesOf(await readAll(client, 0)), ['b-0', 'b-1', 'b-2', 'b-3'])
    }
  },
  'has another topic id once it was recreated, and is empty': async (subject, place) => {
    const { log } = subject
    const other = (await place.open()).log
    await log.append(0, records('a', 4))
    const { topicId } = await log.bounds()
    assert.equal((await other.bounds()).topicId, topicId)
    await control(subject, 'recreate')()
    for (const client of [log, other]) {
      assert.notEqual((await client.bounds()).topicId, topicId)
      assert.deepEqual(await readAll(client, 0), [])
    }
    await other.append(0, records('new', 1))
    assert.deepEqual(valuesOf(await readAll(log, 0)), ['new-0'])
  },
  'says that a deleted topic is missing': async (subject) => {
    const { log } = subject
    await log.append(0, records('a', 1))
    const { start, end } = await spanOf(log, 0)
    await control(subject, 'remove')()
    await refusedWith('TOPIC_MISSING', () => log.bounds())
    await refusedWith('TOPIC_MISSING', () => readRange(log, 0, start, end))
    await refusedWith('TOPIC_MISSING', () => log.append(0, records('a', 1)))
  },
  'grows by partitions that start empty': async (subject, place) => {
    const other = (await place.open()).log
    await subject.log.append(0, records('a', 2))
    const before = await subject.log.bounds()
    await control(subject, 'grow')(5)
    const { partitions, topicId } = await other.bounds()
    assert.equal(topicId, before.topicId)
    assert.deepEqual(
      partitions.map(({ partition }) => partition),
      [0, 1, 2, 3, 4],
    )
    await other.append(4, records('new', 1))
    assert.deepEqual(valuesOf(await readAll(subject.log, 4)), ['new-0'])
    assert.deepEqual(valuesOf(await readAll(other, 0)), ['a-0', 'a-1'])
  },
}

/** The obligations of a log. */
export const logContract: Contract<LogSubject> = {
  port: 'log',
  obligations: Object.entries({ ...reading, ...appending, ...refusing, ...logPositions }).map(
    ([name, check]): Obligation<LogSubject> => ({ name, check: async (place) => check(await place.open(), place) }),
  ),
}
