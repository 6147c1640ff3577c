/**
 * A topic that fills at a steady rate: how old records are when they become visible, how long a killed job stays
 * silent, and what a job costs that has nothing to do.
 *
 * One run gives all three. Latency is the age of a record when a `read_committed` consumer sees it; the first seconds
 * are left out. Then the job is killed (SIGKILL) and started again at once: the silence ends with the first visible
 * record that is younger than the kill. When the input has ended and everything is visible, the idle job is watched.
 */
import { spawn } from 'node:child_process'
import { readdirSync, rmSync, statSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { startJob } from './processes.ts'
import { type JobSpec, jobCommand, type SystemName, toolArguments } from './systems.ts'
import type { Topics, Verdict } from './topics.ts'

/** Which run. */
export interface PacedOptions {
  readonly system: SystemName
  readonly intervalMs: number
  readonly rate: number
  /** How long latency is measured. */
  readonly seconds: number
  /** Null: neither killed nor watched at rest. */
  readonly idleSeconds: number | null
}

/** Its figures; null where not measured. */
export interface PacedResult extends PacedOptions {
  readonly p50Ms: number
  readonly p99Ms: number
  readonly silenceMs: number | null
  readonly idleCpuSPerMinute: number | null
  readonly verdict: Verdict
}

/** Left out: the job and the consumer have only begun. */
const warmMs = 5000
/** Longest silence that is waited for. */
const silenceMsMax = 60_000

/** Runs `passthrough` over bids that come at a rate, and verifies what became visible. */
export async function paced(topics: Topics, options: PacedOptions, directory: string): Promise<PacedResult> {
  const id = `paced-${options.system}-${Date.now()}`
  const spec: JobSpec = {
    ...{ system: options.system, job: 'passthrough', input: `in-${id}`, output: `out-${id}`, id },
    ...{ bootstrap: topics.bootstrap, intervalMs: options.intervalMs, parallelism: 1, expected: [999_999_999, 0] },
    ...{ directory: `${directory}/${id}`, untilCaughtUp: false },
  }
  await topics.create(spec.input)
  await topics.create(spec.output)
  let job = startJob(jobCommand(spec))
  const watched = watch(topics, spec.output)
  try {
    await sleep(4000)
    const killed = options.idleSeconds !== null
    const feedSeconds = warmMs / 1000 + options.seconds + (killed ? 20 : 0)
    const feed = topics.pace('bids', options.rate * feedSeconds, spec.input, options.rate)
    await watched.firstSeen
    const fromMs = Date.now() + warmMs
    await sleep(warmMs + options.seconds * 1000)
    const ages = watched.agesBetween(fromMs, Date.now())
    let silenceMs: number | null = null
    if (killed) {
      const atMs = Date.now()
      await job.end('SIGKILL')
      const from = checkpointOf(spec)
      job = startJob(jobCommand(from === null ? spec : { ...spec, checkpoint: from }))
      silenceMs = await watched.youngerThan(atMs, silenceMsMax)
    }
    await feed
    const verdict = await untilVerified(topics, spec)
    let idleCpuSPerMinute: number | null = null
    if (options.idleSeconds !== null) {
      await sleep(3000)
      const before = job.cpuSeconds()
      await sleep(options.idleSeconds * 1000)
      idleCpuSPerMinute = ((job.cpuSeconds() - before) * 60) / options.idleSeconds
    }
    return {
      ...options,
      p50Ms: percentile(ages, 0.5),
      p99Ms: percentile(ages, 0.99),
      silenceMs,
      idleCpuSPerMinute,
      verdict,
    }
  } finally {
    await job.end('SIGKILL')
    watched.stop()
    rmSync(spec.directory, { recursive: true, force: true })
  }
}

/** What is visible at last; a job that was killed may need a while. */
async function untilVerified(topics: Topics, { job, input, output }: JobSpec): Promise<Verdict> {
  for (let tries = 0; ; tries++) {
    const verdict = await topics.verify(job, input, output)
    if (verdict.verified || verdict.repeated > 0 || tries === 15) return verdict
    await sleep(1000)
  }
}

/** Flink starts again from its newest complete checkpoint. */
function checkpointOf({ system, directory }: JobSpec): string | null {
  if (system !== 'flink') return null
  const found = readdirSync(`${directory}/checkpoints`, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('_metadata'))
    .map((path) => `${directory}/checkpoints/${path}`)
    .sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)
  return found.length === 0 ? null : `file://${found[0].slice(0, -'/_metadata'.length)}`
}

interface Poll {
  readonly atMs: number
  readonly newestMs: number
  readonly ages: readonly (readonly [ageMs: number, count: number])[]
}

/** A consumer of its own process, at the start of the topic. */
function watch(topics: Topics, topic: string) {
  const child = spawn('java', toolArguments('Watch', topic, topics.bootstrap), { stdio: ['ignore', 'pipe', 'ignore'] })
  const polls: Poll[] = []
  const seen = Promise.withResolvers<void>()
  createInterface({ input: child.stdout }).on('line', (line) => {
    const [atMs, newestMs, ...ages] = line.split(' ')
    polls.push({
      atMs: Number(atMs),
      newestMs: Number(newestMs),
      ages: ages.map((age) => age.split(':').map(Number) as [number, number]),
    })
    seen.resolve()
  })
  return {
    firstSeen: seen.promise,
    agesBetween: (fromMs: number, toMs: number) =>
      polls.filter(({ atMs }) => atMs >= fromMs && atMs < toMs).flatMap(({ ages }) => ages),
    /** From `atMs` until a record is visible that was written later. */
    async youngerThan(atMs: number, maxMs: number): Promise<number> {
      for (;;) {
        const found = polls.find(({ newestMs }) => newestMs > atMs)
        if (found) return found.atMs - atMs
        if (Date.now() - atMs > maxMs) return Number.POSITIVE_INFINITY
        await sleep(10)
      }
    },
    stop: () => child.kill('SIGKILL'),
  }
}

/** Of ages with how often each was seen. */
function percentile(ages: Poll['ages'], share: number): number {
  const sorted = [...ages].sort(([a], [b]) => a - b)
  let left = Math.ceil(sorted.reduce((sum, [, count]) => sum + count, 0) * share)
  for (const [age, count] of sorted) {
    left -= count
    if (left <= 0) return age
  }
  return Number.NaN
}
