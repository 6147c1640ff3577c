/**
 * Asks the broker what events cannot say: which topic it is, where it begins, and what a gap was.
 *
 * Safe to repeat and to race: descriptions, and segments read from the broker, are created if absent, and two of one
 * range agree. Doubts are listed before the broker is asked for the topic's id: what comes later waits for the next
 * time. A gap that the broker no longer has is an error, never a skip.
 */
import { isPawlError, PawlError } from '../../model/errors.ts'
import { limits } from '../../model/limits.ts'
import type { PlacedRecord } from '../../model/mapping-event.ts'
import type { LogBounds, LogSource, StartPosition } from '../../ports/log.ts'
import { placedOf } from './intake-digest.ts'
import type { IntakeLog } from './intake-log.ts'
import type { Run } from './intake-segment.ts'

/** What a recovery needs to know. */
export interface RecoverOptions {
  readonly log: IntakeLog
  readonly broker: LogSource
  /** Of a pipeline that never ran. */
  readonly start: StartPosition
  /** Where the pipeline goes on, by partition; empty for one that never ran. */
  readonly committed: ReadonlyMap<number, bigint>
  /** Ends at the broker when it was last asked, by partition: what was there then and is still not here is lost. */
  readonly endsBefore: ReadonlyMap<number, bigint>
}

/** What became of a topic. */
export interface Recovered {
  /** Partitions that were described. */
  readonly described: number
  /** Doubts that the broker has settled. */
  readonly settled: number
  /** Ranges that were read from the broker and laid down. */
  readonly ranges: readonly {
    readonly partition: number
    readonly start: string
    readonly end: string
    readonly records: number
  }[]
  /** Ends at the broker now, for the next time. */
  readonly ends: ReadonlyMap<number, bigint>
}

/** Bytes of keys and values, and records, at which a segment is closed. */
const segmentBytes = 4 * 1024 * 1024
const segmentRecords = 20_000

/**
 * Describes the topic, settles doubts, fills gaps. Throws `TOPIC_RECREATED`, `LOG_OFFSET_LOST` for a gap that the
 * broker has lost, `RECORD_TOO_LARGE`, and `INTAKE_GAP` when the broker cannot be read.
 */
export async function recoverIntake(options: RecoverOptions): Promise<Recovered> {
  const { log, broker } = options
  const before = await log.look()
  const bounds = await asking(log.topic, () => broker.bounds())
  const described = await describe(options, before.topicIds, new Set(before.starts.keys()), bounds)
  await log.clear(before.doubts)
  const ranges: Recovered['ranges'][number][] = []
  const { coverage } = described === 0 ? before : await log.look()
  for (const { partition, start, end } of bounds.partitions) {
    const found = coverage.get(partition)
    if (found === undefined) continue
    for (const gap of missing(found, end, options.endsBefore.get(partition))) {
      if (gap.start < start) throw lost(log.topic, partition, gap, start)
      const records = await fill(options, partition, gap)
      ranges.push({ partition, start: gap.start.toString(), end: gap.end.toString(), records })
    }
  }
  const ends = new Map(bounds.partitions.map(({ partition, end }) => [partition, end]))
  return { described, settled: before.doubts.length, ranges, ends }
}

async function describe(
  { log, broker, start, committed }: RecoverOptions,
  topicIds: readonly string[],
  known: ReadonlySet<number>,
  { topicId, partitions }: LogBounds,
): Promise<number> {
  if (topicIds.length > 0 && !topicIds.includes(topicId)) await log.describe(topicId, 0, 0n)
  if (topicIds.length > 1 || (topicIds.length > 0 && !topicIds.includes(topicId))) {
    const ids = [...new Set([...topicIds, topicId])].join(' and ')
    throw new PawlError('TOPIC_RECREATED', `${log.topic} had the ids ${ids}`, { topic: log.topic })
  }
  const fresh = partitions.filter(({ partition }) => !known.has(partition))
  if (fresh.length === 0) return 0
  // Partitions that are found later begin at their beginning.
  const first = known.size === 0 && committed.size === 0 ? await broker.resolve(start) : new Map<number, bigint>()
  for (const { partition, start: beginning } of fresh) {
    await log.describe(topicId, partition, committed.get(partition) ?? first.get(partition) ?? beginning)
  }
  return fresh.length
}

/** Gaps, and what the broker had last time and no event has brought since. */
function missing(
  { gaps, known }: { readonly gaps: readonly Run[]; readonly known: bigint },
  end: bigint,
  endBefore: bigint | undefined,
): Run[] {
  const within = gaps.map((gap) => ({ start: gap.start, end: gap.end < end ? gap.end : end }))
  if (endBefore !== undefined && known < endBefore)
    within.push({ start: known, end: endBefore < end ? endBefore : end })
  return within.filter(({ start, end: until }) => start < until)
}

/** Reads a gap and lays it down piece by piece; answers with its records. */
async function fill({ log, broker }: RecoverOptions, partition: number, gap: Run): Promise<number> {
  let records: PlacedRecord[] = []
  let bytes = 0
  let at = gap.start
  let count = 0
  const close = async (end: bigint) => {
    await log.layRange(partition, { start: at, end }, records)
    count += records.length
    at = end
    records = []
    bytes = 0
  }
  for await (const batch of reading(log.topic, partition, broker.read({ partition, ...gap }))) {
    for (const record of placedOf(batch)) {
      const size = (record.key?.length ?? 0) + (record.value?.length ?? 0)
      if (size > limits.recordBytesMax) throw tooLarge(log.topic, partition, record.offset, size)
      if (records.length > 0 && (bytes + size > segmentBytes || records.length >= segmentRecords)) {
        await close(record.offset)
      }
      records.push(record)
      bytes += size
    }
  }
  await close(gap.end)
  return count
}

async function* reading<T>(topic: string, partition: number, batches: AsyncIterable<T>): AsyncGenerator<T, void> {
  try {
    yield* batches
  } catch (error) {
    throw unread(`${topic}/${partition}`, error)
  }
}

async function asking<T>(topic: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    throw unread(topic, error)
  }
}

/** A broker that does not answer is what keeps a gap; what it says for sure goes on as it is. */
function unread(where: string, error: unknown): unknown {
  const passing = isPawlError(error) && error.kind === 'Retryable'
  return passing ? new PawlError('INTAKE_GAP', `${where}: ${error.message}`, { where }, error) : error
}

function lost(topic: string, partition: number, gap: Run, start: bigint): PawlError {
  const details = { topic, partition, start: gap.start.toString(), end: gap.end.toString(), logStart: start.toString() }
  const fault = `no event brought offset ${gap.start} of ${topic}/${partition}, which starts at ${start} by now`
  return new PawlError('LOG_OFFSET_LOST', fault, details)
}

function tooLarge(topic: string, partition: number, offset: bigint, bytes: number): PawlError {
  const fault = `offset ${offset} of ${topic}/${partition} has ${bytes} bytes, the limit is ${limits.recordBytesMax}`
  return new PawlError('RECORD_TOO_LARGE', fault, { topic, partition, offset: offset.toString(), bytes })
}
