/**
 * `npm run bench`: the race against Flink and Kafka Streams, in one run on one machine, every output verified.
 *
 *     npm run bench [-- [quick] [pawl] [all] [large=10] [no-parts] [passthrough] [count] [wordcount]]
 *     npm run bench -- sinks
 *
 * Starts a broker of its own, fills topics, runs each job on each system, prints one table and writes it to
 * docs/performance.md. `quick` takes smaller topics and leaves the page as it is, `pawl` runs Pawl alone, `all` both
 * peers at every setting (by default both at the first, and the better of them at the others) and one setting more,
 * `large` says how many millions of bids the largest topic holds (the other jobs get fewer), job names choose jobs. `sinks` is
 * another matter: how fast databases and Kafka are written (`sinks.ts`).
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { missingTool } from '../test/support/kafka-broker.ts'
import { productionBroker, runPart } from './broker.ts'
import { type DrainOptions, type DrainResult, drain } from './drain.ts'
import { figuresOf } from './figures.ts'
import { type PacedResult, paced } from './paced.ts'
import { tableText, writePage } from './report.ts'
import { measureSinks } from './sinks.ts'
import { buildPawl, buildPeers, type JobName, jobTopics, type SystemName } from './systems.ts'
import { Topics } from './topics.ts'

const words = process.argv.slice(2)
const has = (word: string) => words.includes(word)
const quick = has('quick')
const named = (Object.keys(jobTopics) as JobName[]).filter(has)
const jobs = named.length > 0 ? named : (Object.keys(jobTopics) as JobName[])
const peers: readonly SystemName[] = has('pawl') ? [] : ['flink', 'streams']
const small = quick ? 200_000 : 1_000_000
const millions = Number(words.find((word) => word.startsWith('large='))?.slice('large='.length) ?? 10)
const large: Readonly<Record<JobName, number>> = {
  passthrough: millions * 1_000_000,
  count: Math.ceil(millions * 0.5) * 1_000_000,
  wordcount: Math.ceil(millions * 0.2) * 1_000_000,
}
/** At these sizes the other would take longer than the rest of the race. */
const largePeers: Readonly<Record<JobName, readonly SystemName[]>> = {
  passthrough: ['flink', 'streams'],
  count: ['flink'],
  wordcount: ['flink'],
}
const settings: readonly (readonly [intervalMs: number, parallelism: number])[] = [
  [1000, 1],
  [1000, 2],
  [10_000, 1],
  ...(has('all') ? [[10_000, 2] as const] : []),
]
const parts: readonly (readonly [script: string, ...args: string[]])[] = [
  ['kafka-read.ts'],
  ['program.ts'],
  ['kafka-promote.ts', '--rounds', '3'],
  ['snapshot.ts'],
  ['embedded-commit.ts'],
]

const startedAtMs = Date.now()
const drains: DrainResult[] = []
const pacedRuns: PacedResult[] = []
const outputs: [string, string][] = []

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

async function drainOne(topics: Topics, directory: string, options: DrainOptions): Promise<void> {
  const result = await drain(topics, options, directory)
  drains.push(result)
  const { system, job, records, intervalMs, parallelism, plainJson, verdict } = result
  const figures = `${Math.round(result.perCpuS)}/CPU-s, ${Math.round(result.perS)}/s, first after ${result.firstS.toFixed(2)} s, ${result.peakMb} MB`
  say(
    `${system}${plainJson ? ' with json()' : ''} ${job} ${records} ${intervalMs} ms ×${parallelism}: ${figures}, load ${result.load}, ${JSON.stringify(verdict)}`,
  )
}

/** The peer that did more for a second of its processor. */
function better(job: JobName, records: number): SystemName[] {
  const runs = drains.filter((run) => run.job === job && run.records === records && run.system !== 'pawl')
  return runs
    .sort((a, b) => b.perCpuS - a.perCpuS)
    .slice(0, 1)
    .map(({ system }) => system)
}

