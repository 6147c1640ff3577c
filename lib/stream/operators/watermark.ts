/**
 * Watermarks: how far event time has certainly come.
 *
 * Pure. Per partition the largest event time − maxOutOfOrdernessMs − 1 (the formula of Flink's
 * `BoundedOutOfOrdernessWatermarks`); over all partitions that are not idle the minimum; never falling. A partition
 * is idle only when the epoch read it to the end of the log and it had no record for `idleAfterMs` of processing
 * time. A partition found later holds the watermark where it is until it has records or is idle. Everything needed
 * to go on is in the manifest, so a restart changes nothing.
 */
import type { PartitionProgress, PlannedRange } from '../../model/manifest.ts'

/** What one epoch knows about time. */
export interface WatermarkInput {
  /** Progress in the parent manifest. */
  readonly previous: readonly PartitionProgress[]
  readonly ranges: readonly PlannedRange[]
  /** Largest event times of this epoch, from all tasks; a partition may come more than once. */
  readonly eventTimes: readonly {
    readonly source: string
    readonly partition: number
    readonly maxTimestampMs: number
  }[]
  readonly processingTimeMs: number
  readonly previousWatermarkMs: number | null
  /** By source id. */
  readonly sources: Readonly<Record<string, WatermarkSource>>
}

/** How a source's time is judged. */
export interface WatermarkSource {
  readonly maxOutOfOrdernessMs: number
  /** Null: a partition is never idle. */
  readonly idleAfterMs: number | null
}

/** What goes into the manifest. Progress is sorted as the ranges are. */
export interface Watermark {
  readonly watermarkMs: number | null
  readonly progress: readonly PartitionProgress[]
}

/** The watermark after an epoch, and where each partition stands. */
export function advanceWatermark(input: WatermarkInput): Watermark {
  const { previous, ranges, eventTimes, processingTimeMs, previousWatermarkMs, sources } = input
  const before = new Map(previous.map((one) => [placeOf(one), one]))
  const seen = new Map<string, number>()
  for (const one of eventTimes)
    seen.set(placeOf(one), Math.max(one.maxTimestampMs, seen.get(placeOf(one)) ?? Number.NEGATIVE_INFINITY))

  let minimum: number | null = Number.POSITIVE_INFINITY
  const progress = ranges.map((range) => {
    const after = progressOf(range, before.get(placeOf(range)), seen.get(placeOf(range)), processingTimeMs)
    const source = sources[range.source]
    if (!isIdle(range, after, source, processingTimeMs)) minimum = lower(minimum, partitionWatermark(after, source))
    return after
  })
  const reached = minimum === Number.POSITIVE_INFINITY ? null : minimum
  return { watermarkMs: higher(previousWatermarkMs, reached), progress }
}

function placeOf(one: { readonly source: string; readonly partition: number }): string {
  return `${one.source}/${one.partition}`
}

function progressOf(
  range: PlannedRange,
  before: PartitionProgress | undefined,
  seenMs: number | undefined,
  processingTimeMs: number,
): PartitionProgress {
  const { source, partition, start, end, topicId } = range
  return {
    ...{ source, partition, start, end, topicId },
    maxTimestampMs: higher(before?.maxTimestampMs ?? null, seenMs ?? null),
    activeAtMs: seenMs !== undefined || before === undefined ? processingTimeMs : before.activeAtMs,
  }
}

function isIdle(
  range: PlannedRange,
  after: PartitionProgress,
  { idleAfterMs }: WatermarkSource,
  processingTimeMs: number,
): boolean {
  return idleAfterMs !== null && range.caughtUp && processingTimeMs - after.activeAtMs >= idleAfterMs
}

function partitionWatermark(after: PartitionProgress, source: WatermarkSource): number | null {
  return after.maxTimestampMs === null ? null : after.maxTimestampMs - source.maxOutOfOrdernessMs - 1
}

/** Null is below everything. */
function lower(a: number | null, b: number | null): number | null {
  return a === null || b === null ? null : Math.min(a, b)
}

function higher(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b
  return Math.max(a, b)
}
