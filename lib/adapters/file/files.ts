/**
 * `files()`: the spec of the files sink.
 *
 * Plain data until a place opens it; see `sink.ts` for what it writes.
 */
import { join } from 'node:path'
import { PawlError } from '../../model/errors.ts'
import { type Serde, text } from '../../model/serde.ts'
import type { CustomSinkSpec } from '../../ports/spec.ts'
import { openFileSink } from './sink.ts'

/** What may be said of a files sink. */
export interface FilesOptions<K, V> {
  /** Where the sink's directory is made; default: `files/<pipeline>` in the directory of the embedded place. */
  readonly directory?: string
  /** Files an epoch, at most; 1 by default. */
  readonly lanes?: number
  /** Text by default. */
  readonly key?: Serde<K>
  readonly value: Serde<V>
  /** The only format so far: a JSON object a line. */
  readonly format?: 'jsonl'
}

/** One file of JSON lines an epoch and lane. Opening throws `PIPELINE_INVALID` when no directory is known. */
export function files<V, K = string>(options: FilesOptions<K, V>): CustomSinkSpec<K, V> {
  const key = (options.key ?? text()) as Serde<unknown>
  const value = options.value as Serde<unknown>
  return Object.freeze({
    kind: 'sink',
    type: 'files',
    guarantee: 'exactly-once',
    lanes: options.lanes ?? 1,
    async open(sink, { pipeline, directory: place }) {
      const directory = options.directory ?? (place === null ? null : join(place, 'files', pipeline))
      if (directory === null) throw new PawlError('PIPELINE_INVALID', `files sink ${sink} names no directory`, { sink })
      return openFileSink({
        sink,
        directory,
        within: place,
        spec: { topic: sink, key, value, route: null, headers: null },
      })
    },
  } satisfies CustomSinkSpec<K, V>)
}
