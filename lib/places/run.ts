/**
 * Run: keeps a pipeline going in this process, by the same machine as everywhere.
 *
 * The trigger of the embedded place: looks whether there is anything to do, rings, and walks each run that a ring
 * starts. While another process holds the pipeline it stands by, and takes over when that one is gone or its head
 * has not moved for a lease.
 */
import { type Interpreter, interpreter } from '../adapters/interpreter/machine.ts'
import { causeOf } from '../epoch/cause.ts'
import { stepCalls } from '../epoch/execute.ts'
import type { Job } from '../epoch/job.ts'
import { type Look, look } from '../epoch/look.ts'
import { machine, type StepName, stepNames } from '../epoch/machine.ts'
import { reportHealth } from '../epoch/report-health.ts'
import { ring } from '../epoch/ring.ts'
import type { RunKey } from '../model/steps.ts'
import type { Invoker, RunStart } from '../ports/system.ts'
import { StateCache } from '../state/cache.ts'
import type { Compiled } from '../stream/compiled.ts'
import type { EmbeddedPlace } from './embedded.ts'
import { type Rest, rests } from './rest.ts'

/** How a pipeline is kept going. */
export interface RunOptions {
  readonly place: EmbeddedPlace
  /** `caught-up`: until everything that the logs hold is visible. */
  readonly until: 'stopped' | 'caught-up'
  /** Ends after the epoch under way. */
  readonly signal?: AbortSignal
  /** Lifts a park that waits for a person. */
  readonly resume?: boolean
  /** Where tasks of large epochs run; in this process when absent. */
  readonly invoker?: Invoker
}

/** How it ended. */
export interface RunOutcome {
  readonly reason: 'stopped' | 'caught-up' | 'parked' | 'paused'
  /** Code and message of a park; of a pause the person's reason. */
  readonly code: string | null
  readonly message: string | null
}

const retryPauseMs = 50
const standbyMs = 250
/** Between two words on how the pipeline fares. */
const healthMs = 10_000
/** Between two tries while a disk is full or the ledger does not answer. */
const troubleMs = 1000

/**
 * Runs until stopped, caught up, or parked for a person. What is transient (a full disk, a ledger that does not
 * answer) is thrown at the first look, so that a person at the terminal learns of it, and waited for afterwards.
 */
export async function runPipeline(compiled: Compiled, options: RunOptions): Promise<RunOutcome> {
  const { place, signal } = options
  const stopping = () => signal?.aborted ?? false
  const job: Job = { compiled, place, states: new StateCache(), warm: new Map(), stopping }
  const ended = new AbortController()
  const telling = tellHealth(job, ended.signal)
  try {
    return await keepGoing(job, options)
  } finally {
    ended.abort()
    await telling
  }
}

/** Beside the run, so that a run that hangs is seen to stall. What cannot be read, the run itself complains of. */
async function tellHealth(job: Job, signal: AbortSignal): Promise<void> {
  const { clock, ledger, telemetry } = job.place
  const { pipeline } = job.compiled.topology
  while (!signal.aborted) {
    await clock.sleep(healthMs, signal)
    if (signal.aborted) return
    const head = await ledger.read(pipeline).catch(() => null)
    telemetry.emit(await reportHealth(job, head))
  }
}

async function keepGoing(job: Job, options: RunOptions): Promise<RunOutcome> {
  const { place, signal } = options
  const { compiled } = job
  const stopping = () => signal?.aborted ?? false
  const runner: Runner = {
    job,
    options,
    walk: await localMachine(job, options.invoker ?? null),
    startedAtMs: place.clock.nowMs(),
    watch: leaseWatch(job),
    rest: rests(job),
  }
  let told = ''
  for (let first = true; !stopping(); ) {
    try {
      const outcome = await turn(runner, first)
      if (outcome !== null) return outcome
      first = false
      told = ''
    } catch (error) {
      const { kind, code, message } = causeOf(error)
      // Another process at the ledger is no fault: this one stands by from the start.
      if (kind !== 'Retryable' || (first && code !== 'LEDGER_BUSY')) throw error
      if (message !== told)
        place.telemetry.emit({ event: 'waiting', pipeline: compiled.topology.pipeline, code, message })
      told = message
      await place.clock.sleep(troubleMs, signal)
    }
  }
  return { reason: 'stopped', code: null, message: null }
}

