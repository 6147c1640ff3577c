/**
 * Where workers are killed: topic to topic on a broker of its own, or log to files in a directory.
 *
 * Both are fed while workers run, and at the end both give back what went in and what came out as others see it.
 */
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Broker, type BrokerOptions, startBroker } from './kafka-broker.ts'
import { asAdmin, kafkaClient } from './kafka-topics.ts'
import { runPawl, startPawl } from './worker-process.ts'
import type { ShownRow } from './worker-verdict.ts'
import { visibleFiles, witness } from './worker-witness.ts'

const file = fileURLToPath(new URL('worker-pipeline.ts', import.meta.url))
/** Id of the pipelines in `worker-pipeline.ts`. */
export const pipelineId = 'ordeal'
const partitions = 4

/** What came out: rows, and what is wrong with their packaging. */
export interface Output {
  readonly rows: readonly ShownRow[]
  /** Rows of each epoch, where the sink tells them apart. */
  readonly byEpoch: ReadonlyMap<number, number> | null
}

/** One place to work in. */
export interface World {
  readonly directory: string
  /** After `pawl run`. */
  readonly args: readonly string[]
  /** After `pawl verify`. */
  readonly verifyArgs: readonly string[]
  readonly broker: Broker | null
  /** Appends; rejects when the log is away, and then may or may not have appended. */
  feed(lines: readonly string[]): Promise<void>
  endFeed(): Promise<void>
  /** Lines by partition, in order of their offsets. */
  input(): Promise<string[][]>
  output(): Promise<Output>
  /** Files that should not be there once all workers have ended in good order. */
  leftovers(): string[]
  remove(): Promise<void>
}

/** Which pipeline of `worker-pipeline.ts`. */
export interface WorldOptions {
  readonly exportName?: 'default' | 'sharded'
  /** Lines of `server.properties`. */
  readonly properties?: BrokerOptions['properties']
}

/** Topic to topic. */
export async function kafkaWorld({ exportName = 'default', properties }: WorldOptions = {}): Promise<World> {
  const broker = await startBroker(properties ? { properties } : {})
  const directory = mkdtempSync(join(tmpdir(), 'pawl-ordeal-'))
  await asAdmin(broker, async (admin) => {
    const topics = [
      { topic: 'lines', numPartitions: partitions },
      { topic: 'word-counts', numPartitions: 3 },
    ]
    await admin.createTopics({ topics, waitForLeaders: true })
  })
  const producer = kafkaClient(broker).producer({ idempotent: true, allowAutoTopicCreation: false })
  await producer.connect()
  const cluster = ['--dir', directory, '--bootstrap', broker.bootstrap]
  let next = 0
  return {
    directory,
    broker,
    args: [file, '--export', exportName, ...cluster],
    verifyArgs: ['--file', file, '--export', exportName, ...cluster],
    async feed(lines) {
      await producer.send({
        topic: 'lines',
        messages: lines.map((value) => ({ value, partition: next++ % partitions })),
      })
    },
    async endFeed() {},
    async input() {
      const lines = Array.from({ length: partitions }, (): string[] => [])
      await witness(broker.bootstrap, 'lines', (partition, _key, value) => lines[partition].push(value!))
      return lines
    },
    async output() {
      const rows: ShownRow[] = []
      await witness(broker.bootstrap, 'word-counts', (_partition, key, value) => {
        rows.push({ word: key!, count: JSON.parse(value!) })
      })
      return { rows, byEpoch: null }
    },
    leftovers: () => temporaryFiles(directory),
    async remove() {
      await producer.disconnect().catch(() => {})
      await broker.remove()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** Log to files. */
export async function embeddedWorld({ exportName = 'default' }: WorldOptions = {}): Promise<World> {
  const directory = mkdtempSync(join(tmpdir(), 'pawl-ordeal-'))
  const files = join(directory, 'files', pipelineId, 'word-counts')
  const produced = await runPawl(['produce', 'lines', '--partitions', String(partitions), '--dir', directory])
  if (produced.code !== 0) throw new Error(produced.stderr)
  const feeder = startPawl(['produce', 'lines', '--dir', directory])
  const fed = once(feeder, 'close')
  let complaint = ''
  feeder.stdin!.on('error', () => {})
  feeder.stderr!.on('data', (text) => {
    complaint += text
  })
  feeder.stdout!.resume()
  return {
    directory,
    broker: null,
    args: [file, '--export', exportName, '--dir', directory],
    verifyArgs: ['--dir', directory],
    async feed(lines) {
      if (feeder.exitCode !== null) throw new Error(`pawl produce ended: ${complaint}`)
      if (!feeder.stdin!.write(lines.map((line) => `${line}\n`).join('')))
        await Promise.race([once(feeder.stdin!, 'drain'), fed])
    },
    async endFeed() {
      feeder.stdin!.end()
      const [code] = await fed
      if (code !== 0) throw new Error(`pawl produce ended with ${code}: ${complaint}`)
    },
    async input() {
      const { stdout } = await runPawl(['consume', 'lines', '--dir', directory, '--json'])
      const lines = Array.from({ length: partitions }, (): string[] => [])
      for (const text of stdout.trimEnd().split('\n')) {
        const { partition, value } = JSON.parse(text) as { partition: number; value: string }
        lines[partition].push(value)
      }
      return lines
    },
    async output() {
      const epochs = [...visibleFiles(files)].sort(([a], [b]) => a - b)
      return {
        rows: epochs.flatMap(([, rows]) => rows),
        byEpoch: new Map(epochs.map(([epoch, rows]) => [epoch, rows.length])),
      }
    },
    leftovers: () => [...temporaryFiles(directory), ...stagedFiles(files)],
    async remove() {
      feeder.kill('SIGKILL')
      await fed
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

function stagedFiles(files: string): string[] {
  const staged = join(files, '.staged')
  return existsSync(staged) ? readdirSync(staged).map((name) => join(staged, name)) : []
}

function temporaryFiles(directory: string): string[] {
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8' })
  return names.filter((name) => /~[0-9a-f]{16}~\d+$/.test(name))
}
