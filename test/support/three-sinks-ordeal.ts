/**
 * The ordeal of the example `three-sinks`: payments flow, the process is killed, three foreign readers look.
 *
 * After each kill, while nothing runs, and between kills, while something does, each sink must show the rows of a whole
 * number of epochs, none of them beyond the commit point, and none less than what was promoted before. At the end all
 * three must agree with the fold of the payments.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Prng, prng } from '../../lib/model/prng.ts'
import { type DeltaReaders, startDeltaReaders } from './delta-readers.ts'
import { type Broker, startBroker } from './kafka-broker.ts'
import { asAdmin, kafkaClient } from './kafka-topics.ts'
import { type Postgres, startPostgres } from './postgres-server.ts'
import { type Change, Judge, type Payment } from './three-sinks-judge.ts'
import { type Archive, openArchive } from './worker-archive.ts'
import { hear, startWorker, type Worker } from './worker-process.ts'
import { witness } from './worker-witness.ts'

const file = fileURLToPath(new URL('three-sinks-pipeline.ts', import.meta.url))
const partitions = 2
const sinks = ['changes', 'table', 'lake'] as const
type SinkId = (typeof sinks)[number]

/** How long and how hard. */
export interface ThreeSinksOptions {
  readonly seed: number
  readonly kills: number
  readonly say?: (line: string) => void
}

/** What it came to. */
export interface ThreeSinksOrdeal {
  readonly kills: number
  readonly payments: number
  readonly epochs: number
  /** Looks at each sink that were judged. */
  readonly looks: Readonly<Record<SinkId, number>>
  /** Looks at which the sinks were not at the same epoch. */
  readonly apart: number
  /** Kills after which an epoch was committed that some sink did not show yet. */
  readonly unpromoted: number
  readonly seconds: number
  /** One sentence each; empty when all is well. */
  readonly faults: readonly string[]
}

interface World {
  readonly directory: string
  readonly broker: Broker
  readonly postgres: Postgres
  readonly readers: DeltaReaders
  readonly archive: Archive
  readonly judge: Judge
  readonly lake: string
}

/** Starts a broker, a database and readers of their own, and ends them. */
export async function threeSinksOrdeal({ seed, kills, say = () => {} }: ThreeSinksOptions): Promise<ThreeSinksOrdeal> {
  const startedAtMs = performance.now()
  const world = await openWorld()
  const looks = new Looks(world)
  let unpromoted = 0
  const feeding = { ended: false }
  try {
    const random = prng(seed)
    const feed = feedPayments(world, random, feeding)
    for (let kill = 1; kill <= kills; kill++) {
      const worker = startThree(world)
      await untilItHurts(worker, random)
      const look = random.int(2) === 0 ? looks.take(['table', 'lake']) : null
      await worker.kill()
      await look
      if (await looks.take(sinks)) unpromoted++
      if (kill % 5 === 0) say(`${kill} of ${kills} kills, ${world.judge.newest} epochs`)
    }
    feeding.ended = true
    await feed
    await finish(world, looks)
    const payments = world.judge.input.flat().length
    const { counts, apart, faults } = looks
    const seconds = (performance.now() - startedAtMs) / 1000
    return { kills, payments, epochs: world.judge.newest, looks: counts, apart, unpromoted, seconds, faults }
  } finally {
    feeding.ended = true
    await closeWorld(world)
  }
}

async function openWorld(): Promise<World> {
  const directory = mkdtempSync(join(tmpdir(), 'pawl-three-'))
  const [broker, postgres] = await Promise.all([startBroker(), startPostgres()])
  await asAdmin(broker, async (admin) => {
    const topics = ['payments', 'balances'].map((topic) => ({ topic, numPartitions: partitions }))
    await admin.createTopics({ topics, waitForLeaders: true })
  })
  await postgres.query('CREATE TABLE balances (account text PRIMARY KEY, payments int, cents bigint)')
  const archive = openArchive(directory, 'three-sinks')
  const judge = new Judge(partitions)
  return { directory, broker, postgres, readers: startDeltaReaders(), archive, judge, lake: join(directory, 'lake') }
}

async function closeWorld({ directory, broker, postgres, readers, archive }: World): Promise<void> {
  readers.stop()
  await archive.close()
  await Promise.all([broker.remove(), postgres.remove()])
  rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
}

function startThree({ directory, broker, postgres, lake }: World, ...more: string[]): Worker {
  const env = { POSTGRES_URL: postgres.url, DELTA_TABLE: lake }
  return startWorker([file, '--dir', directory, '--bootstrap', broker.bootstrap, ...more], () => {}, env)
}

