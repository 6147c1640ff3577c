/**
 * An ordeal for a deployment: a word count is fed while all that can happen to functions happens.
 *
 * Rings are dropped, doubled and shuffled all the time, calls to AWS fail, are lost or arrive twice, and deeds drawn
 * from a seed come on top: function workers die by SIGKILL, executions are stopped or started twice, tasks outlive
 * their timeout, broker and emulator go and come back. Whatever happens, the output must be the exact fold of the
 * input, the audit must find the chain sound, and collecting must leave nothing behind.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { SFNClient, StopExecutionCommand } from '@aws-sdk/client-sfn'
import { lineStream } from '../../examples/demo/lines.ts'
import { unseal } from '../../lib/epoch/seal.ts'
import type { Verified } from '../../lib/epoch/verify.ts'
import type { Head } from '../../lib/model/head.ts'
import type { Manifest } from '../../lib/model/manifest.ts'
import { type Prng, prng } from '../../lib/model/prng.ts'
import { type KafkaEvent, type Polling, pollMapping } from '../../scripts/aws/event-source.ts'
import type { Deployed } from './deployed.ts'
import { hostileCalls } from './deployed-faults.ts'
import type { Disturbed } from './disturbed.ts'
import type { Broker } from './kafka-broker.ts'
import { kafkaClient } from './kafka-topics.ts'
import { judgeOutput, type ShownRow, type Verdict } from './worker-verdict.ts'
import { witness } from './worker-witness.ts'

/** What happens, and how often. */
export interface OrdealDeeds {
  /** Function workers that die by SIGKILL, one or all of them at once. */
  readonly kills: number
  /** Executions that are stopped. */
  readonly stops: number
  /** Two executions started at once. */
  readonly twins: number
  /** Tasks whose write takes longer than the task may. */
  readonly late: number
  /** The broker goes and comes back. */
  readonly brokers: number
  /** The emulator is stopped in good order and started with its state. */
  readonly emulators: number
}

export interface OrdealOptions extends OrdealDeeds {
  readonly seed: number
  readonly lines: number
  readonly say?: (line: string) => void
}

/** Where it happens. */
export interface OrdealParts {
  readonly disturbed: Disturbed
  readonly broker: Broker
  readonly deployed: Deployed
}

/** What it came to. */
export interface Ordeal extends Verdict {
  /** Deeds that met their aim. */
  readonly done: OrdealDeeds
  readonly rings: { readonly sent: number; readonly dropped: number; readonly doubled: number; readonly held: number }
  /** Calls of functions that went wrong on the way. */
  readonly wrongCalls: number
  readonly calls: number
  readonly generations: number
  readonly seconds: number
}

type Deed = keyof OrdealDeeds

const tick = { source: 'aws.events', 'detail-type': 'Scheduled Event' }
/** The schedule, sped up: a minute of a deployment. */
const tickMs = 3_000
const patienceMs = 90_000
const partitions = 4
const triesMax = 10
const looksMax = 20

/** Runs it all; what is in `parts` stays the caller's. */
export async function deployedOrdeal(parts: OrdealParts, options: OrdealOptions): Promise<Ordeal> {
  const { say = () => {} } = options
  const startedAtMs = performance.now()
  const random = prng(options.seed)
  const trial = new Trial(parts, random)
  const deeds = shuffled(random, options)
  const progress = { done: 0 }
  try {
    const feeding = feed(parts, options, () => (progress.done + 1) / (deeds.length + 1))
    feeding.catch(() => {})
    for (const deed of deeds) {
      await trial.strike(deed)
      progress.done++
      if (progress.done % 5 === 0) say(`${progress.done} of ${deeds.length} deeds, epoch ${await trial.epoch()}`)
    }
    await feeding
    const wrongCalls = trial.calm()
    await parts.deployed.untilAtRest(patienceMs)
    const verdict = await judge(parts)
    const head = await parts.deployed.job.place.ledger.read('ordeal')
    return {
      ...verdict,
      done: trial.done,
      rings: trial.rings,
      wrongCalls,
      calls: parts.disturbed.proxy.calls.length,
      generations: head?.generation ?? 0,
      seconds: (performance.now() - startedAtMs) / 1000,
    }
  } finally {
    await trial.end()
  }
}

