/**
 * The three systems, each as a command that runs one job.
 *
 * The peers come from `bench/peers`, built by Maven; Pawl is its own command line on the compiled package, as a user
 * would start it. All read the same topics and write the same rows.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { JobCommand } from './processes.ts'

/** The jobs, by the topic that they read. */
export const jobTopics = { passthrough: 'bids', count: 'bids', wordcount: 'lines' } as const
/** Name of a job. */
export type JobName = keyof typeof jobTopics
/** Name of a system. */
export type SystemName = 'pawl' | 'flink' | 'streams'

/** One job of one system on given topics. */
export interface JobSpec {
  readonly system: SystemName
  readonly job: JobName
  readonly input: string
  readonly output: string
  /** Names group, transactions and state. */
  readonly id: string
  /** Null: Pawl over logs in a directory. */
  readonly bootstrap: string | null
  readonly intervalMs: number
  readonly parallelism: number
  /** Records at the last stage, and windows, after which a peer is done. */
  readonly expected: readonly [seen: number, windows: number]
  /** For state and logs; survives a restart. */
  readonly directory: string
  /** Pawl: until everything is visible. */
  readonly untilCaughtUp: boolean
  /** Pawl: bids by plain `json()` in place of `jsonFields`. */
  readonly plainJson?: boolean
  /** Flink: where to start from. */
  readonly checkpoint?: string
}

const pipelines = '../dist/bench/pipelines.js'
const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const opened = ['lang', 'util', 'util.concurrent', 'time', 'nio'].map(
  (name) => `--add-opens=java.base/java.${name}=ALL-UNNAMED`,
)
const quiet = ['-Dorg.slf4j.simpleLogger.defaultLogLevel=warn', '-Dorg.slf4j.simpleLogger.showDateTime=true']

/** Class path of one module of `bench/peers`. */
function classPath(module: string): string {
  return `${here(`peers/${module}/target/${module}-1.jar`)}:${here(`peers/${module}/target/lib/`)}*`
}

/** Arguments to java for one of the tools of `bench/peers`. */
export function toolArguments(tool: string, ...args: readonly string[]): string[] {
  const memory = ['-Xmx1g', '-XX:+UseSerialGC', '-Dorg.slf4j.simpleLogger.defaultLogLevel=error']
  return [...memory, '-cp', classPath('tools'), `peers.${tool}`, ...args]
}

/** Builds the peers unless that was done. */
export function buildPeers(): void {
  if (existsSync(here('peers/streams/target/lib'))) return
  execFileSync('mvn', ['-q', '-B', 'package'], { cwd: here('peers'), stdio: ['ignore', 'inherit', 'inherit'] })
}

/** Compiles the package, so that Pawl runs as it is published, and the pipelines, as they would be deployed. */
export function buildPawl(): void {
  execFileSync('npm', ['run', '-s', 'build'], { cwd: here('..'), stdio: ['ignore', 'inherit', 'inherit'] })
  mkdirSync(here('../dist/bench'), { recursive: true })
  writeFileSync(here(pipelines), stripTypeScriptTypes(readFileSync(here('pipelines.ts'), 'utf8')))
}

/** The command that runs the job. */
export function jobCommand(spec: JobSpec): JobCommand {
  mkdirSync(spec.directory, { recursive: true })
  const log = `${spec.directory}/errors.log`
  if (spec.system === 'pawl')
    return { command: process.execPath, args: pawlArguments(spec), env: pawlEnvironment(spec), log }
  const { job, input, output, id, bootstrap, intervalMs, parallelism, expected, directory, checkpoint } = spec
  const args = [job, input, output, id, bootstrap, intervalMs, parallelism, ...expected, directory].map(String)
  if (checkpoint !== undefined) args.push(checkpoint)
  const [main, options] = spec.system === 'flink' ? ['FlinkJob', opened] : ['StreamsJob', []]
  const cp = ['-cp', classPath(spec.system)]
  return { command: 'java', args: ['-Xmx2g', ...options, ...quiet, ...cp, `peers.${main}`, ...args], log }
}

function pawlArguments({ job, bootstrap, directory, untilCaughtUp }: JobSpec): string[] {
  const run = ['run', here(pipelines), '--export', job, '--dir', `${directory}/pawl`, '--json']
  if (bootstrap !== null) run.push('--bootstrap', bootstrap)
  if (untilCaughtUp) run.push('--until', 'caught-up')
  return [here('../dist/cli/main.js'), ...run]
}

function pawlEnvironment(spec: JobSpec): Record<string, string> {
  return {
    BENCH_IN: spec.input,
    BENCH_OUT: spec.output,
    BENCH_ID: spec.id,
    BENCH_INTERVAL: String(spec.intervalMs),
    BENCH_SHARDS: String(spec.parallelism),
    BENCH_DECODER: spec.plainJson ? 'json' : 'fields',
  }
}
