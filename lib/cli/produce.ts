/**
 * `pawl produce TOPIC`: appends lines to a log of the embedded place.
 *
 * Lines of stdin or of a file become values; with a separator, what stands before it is the key, and the partition
 * is the one that Kafka's clients choose. Lines without a key are dealt out evenly. What arrives slowly is appended
 * as it comes. An append is durable when it is counted; a command that was killed may have appended more than it
 * said, as with any producer.
 */
import { createReadStream, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileStore } from '../adapters/file/store.ts'
import { createSegmentLog, openSegmentLog, type SegmentLog } from '../adapters/segments/log.ts'
import { systemRandom } from '../adapters/system/random.ts'
import { isPawlError, PawlError } from '../model/errors.ts'
import { limits } from '../model/limits.ts'
import { partitionOf } from '../model/murmur2.ts'
import type { LogRecord } from '../model/records.ts'
import type { Store } from '../ports/store.ts'
import { directoryOf } from './open-directory.ts'
import { type Call, type Command, directoryOption, misused } from './parse-arguments.ts'
import { count, size } from './print-values.ts'
import { exitCodes } from './report-error.ts'

/** `pawl produce TOPIC`. */
export const produceCommand: Command = {
  name: 'produce',
  summary: 'append lines of stdin or a file to an embedded topic',
  positionals: ['TOPIC'],
  options: {
    ...directoryOption,
    partitions: { value: 'N', help: 'create the topic with N partitions when it is absent' },
    'key-separator': { value: 'C', help: 'what stands before the first C of a line is its key' },
    file: { value: 'FILE', help: 'read this file instead of stdin' },
  },
  examples: [
    'pawl produce lines --partitions 4 --file book.txt',
    "printf 'anna:3\\nbert:5\\n' | pawl produce orders --key-separator :",
    'tail -f access.log | pawl produce access',
  ],
  run: produce,
}

/** Appended at once, at most; less when lines come slowly. */
const appendBytes = 4 * 1024 * 1024
const appendRecords = 50_000
/** How long a line may wait for others before it is appended. */
const pauseMs = 100

async function produce({ output, positionals: [topic], options }: Call): Promise<number> {
  if (!/^[A-Za-z0-9._-]{1,249}$/.test(topic)) throw misused(produceCommand, `${JSON.stringify(topic)} is no topic name`)
  const partitions = options.number('partitions', 1)
  const separator = options.text('key-separator')
  if (separator === '') throw misused(produceCommand, '--key-separator is empty')
  const directory = directoryOf(options)
  const input = inputOf(options.text('file'))
  if (partitions !== undefined) mkdirSync(directory, { recursive: true })
  if (!existsSync(directory)) throw missing(topic, `${directory} does not exist`)
  const store = fileStore(join(directory, 'store'))
  try {
    const log = await open(store, topic, partitions)
    const appended = await appendLines(log, input, separator ?? null)
    output.record({ topic, records: appended.records, bytes: appended.bytes, partitions: appended.ends })
    const style = output.style()
    const ends = appended.ends.map(({ partition, end }) => `${partition}: ${count(style, end)}`).join(', ')
    output.print([
      `appended ${count(style, appended.records)} records, ${size(appended.bytes)}, to ${topic}; partitions now end at ${ends}`,
    ])
    return exitCodes.success
  } finally {
    await store.close()
  }
}

function inputOf(file: string | undefined): AsyncIterable<Buffer> {
  if (file === undefined) return process.stdin
  if (!existsSync(file)) throw misused(produceCommand, `there is no file ${file}`)
  return createReadStream(file, { highWaterMark: 1024 * 1024 })
}

async function open(store: Store, topic: string, partitions: number | undefined): Promise<SegmentLog> {
  const random = systemRandom()
  if (partitions === undefined) {
    return openSegmentLog(store, topic, random).catch((error: unknown) => {
      throw isPawlError(error) && error.code === 'TOPIC_MISSING' ? missing(topic, '--partitions N creates it') : error
    })
  }
  const log = await createSegmentLog(store, { topic, partitions, random })
  const found = (await log.bounds()).partitions.length
  if (found !== partitions)
    throw misused(produceCommand, `${topic} has ${found} partitions, not ${partitions}: leave --partitions out`)
  return log
}

