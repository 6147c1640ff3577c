/**
 * Draining a filled topic: how much a system does for a second of its processor, and how fast.
 *
 * Clocks: `wallS` and `cpuS` run from just before the process is started to its last commit (Pawl's `cpuS`: to the end
 * of the process, which ends by itself); `processingS` runs from the first record to the last commit, since the start of a
 * JVM is a figure of its own. Every output is verified.
 */
import { rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { load, type RunningJob, startJob } from './processes.ts'
import { type JobName, type JobSpec, jobCommand, jobTopics, type SystemName } from './systems.ts'
import type { Topics, Verdict } from './topics.ts'

/** Which run. */
export interface DrainOptions {
  readonly system: SystemName
  readonly job: JobName
  readonly records: number
  readonly intervalMs: number
  readonly parallelism: number
  /** Pawl: bids by plain `json()` in place of `jsonFields`. */
  readonly plainJson?: boolean
}

/** Its figures. */
export interface DrainResult extends DrainOptions {
  readonly cpuS: number
  readonly wallS: number
  readonly firstS: number
  readonly processingS: number
  readonly perCpuS: number
  readonly perS: number
  readonly peakMb: number
  readonly load: string
  readonly verdict: Verdict
}

/** How long a job may be silent. */
const timeoutMs = 240_000

/** Runs a job over a filled topic, verifies it, and drops what it left on disk. */
export async function drain(topics: Topics, options: DrainOptions, directory: string): Promise<DrainResult> {
  const { system, job, records, intervalMs, parallelism } = options
  const { topic: input, holds } = await topics.filled(jobTopics[job], records)
  const id = `${system}-${job}-${Date.now()}`
  const output = `out-${id}`
  await topics.create(output)
  const expected = [holds[job], job === 'count' ? holds.windows : 0] as const
  const spec: JobSpec = {
    ...{ system, job, input, output, id, intervalMs, parallelism, expected },
    bootstrap: topics.bootstrap,
    directory: `${directory}/${id}`,
    untilCaughtUp: true,
    plainJson: options.plainJson ?? false,
  }
  const before = load()
  const running = startJob(jobCommand(spec))
  try {
    const used = await (system === 'pawl' ? pawlUsed(running) : peerUsed(topics, spec, running))
    const verdict = await topics.verify(job, input, output)
    const processingS = used.wallS - used.firstS
    return {
      ...options,
      ...used,
      processingS,
      perCpuS: records / used.cpuS,
      perS: records / processingS,
      load: before,
      verdict,
    }
  } finally {
    await running.end('SIGKILL')
    rmSync(spec.directory, { recursive: true, force: true })
  }
}

type Used = Pick<DrainResult, 'cpuS' | 'wallS' | 'firstS' | 'peakMb'>

async function pawlUsed(running: RunningJob): Promise<Used> {
  const exit = await running.event('exit', timeoutMs)
  const [first, last] = await Promise.all([running.event('first', 0), running.event('finalized', 0)])
  await running.ended
  if (exit === null || first === null || last === null)
    throw new Error(`pawl ended without a word: ${running.lastWords()}`)
  const since = (atMs: string) => (Number(atMs) - running.startedAtMs) / 1000
  return {
    ...{ cpuS: Number(exit.cpu) / 1e6, peakMb: Math.round(Number(exit.rss) / 1024) },
    ...{ wallS: since(last.at), firstS: since(first.first) },
  }
}

async function peerUsed(topics: Topics, spec: JobSpec, running: RunningJob): Promise<Used> {
  const done = await running.event('done', timeoutMs)
  const first = await running.event('first', 0)
  if (done === null || first === null)
    throw new Error(`${spec.id} ended early or stood still, see ${spec.directory}/errors.log`)
  const atMs = await (spec.system === 'streams'
    ? streamsCommitted(topics, spec, done.need)
    : flinkCommitted(topics, spec))
  const since = (ms: number) => (ms - running.startedAtMs) / 1000
  return {
    cpuS: running.cpuSeconds(),
    wallS: since(atMs),
    firstS: since(Number(first.first)),
    peakMb: running.peakMb(),
  }
}

/** Nothing of the output is open, and it stays so: Flink's group offsets come late and say little. */
async function flinkCommitted(topics: Topics, { output }: JobSpec): Promise<number> {
  for (;;) {
    const atMs = Date.now()
    const seen = await topics.ends(output)
    if (!seen.open) {
      await sleep(150)
      const again = await topics.ends(output)
      if (!again.open && again.ends.every((end, partition) => end === seen.ends[partition])) return atMs
    }
    await sleep(15)
  }
}

/** The group's offsets, which are part of its transactions, are past all input, internal topics included. */
async function streamsCommitted(topics: Topics, spec: JobSpec, internal: string): Promise<number> {
  const wanted = new Map<string, Map<number, bigint>>()
  const want = (topic: string, partition: number, end: bigint) =>
    wanted.set(topic, (wanted.get(topic) ?? new Map<number, bigint>()).set(partition, end))
  for (const [partition, end] of (await topics.ends(spec.input)).ends.entries()) want(spec.input, partition, end)
  for (const item of internal.split(',').filter(Boolean)) {
    const [, topic, partition, end] = /^(.*)-(\d+):(\d+)$/.exec(item)!
    want(topic, Number(partition), BigInt(end))
  }
  for (;;) {
    const atMs = Date.now()
    let all = true
    for (const [topic, ends] of wanted) {
      const offsets = await topics.groupOffsets(spec.id, topic)
      for (const [partition, end] of ends) all &&= offsets[partition] >= end
    }
    if (all && !(await topics.ends(spec.output)).open) return atMs
    await sleep(15)
  }
}