interface Runner {
  readonly job: Job
  readonly options: RunOptions
  readonly walk: Interpreter
  readonly startedAtMs: number
  readonly watch: LeaseWatch
  readonly rest: Rest
}

/** Looks once, does what is due, and pauses when nothing was. */
async function turn(
  { job, options, walk, startedAtMs, watch, rest }: Runner,
  first: boolean,
): Promise<RunOutcome | null> {
  const { place } = options
  const { compiled } = job
  const seen = await look(job)
  if (first && options.resume && seen.head?.parked) await ring(place, compiled.topology.pipeline)
  else if (seen.due) await wake(job, seen, watch)
  else if (seen.head?.parked?.kind === 'failure') return parkedOutcome(seen)
  else if (options.until === 'caught-up' && seen.head?.paused) return pausedOutcome(seen)
  else if (options.until === 'caught-up' && isCaughtUp(seen)) return { reason: 'caught-up', code: null, message: null }
  for (let start = place.starts.shift(); start !== undefined; start = place.starts.shift()) {
    // What was watched here need not be watched again by the run that takes over.
    await walk.run({ run: runKey(job, start, startedAtMs, options), watch: watch.standingBy ? watch : null })
  }
  if (watch.standingBy) await place.clock.sleep(standbyMs, options.signal)
  else if (!seen.due) await rest(seen, idleMs(compiled), options.signal)
  return null
}

function isCaughtUp({ head, lag }: Look): boolean {
  return head !== null && lag !== null && head.promotedThrough === head.committed.epoch
}

function parkedOutcome({ head }: Look): RunOutcome {
  return { reason: 'parked', code: head?.parked?.code ?? null, message: head?.parked?.message ?? null }
}

function pausedOutcome({ head }: Look): RunOutcome {
  return { reason: 'paused', code: 'PIPELINE_PAUSED', message: head?.paused?.why ?? null }
}

/** Between two looks at a pipeline at rest. */
function idleMs(compiled: Compiled): number {
  return Math.max(20, Math.min(compiled.settings.checkpoint.intervalMs, 1000))
}

function runKey({ compiled, place }: Job, start: RunStart, startedAtMs: number, options: RunOptions): RunKey {
  const { intervalMs } = compiled.settings.checkpoint
  return {
    pipeline: start.pipeline,
    id: place.random.id(),
    sequence: start.sequence,
    place: place.place,
    lingerMs: options.until === 'caught-up' ? 0 : Math.max(2000, 3 * intervalMs),
    resume: options.resume ?? false,
    startedAtMs,
  }
}

async function localMachine(job: Job, invoker: Invoker | null): Promise<Interpreter> {
  const resources = Object.fromEntries(stepNames.map((name) => [name, `local:${name}`])) as Record<StepName, string>
  const definition = machine({ resources, settings: job.compiled.settings })
  return interpreter({ definition, steps: stepCalls(job, invoker), clock: job.place.clock, retryPauseMs })
}

interface LeaseWatch {
  standingBy: boolean
  revision: number
  sinceMs: number
}

function leaseWatch(job: Job): LeaseWatch {
  return { standingBy: false, revision: -1, sinceMs: job.place.clock.nowMs() }
}

/** Rings; when another process holds the pipeline and its head does not move for a lease, starts a run to take over. */
async function wake(job: Job, { head }: Look, watch: LeaseWatch): Promise<void> {
  const { place } = job
  const { pipeline } = job.compiled.topology
  const rung = await ring(place, pipeline)
  watch.standingBy = rung === 'absorbed'
  if (!watch.standingBy || head === null) return
  const nowMs = place.clock.nowMs()
  if (head.revision !== watch.revision) Object.assign(watch, { revision: head.revision, sinceMs: nowMs })
  if (nowMs - watch.sinceMs < head.run.leaseMs) return
  await place.launcher.start({ pipeline, sequence: head.run.sequence + 1, wakes: await place.ledger.wakes(pipeline) })
}
