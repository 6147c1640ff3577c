/**
 * What happens to a record that cannot be processed: fail, skip with record, or dead letter.
 *
 * Apart because every operator ends here. A rejected record names source, topic, partition, offset and operator;
 * its bytes are kept, cut to a limit, where they are at hand (before the first shuffle of an unfused task). What fails at the end of
 * an epoch belongs to no single record: then partition and offset are −1 and the key is kept.
 */
import { assert } from '../model/assert.ts'
import { type ErrorCode, type ErrorDetails, isPawlError, PawlError } from '../model/errors.ts'
import { limits } from '../model/limits.ts'
import type { RejectedRecord } from '../model/manifest.ts'
import type { ErrorPolicy } from '../model/settings.ts'
import type { StageWriter } from '../ports/sink.ts'
import { KeyUndecodable, type TaskContext } from './context.ts'

/** Codes that name a record. */
export type RejectionCode = Extract<
  ErrorCode,
  'DECODE_FAILED' | 'OPERATOR_FAILED' | 'ENCODE_FAILED' | 'RECORD_TOO_LARGE'
>

/** Where rejected records of one task go. */
export class Rejections {
  readonly records: RejectedRecord[] = []
  count = 0
  deadLetters = 0
  readonly policy: ErrorPolicy
  readonly #context: TaskContext
  #keptBytes = 0
  readonly #deadLetter: { readonly id: string; readonly writer: StageWriter } | null

  constructor(
    policy: ErrorPolicy,
    context: TaskContext,
    deadLetter: { readonly id: string; readonly writer: StageWriter } | null,
  ) {
    this.policy = policy
    this.#context = context
    this.#deadLetter = deadLetter
  }

  /** Rejects the record at hand. Returns when the policy lets the task go on, else throws naming the record. */
  reject(code: RejectionCode, operator: string, error: unknown): void {
    if (error instanceof KeyUndecodable)
      this.#reject('DECODE_FAILED', this.#context.origin?.source ?? operator, error.cause)
    else this.#reject(code, operator, error)
  }

  #reject(code: RejectionCode, operator: string, error: unknown): void {
    const record = this.#recordOf(operator, error)
    if (this.policy === 'fail') throw failure(code, record, error, this.#context.keyValue)
    this.count++
    if (this.policy === 'skip') this.#skip(record)
    else this.bury(record)
  }

  #skip(record: RejectedRecord): void {
    this.#keptBytes += (record.key?.length ?? 0) + (record.value?.length ?? 0)
    if (this.records.length === limits.rejectedPerEpochMax || this.#keptBytes > limits.rejectedPerTaskBytesMax)
      throw new PawlError('EPOCH_TOO_LARGE', `${this.count} records are rejected, ${this.#keptBytes} bytes`, {
        operator: record.operator,
      })
    this.records.push(record)
  }

  /** Adds a dead letter. Asserts that there is a sink for them. */
  bury(record: RejectedRecord): void {
    assert(this.#deadLetter, 'a dead letter has a sink')
    const { id, writer } = this.#deadLetter
    try {
      writer.add(null, record, record.timestampMs, Math.max(0, record.partition))
    } catch (error) {
      if (isPawlError(error) && error.kind !== 'Invalid') throw error
      throw failure('ENCODE_FAILED', { ...record, operator: id }, error, null)
    }
    this.deadLetters++
  }

  #recordOf(operator: string, error: unknown): RejectedRecord {
    const { origin, topic, partition, offset, timestampMs } = this.#context
    return {
      source: origin?.source ?? '',
      topic,
      partition,
      offset: offset.toString(),
      timestampMs,
      operator,
      error: errorOf(error),
      ...this.#bytesOf(),
    }
  }

  #bytesOf(): Pick<RejectedRecord, 'key' | 'value' | 'cutBytes'> {
    const { origin, batch, index, keyValue } = this.#context
    if (batch === null) {
      const key = origin === null && keyValue !== null ? Buffer.from(String(keyValue)) : null
      return { key: key?.toString('base64') ?? null, value: null, cutBytes: 0 }
    }
    const key = cut(batch.bytes, batch.keyStarts[index], batch.keyEnds[index], limits.rejectedBytesMax)
    const left = limits.rejectedBytesMax - key.keptBytes
    const value = cut(batch.bytes, batch.valueStarts[index], batch.valueEnds[index], left)
    return { key: key.base64, value: value.base64, cutBytes: key.cutBytes + value.cutBytes }
  }
}

/** Base64 of at most `bytesMax` bytes; null when the position is that of a null. */
function cut(bytes: Buffer, start: number, end: number, bytesMax: number) {
  if (start < 0) return { base64: null, keptBytes: 0, cutBytes: 0 }
  const keptBytes = Math.min(end - start, bytesMax)
  return { base64: bytes.toString('base64', start, start + keptBytes), keptBytes, cutBytes: end - start - keptBytes }
}

function errorOf(error: unknown): RejectedRecord['error'] {
  const { name, message } = error instanceof Error ? error : { name: 'Error', message: String(error) }
  const { errorCharsMax } = limits
  return { name, message: message.length > errorCharsMax ? `${message.slice(0, errorCharsMax)}…` : message }
}

function failure(code: RejectionCode, record: RejectedRecord, error: unknown, key: unknown): PawlError {
  const { source, topic, partition, offset, operator } = record
  const { name, message } = record.error
  const at = source === '' ? `the result for key ${JSON.stringify(key)}` : `record ${topic}/${partition}@${offset}`
  const details: ErrorDetails =
    source === ''
      ? { operator, key: String(key), error: `${name}: ${message}` }
      : { source, topic, partition, offset, operator, error: `${name}: ${message}` }
  return new PawlError(code, `${operator} on ${at}: ${name}: ${message}`, details, error)
}
