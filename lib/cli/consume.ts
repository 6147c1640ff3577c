/**
 * `pawl consume NAME`: prints what a files sink shows, or what an embedded topic holds.
 *
 * A sink's visible files are read in the order of their epochs; only whole committed epochs are ever visible. A
 * topic is read partition by partition up to its present end.
 */
import { createReadStream, existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileStore } from '../adapters/file/store.ts'
import { openSegmentLog } from '../adapters/segments/log.ts'
import { systemRandom } from '../adapters/system/random.ts'
import { PawlError } from '../model/errors.ts'
import { directoryOf } from './open-directory.ts'
import { type Call, type Command, directoryOption, type Options } from './parse-arguments.ts'
import { exitCodes } from './report-error.ts'
import { embeddedTopics } from './report-status.ts'

/** `pawl consume SINK|TOPIC`. */
export const consumeCommand: Command = {
  name: 'consume',
  summary: 'print the visible rows of a files sink, or the records of an embedded topic',
  positionals: ['SINK|TOPIC'],
  options: {
    ...directoryOption,
    pipeline: { value: 'ID', help: 'the pipeline of the sink, where several have one of that name' },
    max: { value: 'N', help: 'stop after N rows' },
    keys: { help: 'print keys before values, with a tab between' },
  },
  examples: ['pawl consume counts', 'pawl consume counts --keys | sort', 'pawl consume lines --max 3 --json'],
  run: consume,
}

/** A write for each would take longer than everything else. */
const linesAtOnce = 1000

interface Row {
  readonly key: unknown
  readonly value: unknown
  /** The row with everything else that is known of it. */
  readonly whole: Readonly<Record<string, unknown>>
}

async function consume({ output, positionals: [name], options }: Call): Promise<number> {
  const directory = directoryOf(options)
  const max = options.number('max', 0) ?? Number.POSITIVE_INFINITY
  const keys = options.flag('keys')
  const sink = sinkDirectory(directory, name, options)
  const lines: string[] = []
  let rows = 0
  for await (const row of sink === null ? topicRows(directory, name) : sinkRows(sink)) {
    if (rows++ >= max) break
    lines.push(output.json ? JSON.stringify(row.whole) : lineOf(row, keys))
    if (lines.length < linesAtOnce) continue
    output.raw(`${lines.splice(0).join('\n')}\n`)
    await output.drain()
  }
  if (lines.length > 0) output.raw(`${lines.join('\n')}\n`)
  return exitCodes.success
}

function lineOf({ key, value }: Row, keys: boolean): string {
  return keys ? `${shown(key)}\t${shown(value)}` : shown(value)
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function sinkDirectory(directory: string, sink: string, options: Options): string | null {
  const files = join(directory, 'files')
  const pipelines = existsSync(files) ? readdirSync(files) : []
  const wanted = options.text('pipeline')
  const found = pipelines.filter((id) => (wanted ?? id) === id && existsSync(join(files, id, sink)))
  if (found.length > 1) {
    throw new PawlError(
      'COMMAND_INVALID',
      `several pipelines have a sink ${sink}: add --pipeline ${found.join(' or ')}`,
    )
  }
  return found.length === 0 ? null : join(files, found[0], sink)
}

async function* sinkRows(directory: string): AsyncGenerator<Row> {
  const visible = readdirSync(directory).filter((name) => name.endsWith('.jsonl'))
  for (const name of visible.sort()) {
    for await (const line of createInterface({ input: createReadStream(join(directory, name)) })) {
      const whole = JSON.parse(line) as { key: unknown; value: unknown }
      yield { key: whole.key, value: whole.value, whole }
    }
  }
}

async function* topicRows(directory: string, topic: string): AsyncGenerator<Row> {
  const store = existsSync(join(directory, 'store')) ? fileStore(join(directory, 'store')) : null
  if (store === null || !(await embeddedTopics(store)).includes(topic)) {
    throw new PawlError('TOPIC_MISSING', `${directory} has no sink and no topic ${topic}`, { topic, directory })
  }
  try {
    const log = await openSegmentLog(store, topic, systemRandom())
    for (const range of (await log.bounds()).partitions) {
      for await (const batch of log.read(range)) {
        for (let i = 0; i < batch.count; i++) {
          const offset = (batch.baseOffset + BigInt(batch.offsetDeltas[i])).toString()
          const key = text(batch.bytes, batch.keyStarts[i], batch.keyEnds[i])
          const value = text(batch.bytes, batch.valueStarts[i], batch.valueEnds[i])
          const whole = { partition: range.partition, offset, timestampMs: batch.timestamps[i], key, value }
          yield { key, value, whole }
        }
      }
    }
  } finally {
    await store.close()
  }
}

function text(bytes: Buffer, start: number, end: number): string | null {
  return start < 0 ? null : bytes.toString('utf8', start, end)
}
