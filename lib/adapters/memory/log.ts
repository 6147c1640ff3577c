/**
 * A log in memory, with the odd shapes that real logs take, on demand.
 *
 * Offsets without records (holes, control batches, aborted transactions), bases beyond 2^53, an end that is held
 * back like a last stable offset, lost offsets, a recreated topic, growth. As strict as the real ones: a batch
 * that was handed out is overwritten when the next one is asked for, since nobody may keep it. `close` keeps the
 * records: one memory log stands for the cluster that outlives the process.
 */
import { assert } from '../../model/assert.ts'
import { PawlError } from '../../model/errors.ts'
import type { LogBatch, LogRecord } from '../../model/records.ts'
import type { LogAppender, LogBounds, LogSource, StartPosition } from '../../ports/log.ts'
import { encodeHeaders } from '../shared/headers.ts'
import { assertWithinLog, type OffsetRange, partitionMissing } from '../shared/log-ranges.ts'
import { explicitOffsets } from '../shared/start-positions.ts'

/** A log with the controls that tests need. */
export interface MemoryLog extends LogSource, LogAppender {
  readonly topic: string
  /** Lets the next `count` offsets pass without a record. */
  skip(partition: number, count: bigint): void
  /** Takes offsets for records of an aborted transaction, and one for its marker: never delivered. */
  appendAborted(partition: number, records: readonly LogRecord[]): void
  /** Holds the end back at `offset`, as an open transaction holds the last stable offset; null lets go. */
  hold(partition: number, offset: bigint | null): void
  /** Loses everything below `offset`, as retention does. */
  truncateBefore(partition: number, offset: bigint): void
  /** Deletes the topic and creates it again, empty, under another id. */
  recreate(): void
  /** Deletes the topic. */
  remove(): void
  /** Adds partitions until there are `partitions`. */
  grow(partitions: number): void
  /** What was published for a group; empty when nothing was. */
  published(group: string): ReadonlyMap<number, bigint>
}

/** Shape of a new log. */
export interface MemoryLogOptions {
  readonly topic: string
  readonly partitions: number
  readonly topicId?: string
  /** First offset of every partition. */
  readonly baseOffset?: bigint
  /** Records a batch, at most; 100 by default, small so that tests see several. */
  readonly batchRecordsMax?: number
}

interface Entry {
  readonly offset: bigint
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: Buffer | null
  readonly timestampMs: number
}

interface Partition {
  entries: Entry[]
  start: bigint
  end: bigint
  heldAt: bigint | null
}

/** Offsets of a batch are relative and 32 bits wide. */
const offsetSpanMax = 2n ** 31n

/** An empty log. */
export function memoryLog(options: MemoryLogOptions): MemoryLog {
  const { topic, baseOffset = 0n, batchRecordsMax = 100 } = options
  const empty = (): Partition => ({ entries: [], start: baseOffset, end: baseOffset, heldAt: null })
  const groups = new Map<string, Map<number, bigint>>()
  let partitions = Array.from({ length: options.partitions }, empty)
  let life = 0
  let exists = true

  const topicId = () => `${options.topicId ?? topic}-${life}`
  const partitionAt = (partition: number): Partition => {
    if (!exists) throw new PawlError('TOPIC_MISSING', topic, { topic })
    const found = partitions[partition]
    if (found === undefined) throw partitionMissing(topic, partition)
    return found
  }
  const boundsNow = (): LogBounds => {
    if (!exists) throw new PawlError('TOPIC_MISSING', topic, { topic })
    return {
      topicId: topicId(),
      partitions: partitions.map((log, partition) => ({ partition, start: log.start, end: visibleEnd(log) })),
    }
  }

  async function* read(range: OffsetRange): AsyncIterable<LogBatch> {
    const log = partitionAt(range.partition)
    assertWithinLog(topic, range, { start: log.start, end: visibleEnd(log) })
    const { entries } = log
    for (let at = firstFrom(entries, range.start); at < entries.length && entries[at]!.offset < range.end; ) {
      const last = minOf(range.end, entries[at]!.offset + offsetSpanMax)
      let to = at
      while (to < entries.length && to - at < batchRecordsMax && entries[to]!.offset < last) to++
      const batch = columnsOf(range.partition, entries.slice(at, to))
      yield batch
      batch.bytes.fill(0xdb)
      at = to
    }
  }

  return {
    topic,
    bounds: async () => boundsNow(),
    read,
    resolve: async (position) => resolve(position, boundsNow(), partitions, topic, groups),
    async publish(group, offsets) {
      groups.set(group, new Map([...(groups.get(group) ?? []), ...offsets]))
    },
    async append(partition, records) {
      const log = partitionAt(partition)
      const first = log.end
      for (const record of records) log.entries.push(entryOf(log.end++, record))
      return { baseOffset: first }
    },
    async close() {},
    skip(partition, count) {
      partitionAt(partition).end += count
    },
    appendAborted(partition, records) {
      partitionAt(partition).end += BigInt(records.length) + 1n
    },
    hold(partition, offset) {
      partitionAt(partition).heldAt = offset
    },
    truncateBefore(partition, offset) {
      const log = partitionAt(partition)
      assert(offset >= log.start && offset <= log.end, `cannot truncate before ${offset}`)
      log.start = offset
      log.entries = log.entries.slice(firstFrom(log.entries, offset))
    },
    recreate() {
      life++
      exists = true
      partitions = partitions.map(empty)
    },
    remove() {
      exists = false
    },
    grow(count) {
      while (partitions.length < count) partitions.push(empty())
    },
    published: (group) => groups.get(group) ?? new Map(),
  }
}

