/**
 * Names of keys, such that one script sees one slot of a cluster.
 *
 * A marker's key carries the hash tag of the keys beside it: what stands in the first braces of the key, or all of
 * it. Source: Redis cluster specification, "Hash tags".
 */
import { PawlError } from '../../model/errors.ts'
import type { Marker } from '../../model/manifest.ts'
import type { RedisType } from './script.ts'

/** Whose marker. */
export interface RedisLane {
  readonly stage: string
  readonly pipeline: string
  readonly sink: string
  readonly lane: number
}

/** What decides the slot of a key. */
export function hashTag(key: string): string {
  const open = key.indexOf('{')
  const close = key.indexOf('}', open + 1)
  return open >= 0 && close > open + 1 ? key.slice(open + 1, close) : key
}

/** True when all keys that begin with `prefix` lie in one slot. */
export function hasHashTag(prefix: string): boolean {
  return hashTag(prefix) !== prefix
}

/** The key of a lane's marker, in the slot of `key`. */
export function markerKey(key: string, { stage, pipeline, sink, lane }: RedisLane): string {
  return `pawl:{${hashTag(key)}}:${stage}:${pipeline}:${sink}:${lane}`
}

/** The hash of the rows that a lane refused, by id, beside its marker. */
export function refusedKey(key: string, lane: RedisLane): string {
  return `${markerKey(key, lane)}:refused`
}

/** A marker as it stands in Redis. */
export function markerText({ incarnation, epoch, hash }: Marker): string {
  return `${incarnation} ${epoch} ${hash}`
}

/** A marker from its text. Throws `MARKER_UNKNOWN` for what is none. */
export function parseMarker(text: string): Marker {
  const [incarnation, epoch, hash, ...rest] = text.split(' ')
  if (hash !== undefined && rest.length === 0 && /^\d+$/.test(epoch!)) {
    return { incarnation: incarnation!, epoch: Number(epoch), hash }
  }
  throw new PawlError('MARKER_UNKNOWN', `${JSON.stringify(text.slice(0, 100))} is no marker`)
}

/** Throws `PIPELINE_INVALID` for a key that cannot hold rows and markers in one slot. */
export function assertKey(key: string, type: RedisType, cluster: boolean): void {
  const refuse = (fault: string) => new PawlError('PIPELINE_INVALID', `redis: key ${JSON.stringify(key)}: ${fault}`)
  if (key === '') throw refuse('it is empty')
  if (!hasHashTag(key) && /[{}]/.test(key)) throw refuse('braces stand around a hash tag that is not empty')
  if (type === 'string' && cluster && !hasHashTag(key))
    throw refuse('in a cluster the prefix of many keys needs a hash tag, as in `{totals}:`')
}
