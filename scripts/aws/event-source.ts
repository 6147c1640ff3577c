/**
 * Reads Kafka as an event source mapping of Lambda does, and hands each batch over as the documented event.
 *
 * At least once: offsets of the mapping's own group are committed after the function has answered without an error,
 * and until then a batch is sent again and again. A batch closes when its window is over, or it has as many records
 * or bytes as a mapping may send. Sources: AWS Lambda developer guide, "Using Lambda with Amazon MSK" (shape of the
 * event, batching, 6 MB) and "Polling and stream starting positions".
 */
import { setTimeout as sleep } from 'node:timers/promises'
import kafkajs, { type EachBatchPayload, type KafkaMessage } from 'kafkajs'

/** One event source mapping, as far as a poller needs it. */
export interface Mapping {
  /** host:port, separated by commas. */
  readonly bootstrapServers: string
  readonly topics: readonly string[]
  /** Whose offsets say where to go on. */
  readonly group: string
  readonly startingPosition: 'LATEST' | 'TRIM_HORIZON'
  /** Records of one event, at most. */
  readonly batchSize: number
  readonly batchWindowMs: number
  /** Of the MSK cluster that the events name. */
  readonly eventSourceArn: string
}

/** A record as a function gets it. */
export interface KafkaEventRecord {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly timestamp: number
  readonly timestampType: 'CREATE_TIME' | 'LOG_APPEND_TIME'
  /** Base64; absent for a record without a key. */
  readonly key?: string
  /** Base64; absent for a tombstone. */
  readonly value?: string
  /** Each header by its name, its value as the numbers of its bytes. */
  readonly headers: readonly Readonly<Record<string, readonly number[]>>[]
}

/** An event of a mapping on MSK. */
export interface KafkaEvent {
  readonly eventSource: 'aws:kafka'
  readonly eventSourceArn: string
  readonly bootstrapServers: string
  /** By `topic-partition`. */
  readonly records: Readonly<Record<string, readonly KafkaEventRecord[]>>
}

/** Calls the function; rejects when it failed or could not be called, and is called again then. */
export type Invoke = (event: KafkaEvent) => Promise<void>

/** A mapping at work. */
export interface Polling {
  /** Leaves the group. A batch under way is given up and comes again. */
  stop(): Promise<void>
}

/** A request of a function may have 6 MB; a mapping leaves room for what is around the records. */
const eventBytesMax = 5_900_000
const retryMsMax = 5_000

/** Reads until it is stopped; a broker that goes is waited for. `report` hears of what went wrong, in a sentence. */
export function pollMapping(mapping: Mapping, invoke: Invoke, report: (fault: string) => void): Polling {
  const stopping = new AbortController()
  const running = keepReading(mapping, invoke, report, stopping.signal)
  return {
    async stop() {
      stopping.abort()
      await running
    },
  }
}

async function keepReading(
  mapping: Mapping,
  invoke: Invoke,
  report: (fault: string) => void,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await readOnce(mapping, invoke, report, signal)
    } catch (error) {
      report(`${mapping.topics.join(', ')} cannot be read: ${sentence(error)}`)
      await pause(1_000, signal)
    }
  }
}

/** A consumer from its start to its end. Rejects when it cannot go on by itself. */
async function readOnce(
  mapping: Mapping,
  invoke: Invoke,
  report: (fault: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const kafka = new kafkajs.Kafka({
    brokers: mapping.bootstrapServers.split(',').map((server) => server.trim()),
    logLevel: kafkajs.logLevel.NOTHING,
    retry: { initialRetryTime: 50, retries: 10, maxRetryTime: 1_000 },
  })
  const consumer = kafka.consumer({ groupId: mapping.group, maxWaitTimeInMs: 200, allowAutoTopicCreation: false })
  const gathering = gather(mapping, invoke, report, signal)
  const crashed = new Promise<never>((_, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
  })
  crashed.catch(() => {})
  const stopped = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
  try {
    await consumer.connect()
    await consumer.subscribe({
      topics: [...mapping.topics],
      fromBeginning: mapping.startingPosition === 'TRIM_HORIZON',
    })
    await consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      // Partitions wait for each other's window side by side.
      partitionsConsumedConcurrently: 100,
      eachBatch: (payload) => take(payload, mapping.batchSize, gathering),
    })
    await Promise.race([crashed, stopped])
  } finally {
    await consumer.disconnect().catch(() => {})
  }
}

