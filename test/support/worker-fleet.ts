/**
 * A fleet of workers of one pipeline, and what is done to them.
 *
 * One worker at rest, two while one stands by or hangs. A worker that ends by itself is a failure, unless the broker
 * was away when it started.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ProgressEvent } from '../../lib/model/event.ts'
import type { Prng } from '../../lib/model/prng.ts'
import { hear, startWorker, type Worker } from './worker-process.ts'
import type { World } from './worker-world.ts'

/** Longest wait for what usually takes a moment: two cores may be busy with other things. */
const patienceMs = 20_000
const aims = ['any', 'starting', 'opened', 'committed', 'promoted', 'opened'] as const

export class WorkerFleet {
  brokerIsAway = false
  /** Rejects when a worker ends by itself. */
  readonly failed: Promise<never>
  readonly #fail: (error: Error) => void
  readonly #world: World
  readonly #random: Prng
  readonly #workers = new Set<Worker>()
  readonly #doomed = new Set<Worker>()
  readonly #counts = { kills: 0, twins: 0, zombies: 0, outages: 0, takeovers: 0, opened: 0 }
  readonly #recoveriesMs: number[] = []
  readonly #standbyCpu: number[] = []
  #holder: Worker | null = null
  #killedAtMs: number | null = null
  #isLeaving = false

  constructor(world: World, random: Prng) {
    const { promise, reject } = Promise.withResolvers<never>()
    promise.catch(() => {})
    this.failed = promise
    this.#fail = reject
    this.#world = world
    this.#random = random
  }