class Trial {
  readonly done: Record<Deed, number> = { kills: 0, stops: 0, twins: 0, late: 0, brokers: 0, emulators: 0 }
  readonly rings = { sent: 0, dropped: 0, doubled: 0, held: 0 }
  readonly #parts: OrdealParts
  readonly #random: Prng
  readonly #machines: SFNClient
  readonly #polling: Polling
  readonly #ticking: NodeJS.Timeout
  readonly #calls: ReturnType<typeof hostileCalls>

  constructor(parts: OrdealParts, random: Prng) {
    this.#parts = parts
    this.#random = random
    this.#machines = new SFNClient(parts.disturbed.emulator.client)
    this.#calls = hostileCalls(parts.disturbed.proxy, random)
    const mapping = {
      bootstrapServers: parts.broker.bootstrap,
      topics: ['lines'],
      group: 'pawl-doorbell-dev-ordeal',
      startingPosition: 'LATEST',
      batchSize: 5_000,
      batchWindowMs: 300,
      eventSourceArn: 'arn:aws:kafka:us-east-1:000000000000:cluster/test/0-1',
    } as const
    this.#polling = pollMapping(
      mapping,
      (event) => this.#ring(event),
      () => {},
    )
    this.#ticking = setInterval(() => void this.#invoke(tick), tickMs)
  }

  async epoch(): Promise<number> {
    return (await this.#head())?.committed.epoch ?? 0
  }

  /** Does a deed in mid-work, then waits until the pipeline has got over it. */
  async strike(deed: Deed): Promise<void> {
    let before = 0
    for (let tries = 0; tries < triesMax; tries++) {
      await this.#untilBusy()
      before = await this.epoch()
      if (await this.#do(deed)) {
        this.done[deed]++
        break
      }
      // Its aim was gone a moment too early.
      await sleep(200)
    }
    for (const until = performance.now() + patienceMs; (await this.epoch()) <= before; await sleep(100))
      if (performance.now() > until) throw new Error(`no epoch since ${deed}: ${JSON.stringify(await this.#head())}`)
  }

  /** No more faults on the way; answers with how many there were. */
  calm(): number {
    return this.#calls.end()
  }

  async end(): Promise<void> {
    clearInterval(this.#ticking)
    this.#calls.end()
    await this.#polling.stop()
    this.#machines.destroy()
  }

  #do(deed: Deed): Promise<boolean> {
    switch (deed) {
      case 'kills':
        return this.#kill()
      case 'stops':
        return this.#stop()
      case 'twins':
        return this.#startTwins()
      case 'late':
        return this.#delay()
      case 'brokers':
        return this.#restartBroker()
      case 'emulators':
        return this.#parts.disturbed.restart().then(() => true)
    }
  }

  async #kill(): Promise<boolean> {
    await sleep(this.#random.int(400))
    const workers = this.#parts.disturbed.workers().filter(({ name }) => name !== 'collect')
    if (workers.length === 0) return false
    // One, which may be at rest; or as if their host had died, and with it whatever step is under way.
    const doomed = this.#random.chance(0.5) ? workers : [this.#random.pick(workers)]
    for (const { pid } of doomed) process.kill(pid, 'SIGKILL')
    return true
  }

  async #stop(): Promise<boolean> {
    const running = (await this.#parts.deployed.executions()).find(({ status }) => status === 'RUNNING')
    if (running === undefined) return false
    return this.#machines.send(new StopExecutionCommand({ executionArn: running.arn })).then(
      () => true,
      () => false,
    )
  }

  async #startTwins(): Promise<boolean> {
    const { launcher } = this.#parts.deployed.job.place
    const sequence = ((await this.#head())?.run.sequence ?? 0) + 1
    const wakes = 1_000_000 + this.#random.int(1_000_000)
    const started = await Promise.all(
      [wakes, wakes + 1].map((wakes) => launcher.start({ pipeline: 'ordeal', sequence, wakes })),
    )
    return started.every((answer) => answer === 'started')
  }

  async #delay(): Promise<boolean> {
    const { proxy } = this.#parts.disturbed
    let isMet = false
    // Longer than the four seconds of a task; the write still arrives.
    const matches = ({ caller, method, operation }: (typeof proxy.calls)[number]) => {
      isMet ||= caller === 'operate' && method === 'PUT' && operation === ''
      return isMet
    }
    proxy.planFirst(matches, { fault: 'delayed', afterMs: 7_000 })
    for (const until = performance.now() + 20_000; !isMet && performance.now() < until; ) await sleep(50)
    return isMet
  }

  async #restartBroker(): Promise<boolean> {
    const { broker } = this.#parts
    await (this.#random.chance(0.5) ? broker.kill() : broker.stop())
    await sleep(this.#random.int(1_000))
    await broker.restart()
    return true
  }

  async #untilBusy(): Promise<void> {
    for (const until = performance.now() + patienceMs; ; await sleep(20)) {
      const head = await this.#head()
      if (head !== null && (head.open !== null || head.committed.epoch > head.promotedThrough)) return
      if (performance.now() > until) throw new Error(`nothing is done: ${JSON.stringify(head)}`)
    }
  }

  #head(): Promise<Head | null> {
    return this.#parts.deployed.job.place.ledger.read('ordeal').catch(() => null)
  }

  /** A ring is lost, comes twice, or comes late and after others. */
  async #ring(event: KafkaEvent): Promise<void> {
    this.rings.sent++
    const fate = this.#random.int(8)
    if (fate < 2) return void this.rings.dropped++
    if (fate < 4) {
      this.rings.doubled++
      await Promise.all([this.#invoke(event), this.#invoke(event)])
    } else if (fate < 6) {
      this.rings.held++
      void sleep(this.#random.int(2_000)).then(() => this.#invoke(event))
    } else await this.#invoke(event)
  }

  /** A failure of the trigger is what the next ring or tick mends. */
  async #invoke(event: unknown): Promise<void> {
    await this.#parts.deployed.invoke('TriggerName', event).catch(() => {})
  }
}

