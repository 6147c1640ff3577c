import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { PartitionProgress, PlannedRange } from '../../lib/model/manifest.ts'
import { advanceWatermark, type WatermarkInput } from '../../lib/stream/operators/watermark.ts'

const sources = { in: { maxOutOfOrdernessMs: 10, idleAfterMs: 1000 } }

const range = (partition: number, caughtUp = true): PlannedRange => ({
  ...{ source: 'in', partition, start: '0', end: '5', topicId: 't', caughtUp },
})

const at = (partition: number, maxTimestampMs: number) => ({ source: 'in', partition, maxTimestampMs })

function advance(input: Partial<WatermarkInput>) {
  const empty = { previous: [], ranges: [], eventTimes: [], processingTimeMs: 0, previousWatermarkMs: null, sources }
  return advanceWatermark({ ...empty, ...input })
}

test('is the largest event time minus the bound minus one, over the slowest partition', () => {
  const { watermarkMs, progress } = advance({
    ranges: [range(0), range(1)],
    eventTimes: [at(0, 500), at(1, 300), at(0, 400)],
    processingTimeMs: 7,
  })
  expect(watermarkMs).toBe(289)
  expect(progress).toEqual([
    { source: 'in', partition: 0, start: '0', end: '5', topicId: 't', maxTimestampMs: 500, activeAtMs: 7 },
    { source: 'in', partition: 1, start: '0', end: '5', topicId: 't', maxTimestampMs: 300, activeAtMs: 7 },
  ])
})

test('is null while a partition that is not idle has none', () => {
  expect(advance({ ranges: [range(0), range(1)], eventTimes: [at(0, 500)] }).watermarkMs).toBeNull()
})

test('case 48: a partition that never delivers holds the watermark until it is idle, but not one that lags', () => {
  const ranges = [range(0), range(1), range(2), range(3)]
  const first = advance({ ranges, eventTimes: [at(0, 100), at(1, 100), at(2, 100)] })
  expect(first.watermarkMs).toBeNull()
  const eventTimes = [at(0, 2000), at(1, 2000), at(2, 2000)]
  const later = (ranges: readonly PlannedRange[], processingTimeMs: number) =>
    advance({ previous: first.progress, ranges, eventTimes, processingTimeMs }).watermarkMs
  expect(later(ranges, 999)).toBeNull()
  expect(later(ranges, 1000)).toBe(1989)
  expect(later([range(0), range(1), range(2), range(3, false)], 1000)).toBeNull()
})

test('a partition is never idle when the source says so', () => {
  const never = { in: { maxOutOfOrdernessMs: 0, idleAfterMs: null } }
  const first = advance({ ranges: [range(0), range(1)], eventTimes: [at(0, 1)], sources: never })
  const { watermarkMs } = advance({
    ...never,
    previous: first.progress,
    ranges: [range(0), range(1)],
    processingTimeMs: 1e9,
    sources: never,
  })
  expect(watermarkMs).toBeNull()
})

test('an idle partition that wakes behind the watermark does not pull it back', () => {
  const first = advance({ ranges: [range(0), range(1)], eventTimes: [at(0, 100), at(1, 100)] })
  const alone = advance({
    ...{ previous: first.progress, previousWatermarkMs: first.watermarkMs, ranges: [range(0), range(1)] },
    ...{ eventTimes: [at(0, 9000)], processingTimeMs: 5000 },
  })
  expect(alone.watermarkMs).toBe(8989)
  const woken = advance({
    ...{ previous: alone.progress, previousWatermarkMs: alone.watermarkMs, ranges: [range(0), range(1)] },
    ...{ eventTimes: [at(1, 200)], processingTimeMs: 5001 },
  })
  expect(woken.watermarkMs).toBe(8989)
  expect(woken.progress[1]).toMatchObject({ maxTimestampMs: 200, activeAtMs: 5001 })
})

test('a partition found later holds the watermark where it is', () => {
  const first = advance({ ranges: [range(0)], eventTimes: [at(0, 100)] })
  const grown = advance({
    ...{ previous: first.progress, previousWatermarkMs: first.watermarkMs, ranges: [range(0), range(1)] },
    ...{ eventTimes: [at(0, 900)], processingTimeMs: 10 },
  })
  expect([first.watermarkMs, grown.watermarkMs]).toEqual([89, 89])
})

test('stays when every partition is idle', () => {
  const first = advance({ ranges: [range(0)], eventTimes: [at(0, 100)] })
  const idle = advance({
    ...{ previous: first.progress, previousWatermarkMs: 89, ranges: [range(0)], processingTimeMs: 10_000 },
  })
  expect(idle.watermarkMs).toBe(89)
})

test('case 53: jitter of one millisecond neither stalls the watermark nor lowers it', () => {
  let previous: readonly PartitionProgress[] = []
  let previousWatermarkMs: number | null = null
  const seen: (number | null)[] = []
  for (const timestampMs of [100, 99, 101, 100, 102]) {
    const next = advance({ previous, previousWatermarkMs, ranges: [range(0)], eventTimes: [at(0, timestampMs)] })
    previous = next.progress
    previousWatermarkMs = next.watermarkMs
    seen.push(next.watermarkMs)
  }
  expect(seen).toEqual([89, 89, 90, 90, 91])
})

test('case 47: never falls, and needs nothing but the manifest to go on', () => {
  const step = fc.record({
    times: fc.array(fc.tuple(fc.nat(2), fc.integer({ min: -1000, max: 1000 })), { maxLength: 4 }),
    partitions: fc.integer({ min: 1, max: 3 }),
    wait: fc.nat(1500),
    caughtUp: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 8 }), (steps) => {
      let manifest: { progress: readonly PartitionProgress[]; watermarkMs: number | null } = {
        progress: [],
        watermarkMs: null,
      }
      let processingTimeMs = 0
      for (const { times, partitions, wait, caughtUp } of steps) {
        processingTimeMs += wait
        const ranges = Array.from({ length: partitions }, (_, partition) => range(partition, caughtUp))
        const eventTimes = times
          .filter(([partition]) => partition < partitions)
          .map(([partition, ms]) => at(partition, ms))
        const stored = JSON.parse(JSON.stringify(manifest))
        const next = advance({
          previous: stored.progress,
          previousWatermarkMs: stored.watermarkMs,
          ranges,
          eventTimes,
          processingTimeMs,
        })
        expect(next.watermarkMs ?? Number.NEGATIVE_INFINITY).toBeGreaterThanOrEqual(
          manifest.watermarkMs ?? Number.NEGATIVE_INFINITY,
        )
        const newest = Math.max(
          ...next.progress.map(({ maxTimestampMs }) => maxTimestampMs ?? Number.NEGATIVE_INFINITY),
        )
        if (next.watermarkMs !== manifest.watermarkMs) expect(next.watermarkMs).toBeLessThanOrEqual(newest - 11)
        manifest = next
      }
    }),
  )
})
