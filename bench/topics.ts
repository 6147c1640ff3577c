/**
 * Topics of the race: filled once, created and dropped for each run, looked at from outside, and verified.
 *
 * Generator and verifier are the Java tools of `bench/peers`, on Kafka's own client, so that nothing here judges itself.
 */
import { execFile } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { securityOf } from '../lib/adapters/kafka/auth.ts'
import { KafkaConnection } from '../lib/adapters/kafka/connection.ts'
import { fetchGroup, findGroup, listOffsets, logEnds } from '../lib/adapters/kafka/log-requests.ts'
import { createTopic } from '../lib/adapters/kafka/topic-requests.ts'
import type { JobName } from './systems.ts'
import { toolArguments } from './systems.ts'

const run = promisify(execFile)
const partitions = 4

/** What a generated topic holds. */
export type Generated = Readonly<Record<'records' | JobName | 'windows', number>>
/** What the verifier found. */
export interface Verdict {
  readonly verified: boolean
  readonly in: number
  readonly out: number
  readonly missing: number
  readonly wrong: number
  readonly repeated: number
}

/** One cluster, as the benchmark uses it. */
export class Topics {
  readonly bootstrap: string
  readonly #link: KafkaConnection
  readonly #generated = new Map<string, Promise<Generated>>()

  constructor(bootstrap: string) {
    this.bootstrap = bootstrap
    this.#link = new KafkaConnection({ brokers: [bootstrap], clientId: 'bench', security: securityOf({}) })
  }

  /** A topic with so many bids or lines, filled the first time that it is asked for. */
  async filled(
    kind: 'bids' | 'lines',
    records: number,
  ): Promise<{ readonly topic: string; readonly holds: Generated }> {
    const topic = `${kind}-${records}`
    const known = this.#generated.get(topic) ?? this.#generate(kind, records, topic)
    this.#generated.set(topic, known)
    return { topic, holds: await known }
  }

  /** Fills a topic at a rate; resolves when all is written. */
  async pace(kind: 'bids' | 'lines', records: number, topic: string, rate: number): Promise<Generated> {
    return this.#generate(kind, records, topic, rate)
  }

  async create(topic: string): Promise<void> {
    const { error, message } = await this.#link.send(
      'controller',
      createTopic(topic, partitions, { 'retention.ms': '-1' }, 10_000),
    )
    if (error !== 0) throw new Error(`${topic} was not created: ${message}`)
    while ((await this.#link.topics([topic])).get(topic)?.leaders.some((leader) => leader < 0) !== false)
      await sleep(20)
  }

  /** Whether the committed output equals what the input makes. */
  async verify(job: JobName, input: string, output: string): Promise<Verdict> {
    const args = toolArguments('Verify', job, input, output, this.bootstrap)
    const { stdout } = await run('java', args).catch((error: { stdout: string }) => error)
    return JSON.parse(stdout)
  }

  /** End offsets with and without what is not committed; `open` while they differ. */
  async ends(topic: string): Promise<{ readonly open: boolean; readonly ends: readonly bigint[] }> {
    const [all, stable] = await Promise.all([
      this.#ends(topic, 'read_uncommitted'),
      this.#ends(topic, 'read_committed'),
    ])
    return { open: all.some((end, partition) => end !== stable[partition]), ends: all }
  }

  /** Committed offsets of a group; -1 where there are none. */
  async groupOffsets(group: string, topic: string): Promise<readonly bigint[]> {
    const { node } = await this.#link.send('any', findGroup(group))
    const answer = await this.#link.send(node, fetchGroup(group, topic, partitionIndexes))
    return partitionIndexes.map(
      (partition) => answer.partitions.find((at) => at.partition === partition)?.offset ?? -1n,
    )
  }

  async close(): Promise<void> {
    await this.#link.close()
  }

  async #generate(kind: string, records: number, topic: string, rate = 0): Promise<Generated> {
    const args = [kind, String(records), this.bootstrap, topic, String(rate)]
    const { stdout } = await run('java', toolArguments('Generate', ...args))
    return JSON.parse(stdout)
  }

  async #ends(topic: string, isolation: 'read_committed' | 'read_uncommitted'): Promise<bigint[]> {
    const layout = (await this.#link.topics([topic])).get(topic)
    if (layout === undefined) throw new Error(`there is no topic ${topic}`)
    const answers = await this.#link.send(
      layout.leaders[0],
      listOffsets(topic, partitionIndexes, logEnds.latest, isolation),
    )
    return partitionIndexes.map((partition) => answers.find((at) => at.partition === partition)!.offset)
  }
}

const partitionIndexes = Array.from({ length: partitions }, (_, partition) => partition)