function shuffled(random: Prng, deeds: OrdealDeeds): Deed[] {
  const names: readonly Deed[] = ['kills', 'stops', 'twins', 'late', 'brokers', 'emulators']
  const all = names.flatMap((name) => Array.from({ length: deeds[name] }, () => name))
  for (let i = all.length - 1; i > 0; i--) {
    const j = random.int(i + 1)
    ;[all[i], all[j]] = [all[j]!, all[i]!]
  }
  return all
}

/** Lines come all the time, in portions that end with the last deed. */
async function feed({ broker }: OrdealParts, { seed, lines }: OrdealOptions, share: () => number): Promise<void> {
  const producer = kafkaClient(broker).producer({ idempotent: true, allowAutoTopicCreation: false })
  const stream = lineStream(seed)
  await producer.connect()
  for (let fed = 0; fed < lines; await sleep(200)) {
    // Something is left to do for as long as deeds are: a little of what is left.
    const room = Math.floor(lines * share()) - fed
    const count = share() === 1 ? Math.min(5_000, lines - fed) : Math.max(10, Math.ceil(room / 10))
    const messages = stream
      .take(count)
      .trimEnd()
      .split('\n')
      .map((value, i) => ({ value, partition: i % partitions }))
    // A batch whose answer was lost with the broker is sent again: the input then holds it twice, which is no fault.
    for (let isFed = false; !isFed; )
      isFed = await producer.send({ topic: 'lines', messages }).then(
        () => true,
        () => sleep(100, false),
      )
    fed += count
  }
  await producer.disconnect()
}

/** Functions whose calls were given up may still be storing things, so what they leave is collected for a while. */
async function collected(deployed: OrdealParts['deployed']): Promise<Verified> {
  for (let looks = 1; ; looks++) {
    await deployed.invoke('CollectName', {})
    const audit = await deployed.verify()
    if (audit.orphans.objects === 0 || looks === looksMax) return audit
    await sleep(1000)
  }
}

async function judge({ broker, deployed }: OrdealParts): Promise<Verdict> {
  const { ledger, store } = deployed.job.place
  const audit = await collected(deployed)
  const manifests: Manifest[] = []
  for (const { manifest } of await ledger.histories('ordeal', 0, audit.head.committed.epoch + 1))
    manifests.push(await unseal<Manifest>(store, manifest))
  const input = Array.from({ length: partitions }, (): string[] => [])
  await witness(broker.bootstrap, 'lines', (partition, _key, value) => input[partition]!.push(value!))
  const rows: ShownRow[] = []
  await witness(broker.bootstrap, 'word-counts', (_partition, key, value) => {
    rows.push({ word: key!, count: JSON.parse(value!) })
  })
  const verdict = judgeOutput({ input, manifests, rows })
  const faults = [...verdict.faults, ...audit.faults.map((fault) => JSON.stringify(fault))]
  if (audit.orphans.objects > 0) faults.push(`${audit.orphans.objects} objects are left behind`)
  if (audit.unreadable.length > 0) faults.push(`${audit.unreadable.length} lanes were not looked at`)
  return { ...verdict, faults }
}
