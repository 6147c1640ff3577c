/**
 * Rows as JSON lines that a person can read: `{"key":…,"value":…,"timestamp":…}`.
 *
 * Text stands as a string, JSON as JSON, bytes as base64, a missing key or a tombstone as null. With a route the
 * row's `topic` is there, with headers `headers` as pairs of name and base64. Members always come in this order.
 */
import type { Serde } from '../../model/serde.ts'
import { type Content, encodeKey, encodeValue, type RowSpec, routeOf, rowHeaders } from '../shared/row-encoding.ts'

/** Makes the line of a row, its newline included, and tells the encoded key to `keyed`. */
export type LineEncoder = (
  key: unknown,
  value: unknown,
  timestampMs: number,
  keyed: (content: Content) => void,
) => string

/** The encoder for a spec. It throws what serdes, route and headers throw. */
export function lineEncoder(spec: RowSpec): LineEncoder {
  const showKey = showing(spec.key)
  const showValue = showing(spec.value)
  return (key, value, timestampMs, keyed) => {
    const keyContent = encodeKey(spec.key, key)
    const shown = `{"key":${showKey(keyContent)},"value":${showValue(encodeValue(spec.value, value))}`
    const topic = spec.route === null ? '' : `,"topic":${JSON.stringify(routeOf(spec, key, value))}`
    const line = `${shown},"timestamp":${timestampMs}${topic}${headerMember(spec, key, value)}}\n`
    keyed(keyContent)
    return line
  }
}

function showing(serde: Serde<unknown>): (content: Content) => string {
  const isJson = /^(?:nullable\()*json\b/.test(serde.name)
  return (content) => {
    if (content === null) return 'null'
    if (typeof content !== 'string') return `"${base64(content)}"`
    return isJson ? content : JSON.stringify(content)
  }
}

function headerMember(spec: RowSpec, key: unknown, value: unknown): string {
  const headers = rowHeaders(spec, key, value)
  if (headers === null || headers.length === 0) return ''
  return `,"headers":${JSON.stringify(headers.map(([name, header]) => [name, header === null ? null : base64(header)]))}`
}

const base64 = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64')
