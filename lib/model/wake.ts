/**
 * What wakes a deployed pipeline, read from whatever a function was invoked with.
 *
 * An event is a doorbell with hints. It comes at least once, in any order, may overlap another and may be forged:
 * nothing here throws, and what is not understood is a bare ring. Shapes: a batch of an event source mapping for MSK
 * or self-managed Kafka (`records` by `topic-partition`), a scheduled event, and the status change of an execution.
 */

/** Offsets that an event speaks of, as `topic/partition` to the offset after its last record. */
export type HintedEnds = ReadonlyMap<
  string,
  { readonly topic: string; readonly partition: number; readonly end: bigint }
>

/** Why the trigger was called. */
export type Wake =
  /** A mapping read records. */
  | { readonly wake: 'records'; readonly ends: HintedEnds }
  /** The schedule: looks, and rings only when there is something to do. */
  | { readonly wake: 'tick' }
  /** An execution ended other than by its own will. */
  | { readonly wake: 'death'; readonly place: string }
  /** Anything else, such as a person who invokes the function; with `resume: true` in the event to lift a park. */
  | { readonly wake: 'ring'; readonly resume?: boolean }

/** Understands an event of any shape. */
export function wakeOf(event: unknown): Wake {
  const { eventSource, records, source, 'detail-type': type, detail, resume } = fieldsOf(event)
  if (eventSource === 'aws:kafka' || eventSource === 'SelfManagedKafka') return wakeOfRecords(records)
  if (source === 'aws.states' && type === 'Step Functions Execution Status Change') {
    const { executionArn } = fieldsOf(detail)
    return typeof executionArn === 'string' ? { wake: 'death', place: executionArn } : { wake: 'ring' }
  }
  return source === 'aws.events' && type === 'Scheduled Event' ? { wake: 'tick' } : ringOf(resume)
}

function ringOf(resume: unknown): Wake {
  return resume === true ? { wake: 'ring', resume } : { wake: 'ring' }
}

/** A batch of which any part is not understood says nothing: a bare ring loses nothing. */
function wakeOfRecords(records: unknown): Wake {
  const ends = new Map<string, { topic: string; partition: number; end: bigint }>()
  for (const batch of Object.values(fieldsOf(records))) {
    if (!Array.isArray(batch)) return { wake: 'ring' }
    for (const record of batch) {
      const { topic, partition, offset } = fieldsOf(record)
      if (typeof topic !== 'string' || !isCount(partition) || !isCount(offset)) return { wake: 'ring' }
      const name = `${topic}/${partition}`
      const end = BigInt(offset) + 1n
      if (end > (ends.get(name)?.end ?? 0n)) ends.set(name, { topic, partition, end })
    }
  }
  return ends.size === 0 ? { wake: 'ring' } : { wake: 'records', ends }
}

/** Beyond 2^53 JSON numbers are not exact, and an offset that is not exact is no hint. */
function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}