  /** Starts one more worker. */
  start(): Worker {
    const worker = startWorker(this.#world.args, (event, by) => this.#note(event, by))
    this.#workers.add(worker)
    void worker.ended.then(({ code, signal }) => {
      this.#workers.delete(worker)
      if (this.#holder === worker) this.#holder = null
      if (this.#isLeaving || this.#doomed.has(worker)) return
      const words = worker.complaints.join('\n')
      // A broker that is away, or just back, ends a worker that starts; whoever keeps it running starts it again.
      if (/BROKER_UNREACHABLE|LOG_UNAVAILABLE/.test(words)) this.start()
      else this.#fail(new Error(`a worker ended by itself with ${code ?? signal}: ${words}`))
    })
    return worker
  }

  /** Kills a worker at a moment of its life that is drawn, and starts another at once. */
  async killOne(): Promise<void> {
    const worker = this.#pick()
    const aim = this.#random.pick(aims)
    if (aim === 'any') await sleep(this.#random.int(1200))
    else if (aim === 'starting') await sleep(this.#random.int(500))
    else {
      await hear(worker, ({ event }) => event === aim, 3000)
      // Into the work, or right after what was said.
      if (this.#random.chance(0.6)) await sleep(this.#random.int(aim === 'opened' ? 25 : 8))
    }
    this.#killedAtMs = performance.now()
    await this.#kill(worker)
    this.start()
  }

  /** Two workers at once: one of them stands by, and takes over when the other is killed. */
  async double(): Promise<void> {
    this.#counts.twins++
    this.#killedAtMs = null
    if (this.#random.chance(0.5)) {
      await this.#kill(this.#pick())
      this.start()
    }
    const second = this.start()
    await sleep(1500)
    const idle = second === this.#holder ? this.#pick() : second
    const before = idle.cpuSeconds()
    await sleep(1000 + this.#random.int(1000))
    if (idle !== this.#holder && idle.isAlive) this.#standbyCpu.push((idle.cpuSeconds() - before) / 1.5)
    const holder = this.#holder ?? this.#pick()
    this.#killedAtMs = performance.now()
    await this.#kill(holder)
    await this.#one()
  }

  /** Stops the holder in its tracks until another has taken over; then it goes on as if nothing had happened. */
  async raiseZombie(): Promise<void> {
    this.#counts.zombies++
    this.#killedAtMs = null
    const zombie = this.#holder ?? this.#pick()
    await hear(zombie, ({ event }) => event === this.#random.pick(['opened', 'committed'] as const), 3000)
    if (this.#random.chance(0.7)) await sleep(this.#random.int(15))
    zombie.signal('SIGSTOP')
    const second = this.start()
    // A zombie that holds the lock of the ledger keeps all others out until it goes on.
    const isTakenOver = await hear(second, ({ event }) => event === 'promoted', patienceMs)
    await sleep(this.#random.int(1000))
    zombie.signal('SIGCONT')
    if (isTakenOver === null) await hear(zombie, ({ event }) => event === 'promoted', patienceMs)
    await sleep(500 + this.#random.int(1000))
    await this.#kill(this.#random.chance(0.5) ? zombie : second)
    await this.#one()
  }

  /** Stops or kills the broker for a while; a worker may die meanwhile. */
  async cutBroker(): Promise<void> {
    const { broker } = this.#world
    if (broker === null) return
    this.#killedAtMs = null
    this.brokerIsAway = true
    if (this.#counts.outages++ % 2 === 0) await broker.stop()
    else await broker.kill()
    await sleep(this.#random.int(2000))
    if (this.#random.chance(0.5)) {
      await this.#kill(this.#pick())
      this.start()
    }
    await sleep(1000 + this.#random.int(2000))
    await broker.restart()
    this.brokerIsAway = false
    await this.#untilPromoted()
  }

  /** Ends all workers in good order; answers with what is wrong. */
  async finish(): Promise<string[]> {
    this.#isLeaving = true
    const faults: string[] = []
    await Promise.all(
      [...this.#workers].map(async (worker) => {
        worker.signal('SIGTERM')
        const ended = await Promise.race([worker.ended, sleep(10_000, null, { ref: false })])
        if (ended === null) faults.push(`a worker does not end within 10 s of SIGTERM: ${worker.complaints.join(' ')}`)
        else if (ended.code !== 0) faults.push(`a worker ends with ${ended.code}: ${worker.complaints.join(' ')}`)
      }),
    )
    return faults
  }

  /** Kills whatever is left. */
  async stop(): Promise<void> {
    this.#isLeaving = true
    await Promise.all([...this.#workers].map((worker) => worker.kill()))
  }

  figures(epochs: number) {
    const { opened, ...counts } = this.#counts
    return {
      ...counts,
      died: Math.max(0, opened - epochs),
      recoveriesMs: [...this.#recoveriesMs].sort((a, b) => a - b),
      standbyCpu: this.#standbyCpu,
    }
  }

  #note(event: ProgressEvent, worker: Worker): void {
    if (event.event === 'opened') this.#counts.opened++
    if (event.event === 'taken-over') this.#counts.takeovers++
    if (event.event === 'parked' && event.kind === 'failure' && !this.#isLeaving)
      this.#fail(new Error(`the pipeline parked: ${event.message}`))
    if (!('epoch' in event) || event.event === 'aborted') return
    this.#holder = worker
    if (event.event !== 'promoted' || this.#killedAtMs === null) return
    this.#recoveriesMs.push(Math.round(performance.now() - this.#killedAtMs))
    this.#killedAtMs = null
  }

  #pick(): Worker {
    return this.#random.pick([...this.#workers])
  }

  async #kill(worker: Worker): Promise<void> {
    this.#doomed.add(worker)
    this.#counts.kills++
    await worker.kill()
  }

  /** Back to one worker, whichever is left. */
  async #one(): Promise<void> {
    while (this.#workers.size > 1) await this.#kill(this.#pick())
    if (this.#workers.size === 0) this.start()
  }

  async #untilPromoted(): Promise<void> {
    const deadline = performance.now() + patienceMs * 2
    while (performance.now() < deadline) {
      const heard = await Promise.race(
        [...this.#workers].map((worker) => hear(worker, ({ event }) => event === 'promoted', 1000)),
      )
      if (heard) return
      if (this.#workers.size === 0) await sleep(50)
    }
    throw new Error('nothing became visible after the broker had come back')
  }
}
