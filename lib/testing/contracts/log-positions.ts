/**
 * The obligations of a log about where reading starts.
 *
 * Positions are resolved once and pinned, so they must be exact; explicit offsets name every partition.
 */
import assert from 'node:assert/strict'
import type { StartPosition } from '../../ports/log.ts'
import { refusedWith } from './contract.ts'
import { control, type LogCheck, type LogSubject, records, spanOf } from './log-subject.ts'

const resolved = async ({ log }: LogSubject, position: StartPosition) => [...(await log.resolve(position))].sort()

/** Obligations by name. */
export const logPositions: Record<string, LogCheck> = {
  'resolves earliest and latest': async (subject) => {
    await subject.log.append(1, records('a', 3))
    const { partitions } = await subject.log.bounds()
    const starts = partitions.map(({ partition, start }) => [partition, start])
    const ends = partitions.map(({ partition, end }) => [partition, end])
    assert.deepEqual(await resolved(subject, { at: 'earliest' }), starts)
    assert.deepEqual(await resolved(subject, { at: 'latest' }), ends)
  },
  'resolves a timestamp to the first record that is no older': async (subject) => {
    const { log } = subject
    await log.append(0, records('a', 4, 10_000))
    await log.append(0, records('b', 4, 20_000))
    const { start, end } = await spanOf(log, 0)
    const offsetAt = async (timestampMs: number) => (await log.resolve({ at: 'timestamp', timestampMs })).get(0)
    assert.equal(await offsetAt(0), start)
    assert.equal(await offsetAt(10_000), start)
    assert.equal(await offsetAt(10_001), start + 1n)
    assert.equal(await offsetAt(13_001), start + 4n)
    assert.equal(await offsetAt(23_000), start + 7n)
    assert.equal(await offsetAt(23_001), end)
    assert.deepEqual((await resolved(subject, { at: 'timestamp', timestampMs: 0 })).length, 3)
  },
  'takes a timestamp out of order where it stands': async ({ log }) => {
    const timestamps = [50, 10, 70, 20, 90]
    await log.append(
      0,
      timestamps.map((timestampMs) => ({ key: null, value: 'x', timestampMs })),
    )
    const { start } = await spanOf(log, 0)
    assert.equal((await log.resolve({ at: 'timestamp', timestampMs: 60 })).get(0), start + 2n)
  },
  'case 38: takes offsets as they are given, to the last digit': async (subject) => {
    await subject.log.append(0, records('a', 3))
    const { partitions } = await subject.log.bounds()
    const [first, second, third] = partitions
    const offsets = { 0: `${first!.start + 2n}`, 1: `${second!.end}`, 2: `${third!.start}` }
    const expected = [
      [0, first!.start + 2n],
      [1, second!.end],
      [2, third!.start],
    ]
    assert.deepEqual(await resolved(subject, { at: 'offsets', offsets }), expected)
  },
  'refuses offsets that are outside, missing, of no partition, or no numbers': async ({ log }) => {
    await log.append(0, records('a', 3))
    const { start, end } = await spanOf(log, 0)
    const others = { 1: `${(await spanOf(log, 1)).start}`, 2: `${(await spanOf(log, 2)).start}` }
    const wrong: Record<number, string>[] = [
      { ...others, 0: `${end + 1n}` },
      others,
      { ...others, 0: `${start}`, 3: '0' },
      { ...others, 0: '1.5' },
      { ...others, 0: '-1' },
      { ...others, 0: '' },
      { ...others, 0: '9223372036854775808' },
    ]
    for (const offsets of wrong) {
      await refusedWith('START_POSITION_INVALID', () => log.resolve({ at: 'offsets', offsets }))
    }
  },
  'refuses offsets that it lost': async (subject) => {
    const { log } = subject
    await log.append(0, records('a', 3))
    await log.append(0, records('b', 3))
    const { start } = await spanOf(log, 0)
    await control(subject, 'loseBefore')(0, start + 3n)
    const others = { 1: `${(await spanOf(log, 1)).start}`, 2: `${(await spanOf(log, 2)).start}` }
    const lost = { ...others, 0: `${start}` }
    await refusedWith('START_POSITION_INVALID', () => log.resolve({ at: 'offsets', offsets: lost }))
    const kept = await log.resolve({ at: 'offsets', offsets: { ...others, 0: `${start + 3n}` } })
    assert.equal(kept.get(0), start + 3n)
    assert.equal((await log.resolve({ at: 'earliest' })).get(0), start + 3n)
  },
  'refuses a group that it does not know': async ({ log }) => {
    await refusedWith('START_POSITION_INVALID', () => log.resolve({ at: 'group', group: 'nobody' }))
  },
}