async function drainJob(topics: Topics, directory: string, job: JobName): Promise<void> {
  for (const [at, [intervalMs, parallelism]] of settings.entries()) {
    if (quick && at > 0) break
    const rivals = at === 0 || has('all') ? peers : better(job, small)
    for (const system of [...rivals, 'pawl' as const])
      await drainOne(topics, directory, { system, job, records: small, intervalMs, parallelism })
    if (at === 0 && jobTopics[job] === 'bids')
      await drainOne(topics, directory, {
        system: 'pawl',
        job,
        records: small,
        intervalMs,
        parallelism,
        plainJson: true,
      })
  }
  if (quick) return
  const rivals = peers.filter((peer) => has('all') || largePeers[job].includes(peer))
  for (const [system, parallelism] of [...rivals.map((peer) => [peer, 2] as const), ['pawl', 2], ['pawl', 1]] as const)
    await drainOne(topics, directory, { system, job, records: large[job], intervalMs: 1000, parallelism })
}

async function pace(topics: Topics, directory: string): Promise<void> {
  const seconds = quick ? 8 : 10
  for (const system of [...peers, 'pawl'] as SystemName[]) {
    for (const intervalMs of system === 'pawl' ? [1000, 100] : [1000]) {
      const idleSeconds = intervalMs === 1000 ? 60 : null
      const result = await paced(topics, { system, intervalMs, rate: 5000, seconds, idleSeconds }, directory)
      pacedRuns.push(result)
      say(JSON.stringify(result))
    }
  }
}

async function measureParts(bootstrap: string): Promise<void> {
  for (const part of parts) {
    const output = await runPart(part, bootstrap)
    outputs.push(output)
    say(output.join('\n'))
  }
}

function versions(): string {
  const pom = readFileSync(new URL('peers/pom.xml', import.meta.url), 'utf8')
  const of = (name: string) => new RegExp(`<${name}.version>(.*?)<`).exec(pom)?.[1]
  return `Kafka and Kafka Streams ${of('kafka')}, Flink ${of('flink')}`
}

function report(): void {
  const figures = figuresOf({ drains, paced: pacedRuns })
  say(`\n${tableText(figures)}\n`)
  const runs = [...drains, ...pacedRuns]
  const verified = runs.filter((run) => run.verdict.verified).length
  say(
    `${verified} of ${runs.length} outputs are as they must be; ${((Date.now() - startedAtMs) / 60_000).toFixed(1)} minutes`,
  )
  if (verified < runs.length) process.exitCode = 1
  if (quick || peers.length === 0 || named.length > 0) return
  writePage({
    ...{ figures, parts: outputs, versions: versions(), command: ['npm run bench', ...words].join(' -- ') },
    java: execFileSync('java', ['--version'], { encoding: 'utf8' }).split('\n')[0],
    loads: drains.map((run) => run.load),
    minutes: (Date.now() - startedAtMs) / 60_000,
    runs: [runs.length, verified],
  })
}

async function race(): Promise<void> {
  buildPawl()
  buildPeers()
  const directory = mkdtempSync(join(tmpdir(), 'pawl-bench-'))
  const broker = await productionBroker()
  const topics = new Topics(broker.bootstrap)
  try {
    for (const job of jobs) await drainJob(topics, directory, job)
    if (named.length === 0) await pace(topics, directory)
    if (!has('no-parts') && named.length === 0) await measureParts(broker.bootstrap)
    report()
  } finally {
    await topics.close()
    await broker.remove()
    rmSync(directory, { recursive: true, force: true })
  }
}

const missing = missingTool()
const known = [...Object.keys(jobTopics), 'quick', 'pawl', 'all', 'no-parts', 'sinks']
const unknown = words.filter((word) => !known.includes(word) && !/^large=\d+$/.test(word))
if (unknown.length > 0) {
  say(`${unknown.join(', ')} is not known; say some of ${known.join(', ')}, large=10`)
  process.exitCode = 2
} else if (has('sinks')) await measureSinks(missing)
else if (missing === null) await race()
else {
  say(`${missing}: Pawl runs alone, in a directory`)
  buildPawl()
  await (await import('./alone.ts')).alone(small, jobs)
}
