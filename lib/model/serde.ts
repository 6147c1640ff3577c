/**
 * Serdes: how keys and values become bytes and come back.
 *
 * `decode` reads a slice of the batch in place, `encode` may return a string, which the writers encode straight
 * into their batch: no buffer per record either way. A null on the wire is a tombstone and never reaches
 * `decode` unless the serde is wrapped in `nullable`.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { PawlError } from './errors.ts'

export interface Serde<T> {
  /** Stands in the topology; a change of it is a change of the pipeline. */
  readonly name: string
  /** True when `decode` is to be called for null as well, giving null. */
  readonly nullable?: boolean
  encode(value: T): string | Uint8Array | null
  /**
   * Writes the bytes of what `encode` gives into a batch, from `at`, and answers with their end; -1 leaves the value to
   * `encode`, as when there is no room. What it has written by then does not matter.
   */
  write?(value: T, into: Buffer, at: number): number
  decode(bytes: Buffer, start: number, end: number): T
  /** What `decode` returns shares no memory with the batch, so that the batch's may be used again. */
  readonly copies?: true
}

/** UTF-8 text. */
export function text(): Serde<string> {
  return {
    name: 'text',
    encode: (value) => value,
    decode: decodeText,
    copies: true,
  }
}

/** Bytes as they are; `decode` copies, so that a value outlives its batch. */
export function bytes(): Serde<Uint8Array> {
  return {
    name: 'bytes',
    encode: (value) => value,
    decode: copied,
    copies: true,
  }
}

/**
 * JSON. With a Standard Schema (zod, valibot, …) each decoded value is validated and takes the schema's output
 * type. Throws what `JSON.parse` or the schema reports; the engine turns it into a rejected record.
 */
export function json<T = unknown>(): Serde<T>
export function json<S extends StandardSchemaV1>(schema: S): Serde<StandardSchemaV1.InferOutput<S>>
export function json(schema?: StandardSchemaV1): Serde<unknown> {
  const parse = (source: Buffer, start: number, end: number): unknown => JSON.parse(decodeText(source, start, end))
  return {
    name: 'json',
    encode: jsonText,
    decode: schema ? (source, start, end) => validated(schema, parse(source, start, end)) : parse,
    copies: true,
  }
}

/** Lets null through: a tombstone arrives as `null`, and `null` is written as a tombstone. */
export function nullable<T>(inner: Serde<T>): Serde<T | null> {
  return {
    name: `nullable(${inner.name})`,
    nullable: true,
    ...(inner.copies ? { copies: inner.copies } : {}),
    encode: (value) => (value === null ? null : inner.encode(value)),
    ...(inner.write
      ? { write: (value: T | null, into: Buffer, at: number) => (value === null ? -1 : inner.write!(value, into, at)) }
      : {}),
    decode: (source, start, end) => (start < 0 ? null : inner.decode(source, start, end)),
  }
}

/** What `Buffer.toString` calls when it has looked at its arguments. */
interface TextSlices {
  utf8Slice(start: number, end: number): string
}

/** Up to here, putting characters together is faster than a call into the runtime. */
const charactersMax = 6
const characters = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code))

function decodeText(source: Buffer, start: number, end: number): string {
  const slices = source as unknown as TextSlices
  if (end - start > charactersMax) return slices.utf8Slice(start, end)
  let decoded = ''
  for (let at = start; at < end; at++) {
    const byte = source[at]
    if (byte > 0x7f) return slices.utf8Slice(start, end)
    decoded += characters[byte]
  }
  return decoded
}

const slabBytes = 16 * 1024
let slab = new Uint8Array(slabBytes)
let slabUsed = 0

/** Small copies share slabs: a buffer of its own for each would cost ten times as much. */
function copied(source: Buffer, start: number, end: number): Uint8Array {
  const length = end - start
  const copy = length > slabBytes / 8 ? new Uint8Array(length) : slice(length)
  source.copy(copy, 0, start, end)
  return copy
}

function slice(length: number): Uint8Array {
  if (slabUsed + length > slabBytes) {
    slab = new Uint8Array(slabBytes)
    slabUsed = 0
  }
  slabUsed += length
  return new Uint8Array(slab.buffer, slabUsed - length, length)
}

function jsonText(value: unknown): string {
  const encoded: string | undefined = JSON.stringify(value)
  if (encoded === undefined) throw new TypeError(`a ${typeof value} has no form in JSON`)
  return encoded
}

function validated(schema: StandardSchemaV1, value: unknown): unknown {
  const result = schema['~standard'].validate(value)
  if (result instanceof Promise) throw new PawlError('PIPELINE_INVALID', 'the schema validates asynchronously')
  if (result.issues) {
    const issue = result.issues[0]
    const path = issue.path?.map((part) => (typeof part === 'object' ? String(part.key) : String(part))).join('.')
    throw new Error(path ? `${path}: ${issue.message}` : issue.message)
  }
  return result.value
}
