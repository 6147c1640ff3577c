/**
 * What the commands that steer a pipeline have in common: the options, the wish, the wait, and the answer.
 *
 * A command writes its wish into the head and rings (`epoch/steer.ts`), over the same ledger and launcher that the
 * runs use, in a directory as on AWS. It waits by reading the head, and never longer than it was told.
 */
import { systemClock } from '../adapters/system/clock.ts'
import type { PlaceStatus } from '../adapters/system/liveness.ts'
import { systemRandom } from '../adapters/system/random.ts'
import type { Steered, Wish } from '../epoch/steer.ts'
import { PawlError } from '../model/errors.ts'
import type { Head } from '../model/head.ts'
import { holderOf, type OpenedPipeline, withPipeline } from './open-directory.ts'
import { type Call, type OptionSpec, placeOptions } from './parse-arguments.ts'
import { headRecord } from './report-status.ts'

/** Options of every command that steers. */
export const steerOptions: Readonly<Record<string, OptionSpec>> = {
  ...placeOptions,
  timeout: { value: 'SECONDS', help: 'how long to wait; 600 by default' },
}

/** Options of commands whose wish is kept. */
export const wishOptions: Readonly<Record<string, OptionSpec>> = {
  why: { value: 'TEXT', help: 'the reason, which pawl status shows' },
  by: { value: 'NAME', help: 'who wants it; the user of this machine by default' },
}

/** Who wants what the command does, and why. */
export function wishOf({ options, env }: Call): Wish {
  return { by: options.text('by') ?? env.USER ?? null, why: options.text('why') ?? null }
}

/** A pipeline that a command steers. */
export interface SteeredPipeline extends OpenedPipeline {
  readonly job: Steered
  /** Nobody looks at the wish: the process that ran the directory last is gone. Never so on AWS. */
  isDead(head: Head): Promise<boolean>
  /** What is known of the run that held it last. */
  holder(head: Head): Promise<PlaceStatus>
  /** Reads the head until it is as wanted. Throws `WAIT_TIMED_OUT`, `PIPELINE_PARKED`. */
  until(isDone: (head: Head) => boolean): Promise<Head>
  /** Prints the head under `--json`, else the lines. */
  answer(head: Head, changed: boolean, lines: readonly string[]): Promise<void>
}

const timeoutSeconds = 600
const lookMs = { directory: 100, stack: 1000 }

/** Opens the pipeline that the call names. */
export function steering<T>(call: Call, steer: (pipeline: SteeredPipeline) => Promise<T>): Promise<T> {
  const { options, positionals, output } = call
  const timeoutMs = (options.number('timeout', 1) ?? timeoutSeconds) * 1000
  return withPipeline(options, positionals[0], (opened) => {
    const { ledger, launcher, directory, head: seen } = opened
    const clock = systemClock()
    const job: Steered = {
      compiled: { topology: { pipeline: seen.pipeline } },
      place: { ledger, launcher, clock, random: systemRandom() },
    }
    const holder = (head: Head) => holderOf(opened, head)
    return steer({
      ...opened,
      job,
      holder,
      isDead: async (head) => directory !== null && (await holder(head)) === 'gone',
      until: (isDone) => untilHead(job, isDone, timeoutMs, directory === null ? lookMs.stack : lookMs.directory),
      async answer(head, changed, lines) {
        output.record({ ...headRecord(head, head.run.open ? await holder(head) : null), changed })
        output.print(lines)
      },
    })
  })
}

async function untilHead(
  { compiled, place }: Steered,
  isDone: (head: Head) => boolean,
  timeoutMs: number,
  everyMs: number,
) {
  const { pipeline } = compiled.topology
  const deadline = place.clock.nowMs() + timeoutMs
  for (;;) {
    const head = await place.ledger.read(pipeline)
    if (head === null) throw new PawlError('PIPELINE_NOT_FOUND', `${pipeline} is gone`, { pipeline })
    if (isDone(head)) return head
    if (head.parked?.kind === 'failure') throw new PawlError('PIPELINE_PARKED', reasonOf(head), { pipeline })
    if (place.clock.nowMs() > deadline) {
      const parked = head.parked === null ? '' : `, whose promotion waits: ${reasonOf(head)}`
      throw new PawlError('WAIT_TIMED_OUT', `${pipeline}${parked}`, { pipeline, seconds: timeoutMs / 1000 })
    }
    await place.clock.sleep(everyMs)
  }
}

/** Why it is parked, without the next step that the message may carry already. */
export function reasonOf({ pipeline, parked }: Head): string {
  return `${pipeline}: ${(parked?.message ?? 'for an unknown reason').replace(/\.? Next: .*$/s, '')}`
}