function missing(topic: string, why: string): PawlError {
  return new PawlError('TOPIC_MISSING', `${topic}, ${why}`, { topic })
}

interface Appended {
  readonly records: number
  readonly bytes: number
  readonly ends: readonly { readonly partition: number; readonly end: string }[]
}

async function appendLines(log: SegmentLog, input: AsyncIterable<Buffer>, separator: string | null): Promise<Appended> {
  const pending = new PendingLines(log, await endsOf(log), separator)
  const chunks = linesOf(input)
  let due: Promise<null> | null = null
  for (let next = chunks.next(); ; ) {
    due = pending.records === 0 ? null : (due ?? pause(pauseMs, null))
    const chunk = await (due === null ? next : Promise.race([due, next]))
    if (chunk === null) {
      await pending.append()
      continue
    }
    if (chunk.done) break
    for (const line of chunk.value) pending.add(line)
    next = chunks.next()
    if (pending.bytes >= appendBytes || pending.records >= appendRecords) await pending.append()
  }
  await pending.append()
  const ends = (await endsOf(log)).map((end, partition) => ({ partition, end: end.toString() }))
  return { records: pending.appendedRecords, bytes: pending.appendedBytes, ends }
}

/** Lines that wait for the next append, by partition. */
class PendingLines {
  records = 0
  bytes = 0
  appendedRecords = 0
  appendedBytes = 0
  #batches = new Map<number, LogRecord[]>()
  readonly #log: SegmentLog
  readonly #separator: string | null
  readonly #partitionOf: (record: LogRecord) => number

  constructor(log: SegmentLog, ends: readonly bigint[], separator: string | null) {
    this.#log = log
    this.#separator = separator
    this.#partitionOf = dealer(ends)
  }

  add(line: string): void {
    const record = recordOf(line, this.#separator, this.appendedRecords + this.records)
    const partition = this.#partitionOf(record)
    const batch = this.#batches.get(partition)
    if (batch) batch.push(record)
    else this.#batches.set(partition, [record])
    this.records++
    this.bytes += Buffer.byteLength(line)
  }

  async append(): Promise<void> {
    await Promise.all([...this.#batches].map(([partition, batch]) => this.#log.append(partition, batch)))
    this.appendedRecords += this.records
    this.appendedBytes += this.bytes
    this.#batches = new Map()
    this.records = 0
    this.bytes = 0
  }
}

async function endsOf(log: SegmentLog): Promise<bigint[]> {
  return (await log.bounds()).partitions.map(({ end }) => end)
}

/** Keys go where Kafka's clients send them; what has none goes round, beginning with the shortest partition. */
function dealer(ends: readonly bigint[]): (record: LogRecord) => number {
  let next = ends.reduce((shortest, end, partition) => (end < ends[shortest] ? partition : shortest), 0)
  return ({ key }) => {
    if (key !== null) return partitionOf(Buffer.from(key), ends.length)
    const partition = next
    next = (next + 1) % ends.length
    return partition
  }
}

function recordOf(line: string, separator: string | null, index: number): LogRecord {
  const timestampMs = Date.now()
  const bytes = Buffer.byteLength(line)
  if (bytes > limits.recordBytesMax) {
    const fault = `line ${index + 1} has ${bytes} bytes, ${limits.recordBytesMax} are allowed`
    throw new PawlError('RECORD_TOO_LARGE', fault, { line: index + 1, bytes })
  }
  const at = separator === null ? -1 : line.indexOf(separator)
  if (separator === null || at < 0) return { key: null, value: line, timestampMs }
  return { key: line.slice(0, at), value: line.slice(at + separator.length), timestampMs }
}

/** Whole lines, by chunk of input. The last one needs no newline. */
async function* linesOf(input: AsyncIterable<Buffer>): AsyncGenerator<string[], void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of input) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = parts.pop() as string
    // A line without end is refused before it fills the memory.
    if (rest.length > limits.recordBytesMax) parts.push(rest)
    yield parts.map(withoutReturn)
  }
  if (rest !== '') yield [withoutReturn(rest)]
}

function withoutReturn(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line
}