/** Hands over the records of one partition, in events of the mapping's size, and commits what was answered. */
async function take(payload: EachBatchPayload, batchSize: number, gathering: Gathering): Promise<void> {
  const { batch, resolveOffset, heartbeat, isRunning, isStale } = payload
  const { topic, partition, messages } = batch
  for (let at = 0; at < messages.length && isRunning() && !isStale(); at += batchSize) {
    const records = messages.slice(at, at + batchSize).map((message) => recordOf(topic, partition, message))
    const beating = setInterval(() => heartbeat().catch(() => {}), 3_000)
    const isTaken = await gathering(records).finally(() => clearInterval(beating))
    if (!isTaken) return
    const last = messages[Math.min(at + batchSize, messages.length) - 1]!
    resolveOffset(last.offset)
    await payload.commitOffsetsIfNecessary({
      topics: [{ topic, partitions: [{ partition, offset: String(BigInt(last.offset) + 1n) }] }],
    })
  }
}

/** Adds records to the event that is being gathered; true once the function has taken them, false at the end. */
type Gathering = (records: readonly KafkaEventRecord[]) => Promise<boolean>

interface Gathered {
  readonly records: KafkaEventRecord[]
  bytes: number
  readonly taken: Promise<boolean>
  readonly close: () => void
}

function gather(mapping: Mapping, invoke: Invoke, report: (fault: string) => void, signal: AbortSignal): Gathering {
  let open: Gathered | null = null
  let before: Promise<unknown> = Promise.resolve()
  const begin = (): Gathered => {
    const closing = new AbortController()
    const records: KafkaEventRecord[] = []
    const earlier = before
    const sent = pause(mapping.batchWindowMs, AbortSignal.any([signal, closing.signal])).then(async () => {
      if (open?.records === records) open = null
      // One event at a time: a function that is slow is not called twice.
      await earlier
      return deliver(eventOf(mapping, records), invoke, report, signal)
    })
    before = sent
    return { records, bytes: 0, taken: sent, close: () => closing.abort() }
  }
  return (records) => {
    const bytes = records.reduce((sum, { key = '', value = '' }) => sum + key.length + value.length + 200, 0)
    if (
      open !== null &&
      (open.records.length + records.length > mapping.batchSize || open.bytes + bytes > eventBytesMax)
    ) {
      open.close()
      open = null
    }
    open ??= begin()
    const event = open
    event.records.push(...records)
    event.bytes += bytes
    if (event.records.length >= mapping.batchSize || event.bytes >= eventBytesMax) event.close()
    return event.taken
  }
}

/** Sends until it is taken. False when the poller ends before. */
async function deliver(
  event: KafkaEvent,
  invoke: Invoke,
  report: (fault: string) => void,
  signal: AbortSignal,
): Promise<boolean> {
  for (let tries = 1; !signal.aborted; tries++) {
    try {
      await invoke(event)
      return true
    } catch (error) {
      if (!signal.aborted) report(`the function does not take a batch, which is sent again: ${sentence(error)}`)
      await pause(Math.min(retryMsMax, 100 * 2 ** Math.min(tries, 10)), signal)
    }
  }
  return false
}

/** The event of some records. */
export function eventOf(mapping: Mapping, records: readonly KafkaEventRecord[]): KafkaEvent {
  const byPartition: Record<string, KafkaEventRecord[]> = {}
  for (const record of records) {
    const name = `${record.topic}-${record.partition}`
    byPartition[name] ??= []
    byPartition[name].push(record)
  }
  const { eventSourceArn, bootstrapServers } = mapping
  return { eventSource: 'aws:kafka', eventSourceArn, bootstrapServers, records: byPartition }
}

/** A record as it stands in an event. */
export function recordOf(
  topic: string,
  partition: number,
  message: Pick<KafkaMessage, 'offset' | 'timestamp' | 'key' | 'value' | 'headers'>,
): KafkaEventRecord {
  const { offset, timestamp, key, value, headers = {} } = message
  return {
    topic,
    partition,
    offset: Number(offset),
    timestamp: Number(timestamp),
    timestampType: 'CREATE_TIME',
    ...(key === null ? {} : { key: key.toString('base64') }),
    ...(value === null ? {} : { value: value.toString('base64') }),
    headers: Object.entries(headers).flatMap(([name, values]) =>
      [values ?? []].flat().map((one) => ({ [name]: [...Buffer.from(one)] })),
    ),
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {})
}

function sentence(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n')[0]!
}
