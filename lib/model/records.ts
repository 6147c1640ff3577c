/**
 * Records as the engine moves them: in columns over one buffer, not as objects.
 *
 * A log source hands over `LogBatch`es. Numbers are plain (a batch is small and relative to its base offset);
 * the absolute offset is exact as `baseOffset + BigInt(offsetDeltas[i])`.
 */

/** A run of records of one partition, in offset order, holes allowed. Only the first `count` entries are valid. */
export interface LogBatch {
  readonly partition: number
  readonly baseOffset: bigint
  readonly count: number
  /** Offset minus `baseOffset`. */
  readonly offsetDeltas: Int32Array
  /** Milliseconds since the Unix epoch. */
  readonly timestamps: Float64Array
  /** What the positions below point into. Valid until the next batch is asked for. */
  readonly bytes: Buffer
  /** Position of the key, -1 for a null key. */
  readonly keyStarts: Int32Array
  readonly keyEnds: Int32Array
  /** Position of the value, -1 for a null value (tombstone); an empty value has start = end. */
  readonly valueStarts: Int32Array
  readonly valueEnds: Int32Array
  /** Position of the record's header count (a Kafka varint, then the headers); -1 when there are none. */
  readonly headerStarts: Int32Array
}

/** A header as users see it. */
export type Header = readonly [name: string, value: Uint8Array | null]

/** One record as tools and tests append it to a log. */
export interface LogRecord {
  readonly key: Uint8Array | string | null
  readonly value: Uint8Array | string | null
  readonly timestampMs: number
  readonly headers?: readonly Header[]
}
