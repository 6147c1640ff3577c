/**
 * Workload: records for the sources of a simulated pipeline.
 *
 * What the test gives as values is encoded with the source's own serdes; without any, lines of words are made for
 * sources of text. Event times rise a little unevenly, and some partitions get more than others.
 */
import { PawlError } from '../model/errors.ts'
import type { Prng } from '../model/prng.ts'
import type { LogRecord } from '../model/records.ts'
import type { SourceSpec } from '../ports/spec.ts'
import type { Compiled } from '../stream/compiled.ts'

/** One record to put in: a bare value, or with its key and time. */
export interface InputRecord<V = unknown, K = unknown> {
  readonly value: V | null
  readonly key?: K | null
  readonly timestampMs?: number
  /** Bytes in place of an encoded value, for records that do not decode. */
  readonly raw?: Uint8Array
}

/** Values by source id. */
export type SimulationInput = Readonly<Record<string, readonly unknown[]>>

/** One record on its way to a partition. */
export interface Arrival {
  readonly source: string
  readonly partition: number
  readonly record: LogRecord
}

/** Marks an input as a record with key, time or raw bytes, rather than a value. */
export function record<V, K>(input: InputRecord<V, K>): InputRecord<V, K> {
  return Object.freeze({ ...input, [recordBrand]: true })
}
const recordBrand = Symbol('record')

const words = ['ratchet', 'pawl', 'tooth', 'gear', 'catch', 'wheel', 'spring', 'shaft', 'cam', 'lever']

/** All records in arrival order. Throws `COMMAND_INVALID` for a source whose values cannot be made up. */
export function arrivalsOf(
  compiled: Compiled,
  input: SimulationInput | undefined,
  random: Prng,
  partitions: (source: string) => number,
): Arrival[] {
  const arrivals: Arrival[] = []
  for (const [source, spec] of Object.entries(compiled.sources)) {
    const values = input?.[source] ?? madeUp(source, spec, random)
    let timestampMs = 1_700_000_000_000
    for (const value of values) {
      timestampMs += random.int(400) - 50
      const partition = Math.min(random.int(partitions(source)), random.int(partitions(source) + 1))
      arrivals.push({
        source,
        partition: Math.min(partition, partitions(source) - 1),
        record: encode(spec, value, timestampMs),
      })
    }
  }
  return arrivals
}

function madeUp(source: string, spec: SourceSpec<unknown, unknown>, random: Prng): string[] {
  if (spec.value.name !== 'text') {
    throw new PawlError(
      'COMMAND_INVALID',
      `source ${source} reads ${spec.value.name}: give its input to the simulation`,
      { source },
    )
  }
  return Array.from({ length: 60 }, () => Array.from({ length: 1 + random.int(4) }, () => random.pick(words)).join(' '))
}

function encode(spec: SourceSpec<unknown, unknown>, value: unknown, timestampMs: number): LogRecord {
  const given: InputRecord = isRecord(value) ? value : { value }
  const key = given.key === undefined || given.key === null ? null : spec.key.encode(given.key)
  const content = given.raw ?? (given.value === null ? null : spec.value.encode(given.value))
  return { key, value: content, timestampMs: given.timestampMs ?? timestampMs }
}

function isRecord(value: unknown): value is InputRecord {
  return typeof value === 'object' && value !== null && recordBrand in value
}
