/**
 * What the checks of the log contract stand on: a client, the controls of its topic, and ways to read it.
 *
 * Apart from the obligations so that these can lie in several files.
 */
import assert from 'node:assert/strict'
import { headersOf } from '../../adapters/shared/headers.ts'
import type { Header, LogRecord } from '../../model/records.ts'
import type { LogAppender, LogSource } from '../../ports/log.ts'
import type { ContractPlace } from './contract.ts'

/** One client of the topic, and what a test can do to the topic. */
export interface LogSubject {
  readonly log: LogSource & LogAppender
  readonly controls: LogControls
}

/** What tests do to a topic behind the back of its clients. */
export interface LogControls {
  /** Takes offsets without visible records: holes, control batches or aborted records. */
  hole?(partition: number, offsets: number): Promise<void>
  /** Loses what lies below `offset`. The log may lose less, down to the start of the append that holds it. */
  loseBefore?(partition: number, offset: bigint): Promise<void>
  /** Deletes the topic and creates it again. */
  recreate?(): Promise<void>
  remove?(): Promise<void>
  grow?(partitions: number): Promise<void>
}

/** One record as it was read. */
export interface ReadRecord {
  readonly offset: bigint
  readonly key: string | null
  readonly value: string | null
  readonly timestampMs: number
  readonly headers: readonly Header[]
}

/** A check of one client, in a place for more. */
export type LogCheck = (subject: LogSubject, place: ContractPlace<LogSubject>) => Promise<void>

/** Reads a range into objects. */
export async function readRange(log: LogSource, partition: number, start: bigint, end: bigint): Promise<ReadRecord[]> {
  const records: ReadRecord[] = []
  for await (const batch of log.read({ partition, start, end })) {
    assert.equal(batch.partition, partition)
    assert.ok(batch.count > 0, 'a batch holds a record')
    const content = (starts: Int32Array, ends: Int32Array, i: number) =>
      starts[i]! < 0 ? null : batch.bytes.toString('utf8', starts[i]!, ends[i]!)
    for (let i = 0; i < batch.count; i++) {
      records.push({
        offset: batch.baseOffset + BigInt(batch.offsetDeltas[i]!),
        key: content(batch.keyStarts, batch.keyEnds, i),
        value: content(batch.valueStarts, batch.valueEnds, i),
        timestampMs: batch.timestamps[i]!,
        headers: headersOf(batch, i),
      })
    }
  }
  return records
}

/** Start and end of a partition now. */
export async function spanOf(log: LogSource, partition: number): Promise<{ start: bigint; end: bigint }> {
  const { partitions } = await log.bounds()
  const found = partitions[partition]
  assert.ok(found !== undefined && found.partition === partition, `partition ${partition} is in the bounds`)
  return found
}

/** Everything that a partition holds now. */
export async function readAll(log: LogSource, partition: number): Promise<ReadRecord[]> {
  const { start, end } = await spanOf(log, partition)
  return readRange(log, partition, start, end)
}

/** Records `prefix-0` … with timestamps a second apart. */
export function records(prefix: string, count: number, timestampMs = 1_000_000): LogRecord[] {
  return Array.from({ length: count }, (_, i) => ({
    key: `key-${i % 7}`,
    value: `${prefix}-${i}`,
    timestampMs: timestampMs + i * 1000,
  }))
}

/** A control, or the failure that stands for its absence. */
export function control<N extends keyof LogControls>(subject: LogSubject, name: N): NonNullable<LogControls[N]> {
  const found = subject.controls[name]
  assert.ok(found !== undefined, `no control ${name}`)
  return found
}
