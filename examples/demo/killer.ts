/**
 * The killer: keeps a worker running, and kills it again and again with SIGKILL, which no process can catch.
 *
 * Some deaths come at any moment, some are aimed: at work on an epoch, right after its commit, right after its
 * output was shown. A new worker starts at once and has to make sense of what it finds.
 */
import { type Command, startPawl, succeeded } from './pawl.ts'
import { isOfEpoch, type Moment, type Progress, type WorkerEvent } from './progress.ts'

/** A death that was dealt. */
export interface Kill {
  readonly number: number
  /** How long the worker had lived. */
  readonly livedMs: number
  /** The last that was heard of it. */
  readonly moment: Moment
  readonly epoch: number
}

/** What the next worker made of it: the first that it said of an epoch. */
export interface Recovery {
  readonly event: 'opened' | 'committed' | 'promoted' | 'finalized'
  readonly epoch: number
}

/** What the killer is given. */
export interface KillerOptions {
  /** Arguments of the `pawl` command that each worker runs. */
  readonly args: readonly string[]
  readonly kills: number
  /** Mean life of a worker. */
  readonly everyMs: number
  readonly progress: Progress
  readonly onKill: (kill: Kill) => void
  /** Null: the next worker died before it said anything. */
  readonly onRecovery: (kill: Kill, recovery: Recovery | null) => void
}

/** A worker that comes back. */
export interface Killer {
  readonly kills: number
  /** Rejects when a worker ends by itself. */
  readonly failed: Promise<never>
  /** Ends the last worker in good order. */
  finish(): Promise<void>
  /** Kills the worker for good. */
  stop(): void
}

const aims = ['working', 'committed', 'any', 'working', 'starting', 'committed'] as const

/** Starts the first worker. */
export function startKiller(options: KillerOptions): Killer {
  const { progress } = options
  const { promise: failed, reject: fail } = Promise.withResolvers<never>()
  failed.catch(() => {})
  let kills = 0
  let leaving = false
  let worker: Command
  let last: Kill | null = null

  const live = async () => {
    const startedAtMs = performance.now()
    const doom = kills < options.kills ? doomOf(options.everyMs, aims[kills % aims.length]) : null
    let killed = false
    const kill = () => {
      killed ||= !leaving && worker.child.kill('SIGKILL')
    }
    worker = startPawl(options.args, (record) => {
      const event = record as WorkerEvent
      progress.note(event)
      if (last !== null && isOfEpoch(event)) options.onRecovery(last, event)
      if (isOfEpoch(event)) last = null
      if (doom?.strikes(progress.moment, performance.now() - startedAtMs)) doom.after(kill)
    })
    doom?.atLast(kill)
    const code = await worker.ended
    doom?.forget()
    if (killed) {
      kills++
      const { moment, epoch } = progress
      if (last !== null) options.onRecovery(last, null)
      last = { number: kills, livedMs: performance.now() - startedAtMs, moment, epoch }
      options.onKill(last)
      progress.restart()
      if (!leaving) void live()
    } else if (!leaving) fail(new Error(`the worker ended with ${code}: ${worker.complaints.join('\n')}`))
  }

  void live()
  return {
    failed,
    get kills() {
      return kills
    },
    async finish() {
      leaving = true
      worker.child.kill('SIGTERM')
      await succeeded(worker)
    },
    stop() {
      leaving = true
      worker.child.kill('SIGKILL')
    },
  }
}

/** When a worker is to die: not before its time, and then at the moment that is aimed at, if that comes. */
function doomOf(everyMs: number, aim: (typeof aims)[number]) {
  // A worker needs a few hundred milliseconds to start and to find out where it stands.
  const dueMs = aim === 'starting' ? 100 + 500 * Math.random() : everyMs * (0.4 + 1.2 * Math.random())
  const isTimed = aim === 'any' || aim === 'starting'
  const timers: NodeJS.Timeout[] = []
  const later = (delayMs: number, kill: () => void) => void timers.push(setTimeout(kill, delayMs))
  return {
    strikes: (moment: Moment, livedMs: number) => !isTimed && moment === aim && livedMs >= dueMs,
    /** In the midst of work, at once after a commit: a promotion is over in a moment. */
    after: (kill: () => void) => (aim === 'working' ? later(12 * Math.random(), kill) : kill()),
    atLast: (kill: () => void) => later(isTimed ? dueMs : dueMs + 1500, kill),
    forget: () => timers.forEach(clearTimeout),
  }
}