function resolve(
  position: StartPosition,
  bounds: LogBounds,
  logs: readonly Partition[],
  topic: string,
  groups: ReadonlyMap<string, ReadonlyMap<number, bigint>>,
): ReadonlyMap<number, bigint> {
  switch (position.at) {
    case 'earliest':
      return new Map(bounds.partitions.map(({ partition, start }) => [partition, start]))
    case 'latest':
      return new Map(bounds.partitions.map(({ partition, end }) => [partition, end]))
    case 'timestamp':
      return new Map(
        bounds.partitions.map(({ partition, end }) => {
          const first = logs[partition]!.entries.find(({ timestampMs }) => timestampMs >= position.timestampMs)
          return [partition, first !== undefined && first.offset < end ? first.offset : end]
        }),
      )
    case 'offsets':
      return explicitOffsets(topic, position.offsets, bounds)
    case 'group': {
      const offsets = groups.get(position.group)
      if (offsets === undefined) throw new PawlError('START_POSITION_INVALID', `group ${position.group} of ${topic}`)
      return new Map(bounds.partitions.map(({ partition, start }) => [partition, offsets.get(partition) ?? start]))
    }
  }
}

const minOf = (a: bigint, b: bigint) => (a < b ? a : b)

const visibleEnd = (log: Partition) => (log.heldAt === null ? log.end : minOf(log.heldAt, log.end))

/** Index of the first entry at or above `offset`. */
function firstFrom(entries: readonly Entry[], offset: bigint): number {
  let low = 0
  let high = entries.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (entries[middle]!.offset < offset) low = middle + 1
    else high = middle
  }
  return low
}

function entryOf(offset: bigint, record: LogRecord): Entry {
  const content = (part: LogRecord['key']) => (part === null ? null : Buffer.from(part as Uint8Array))
  return {
    offset,
    key: content(record.key),
    value: content(record.value),
    headers: encodeHeaders(record.headers),
    timestampMs: record.timestampMs,
  }
}

function columnsOf(partition: number, entries: readonly Entry[]): LogBatch {
  const column = () => new Int32Array(entries.length).fill(-1)
  const [keyStarts, keyEnds, valueStarts, valueEnds, headerStarts] = [column(), column(), column(), column(), column()]
  const offsetDeltas = new Int32Array(entries.length)
  const timestamps = new Float64Array(entries.length)
  const baseOffset = entries[0]!.offset
  const chunks: Buffer[] = []
  let at = 0
  const place = (part: Buffer | null): readonly [start: number, end: number] => {
    if (part === null) return [-1, -1]
    chunks.push(part)
    at += part.length
    return [at - part.length, at]
  }
  for (const [i, entry] of entries.entries()) {
    offsetDeltas[i] = Number(entry.offset - baseOffset)
    timestamps[i] = entry.timestampMs
    ;[keyStarts[i], keyEnds[i]] = place(entry.key) as [number, number]
    ;[valueStarts[i], valueEnds[i]] = place(entry.value) as [number, number]
    headerStarts[i] = place(entry.headers)[0]
  }
  const bytes = Buffer.concat(chunks)
  const columns = { offsetDeltas, timestamps, bytes, keyStarts, keyEnds, valueStarts, valueEnds, headerStarts }
  return { partition, baseOffset, count: entries.length, ...columns }
}
