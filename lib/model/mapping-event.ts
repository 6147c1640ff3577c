/**
 * The records that an event source mapping hands over, read out of its event.
 *
 * Unlike a hint for waking, nothing here may be guessed: what is not understood is refused, and the mapping sends it
 * again. Shape: AWS Lambda developer guide, "Using Lambda with Amazon MSK": keys and values in base64, absent for
 * null; each header by its name, its value as the numbers of its bytes, which Java counts from -128.
 */
import { PawlError } from './errors.ts'
import type { Header, LogRecord } from './records.ts'

/** A record at its place in the log. */
export interface PlacedRecord extends LogRecord {
  readonly offset: bigint
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: readonly Header[]
}

/** What an event has of one partition: each offset once, ascending. */
export interface PartitionBatch {
  readonly topic: string
  readonly partition: number
  readonly records: readonly PlacedRecord[]
}

type Fields = Readonly<Record<string, unknown>>

/** Batches by partition; null for an event that no mapping of Kafka makes. Throws `INTAKE_EVENT_INVALID`. */
export function batchesOf(event: unknown): readonly PartitionBatch[] | null {
  const { eventSource, records } = fieldsOf(event)
  if (eventSource !== 'aws:kafka' && eventSource !== 'SelfManagedKafka') return null
  const batches = new Map<string, { topic: string; partition: number; byOffset: Map<bigint, [string, Fields]> }>()
  for (const [name, given] of Object.entries(fieldsOf(records))) {
    if (!Array.isArray(given)) throw invalid(`${name} is no list of records`)
    for (const record of given) {
      const fields = fieldsOf(record)
      const { topic, partition, offset } = placeOf(fields, name)
      const key = `${topic}/${partition}`
      const batch = batches.get(key) ?? { topic, partition, byOffset: new Map() }
      batches.set(key, batch)
      const text = JSON.stringify([fields.timestamp, fields.key, fields.value, fields.headers])
      const before = batch.byOffset.get(offset)
      if (before !== undefined && before[0] !== text) throw invalid(`offset ${offset} of ${key} stands there twice`)
      batch.byOffset.set(offset, [text, fields])
    }
  }
  return [...batches.values()].map(({ topic, partition, byOffset }) => {
    const places = [...byOffset.keys()].sort((a, b) => (a < b ? -1 : 1))
    const placed = places.map((offset) => recordOf(byOffset.get(offset)![1], offset, `${topic}/${partition}`))
    return { topic, partition, records: placed }
  })
}

function placeOf({ topic, partition, offset }: Fields, name: string) {
  if (typeof topic !== 'string' || !isCount(partition)) throw invalid(`a record of ${name} has no topic or partition`)
  // JSON numbers beyond 2^53 are not exact, and were rounded before they came here.
  if (!isCount(offset)) throw invalid(`a record of ${name} has offset ${JSON.stringify(offset)}, which is not exact`)
  return { topic, partition, offset: BigInt(offset) }
}

function recordOf({ timestamp, key, value, headers }: Fields, offset: bigint, name: string): PlacedRecord {
  const at = `offset ${offset} of ${name}`
  if (typeof timestamp !== 'number' || !Number.isSafeInteger(timestamp)) throw invalid(`${at} has no timestamp`)
  return {
    offset,
    timestampMs: timestamp,
    key: contentOf(key, `the key of ${at}`),
    value: contentOf(value, `the value of ${at}`),
    headers: headersOf(headers, at),
  }
}

/** Base64 as Java writes it, every character of which counts. */
function contentOf(content: unknown, of: string): Buffer | null {
  if (content === undefined || content === null) return null
  if (typeof content !== 'string' || !/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(content))
    throw invalid(`${of} is no base64`)
  return Buffer.from(content, 'base64')
}

function headersOf(headers: unknown, at: string): Header[] {
  if (headers === undefined || headers === null) return []
  if (!Array.isArray(headers)) throw invalid(`the headers of ${at} are no list`)
  return headers.flatMap((one) =>
    Object.entries(fieldsOf(one)).map(([name, bytes]): Header => {
      if (bytes === null) return [name, null]
      if (!Array.isArray(bytes) || !bytes.every(isByte)) throw invalid(`header ${name} of ${at} is no list of bytes`)
      return [name, Buffer.from(bytes)]
    }),
  )
}

const isByte = (byte: unknown) => Number.isInteger(byte) && (byte as number) >= -128 && (byte as number) <= 255

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

function invalid(fault: string): PawlError {
  return new PawlError('INTAKE_EVENT_INVALID', fault)
}
