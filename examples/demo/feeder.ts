/**
 * The feeder: appends lines to the topic at an even pace while the workers come and go.
 *
 * It is a `pawl produce` that reads from here. It is spared: exactly-once begins at the log, and a producer that
 * dies between an append and its answer cannot know whether to repeat it.
 */
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LineStream } from './lines.ts'
import { type Command, startPawl, succeeded } from './pawl.ts'

/** What is fed, and how fast. */
export interface FeederOptions {
  readonly directory: string
  readonly lines: LineStream
  readonly total: number
  readonly seconds: number
  /** Until this holds the last lines come ever more slowly, so that there is something to do to the end. */
  readonly mayEnd: () => boolean
}

/** Lines on their way. */
export interface Feeder {
  /** Lines appended so far. */
  readonly fed: number
  /** Resolves when all are in the log. */
  readonly done: Promise<void>
  stop(): void
}

const tickMs = 100
/** Of what is left, a tick: less than `portion` when a tenth is left of a run of 20 s. */
const trickle = 0.04

/** Makes the topic, still empty. */
export async function createTopic(directory: string): Promise<void> {
  const command = startPawl(['produce', 'lines', '--partitions', '4', '--dir', directory])
  command.child.stdin!.end()
  await succeeded(command)
}

/** Starts to feed. */
export function startFeeder(options: FeederOptions): Feeder {
  const command = startPawl(['produce', 'lines', '--dir', options.directory])
  const state = { fed: 0 }
  return {
    get fed() {
      return state.fed
    },
    done: feed(command, options, state),
    stop: () => void command.child.kill('SIGKILL'),
  }
}

async function feed(command: Command, options: FeederOptions, state: { fed: number }): Promise<void> {
  const { lines, total, seconds, mayEnd } = options
  const input = command.child.stdin!
  const portion = Math.max(1, Math.ceil((total * tickMs) / (1000 * seconds)))
  while (state.fed < total && command.child.exitCode === null) {
    const left = total - state.fed
    const count = mayEnd() ? Math.min(portion, left) : Math.min(portion, Math.floor(trickle * left))
    if (count > 0 && !input.write(lines.take(count))) await Promise.race([once(input, 'drain'), command.ended])
    state.fed += count
    await sleep(tickMs)
  }
  input.end()
  await succeeded(command)
}
