/**
 * How a row's key, value, target and headers are encoded for a sink, the same in every sink.
 *
 * A row without a key stays without one, whatever the serde makes of null (JSON would write "null"). A value that
 * encodes to nothing (`undefined`) is refused here, where the row can still be rejected alone. Nothing is
 * buffered, so whatever a serde, route or header function throws leaves no trace of the row.
 */
import { PawlError } from '../../model/errors.ts'
import type { Header } from '../../model/records.ts'
import type { Serde } from '../../model/serde.ts'
import type { TopicSpec } from '../../ports/spec.ts'

/** An encoded key or value; null for none. */
export type Content = string | Uint8Array | null

/** What of a topic spec decides how rows are encoded. */
export type RowSpec = Pick<TopicSpec<unknown, unknown>, 'topic' | 'key' | 'value' | 'route' | 'headers'>

/** The encoded key; null for a row without one. */
export function encodeKey(serde: Serde<unknown>, key: unknown): Content {
  return key === null || key === undefined ? null : encoded(serde, key, 'key')
}

/** The encoded value; null is a tombstone. */
export function encodeValue(serde: Serde<unknown>, value: unknown): Content {
  return encoded(serde, value, 'value')
}

/** The topic of a row. Throws `ENCODE_FAILED` when the route leads to a topic that is not listed. */
export function routeOf(spec: RowSpec, key: unknown, value: unknown): string {
  if (spec.route === null) return spec.topic
  const topic = spec.route.choose(value, key)
  if (spec.route.topics.includes(topic)) return topic
  throw new PawlError('ENCODE_FAILED', `the route of ${spec.topic} leads to unlisted topic ${topic}`, { topic })
}

/** Headers of a row; null when the spec gives none. */
export function rowHeaders(spec: RowSpec, key: unknown, value: unknown): readonly Header[] | null {
  return spec.headers === null ? null : spec.headers(value, key)
}

function encoded(serde: Serde<unknown>, value: unknown, part: 'key' | 'value'): Content {
  const content: unknown = serde.encode(value)
  if (content === null || typeof content === 'string' || content instanceof Uint8Array) return content
  throw new PawlError('ENCODE_FAILED', `serde ${serde.name} makes ${typeof content} of a ${part}`, { part })
}