/** Half of the kills strike right after a commit, where promotion is under way; the others anywhere. */
async function untilItHurts(worker: Worker, random: Prng): Promise<void> {
  const epochs = 1 + random.int(3)
  for (let epoch = 0; epoch < epochs; epoch++) {
    const heard = await hear(worker, ({ event }) => event === 'committed', 30_000)
    if (heard === null) throw new Error(`the worker commits nothing: ${lastWords(worker)}`)
    if (epoch + 1 < epochs) await hear(worker, ({ event }) => event === 'finalized', 30_000)
  }
  await sleep(random.int(2) === 0 ? random.int(40) : random.int(300))
}

function lastWords({ heard, complaints }: Worker): string {
  return [...heard.slice(-5).map(({ event }) => JSON.stringify(event)), ...complaints.slice(-5)].join('\n')
}

/** Sends payments as long as the ordeal goes on; an account keeps to its partition. */
async function feedPayments({ broker, judge }: World, random: Prng, feeding: { readonly ended: boolean }) {
  const producer = kafkaClient(broker).producer({ idempotent: true, allowAutoTopicCreation: false })
  await producer.connect()
  while (!feeding.ended) {
    const payments = Array.from({ length: 20 + random.int(60) }, () => {
      const number = random.int(200)
      return { partition: number % partitions, payment: { account: `a${number}`, cents: random.int(10_000) - 2000 } }
    })
    // Known before they can be read: whoever looks may find them in an epoch at once.
    for (const { partition, payment } of payments) judge.input[partition]!.push(payment satisfies Payment)
    const messages = payments.map(({ partition, payment }) => ({ partition, value: JSON.stringify(payment) }))
    await producer.send({ topic: 'payments', messages })
    await sleep(30)
  }
  await producer.disconnect()
}

async function finish(world: World, looks: Looks): Promise<void> {
  const last = startThree(world, '--until', 'caught-up')
  const { code } = await last.ended
  if (code !== 0) throw new Error(`the last worker ended with ${code}: ${lastWords(last)}`)
  await looks.take(sinks)
  looks.mustAgree()
}

/** Looks at sinks, and what is wrong with what is seen. */
class Looks {
  readonly counts: Record<SinkId, number> = { changes: 0, table: 0, lake: 0 }
  readonly faults: string[] = []
  apart = 0
  readonly #world: World
  readonly #shown: Record<SinkId, number> = { changes: 0, table: 0, lake: 0 }

  constructor(world: World) {
    this.#world = world
  }

  /** Reads the sinks at once, then the commit point. True when one of them did not show all that is committed. */
  async take(wanted: readonly SinkId[]): Promise<boolean> {
    const { archive, judge } = this.#world
    const before = (await archive.read())?.promotedThrough ?? 0
    const read = await Promise.all(wanted.map(async (sink) => [sink, await this.#rows(sink)] as const))
    const committed = (await archive.read())?.committed.epoch ?? 0
    judge.learn(archive.manifests)
    const epochs = read.map(([sink, rows]) => this.#judge(sink, rows, before, committed))
    if (new Set(epochs).size > 1) this.apart++
    return epochs.some((epoch) => epoch < committed)
  }

  /** After the last worker: everything that was sent is counted, in all three. */
  mustAgree(): void {
    const { judge } = this.#world
    const sent = judge.input.flat().length
    if (judge.counted !== sent) this.faults.push(`${sent} payments were sent, ${judge.counted} were counted`)
    for (const sink of sinks)
      if (this.#shown[sink] < judge.newest)
        this.faults.push(`${sink} ends at epoch ${this.#shown[sink]} of ${judge.newest}`)
  }

  #judge(sink: SinkId, rows: readonly Change[], before: number, committed: number): number {
    const { judge } = this.#world
    this.counts[sink]++
    const epoch = sink === 'table' ? judge.epochOfTable(rows) : judge.epochOfChanges(rows)
    const at = `look ${this.counts[sink]} at ${sink}`
    if (epoch === null) this.faults.push(`${at}: ${rows.length} rows are no whole number of the ${committed} epochs`)
    else if (epoch < Math.max(before, this.#shown[sink]))
      this.faults.push(`${at}: epoch ${epoch}, ${Math.max(before, this.#shown[sink])} was there before`)
    this.#shown[sink] = epoch ?? this.#shown[sink]
    return epoch ?? -1
  }

  async #rows(sink: SinkId): Promise<Change[]> {
    const { broker, postgres, readers, lake } = this.#world
    if (sink === 'table')
      return (await postgres.query('SELECT account, payments, cents::int FROM balances')) as Change[]
    if (sink === 'lake') {
      const code =
        "result = sql(table, 'select account, payments, cents from t') if DeltaTable.is_deltatable(table) else []"
      const rows = await readers.run<[string, number, number][]>(code, { table: lake })
      return rows.map(([account, payments, cents]) => ({ account, payments, cents }))
    }
    const rows: Change[] = []
    await witness(broker.bootstrap, 'balances', (_partition, account, value) => {
      rows.push({ account: account!, ...(JSON.parse(value!) as { payments: number; cents: number }) })
    })
    return rows
  }
}
