/**
 * Workers: `pawl run` as real processes that can be killed, stopped for a while and let go on.
 *
 * What a worker says is kept with the time at which it was heard, so that a test can aim at a moment of an epoch.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { ProgressEvent } from '../../lib/model/event.ts'

const main = fileURLToPath(new URL('../../lib/cli/main.ts', import.meta.url))

/** An event of a worker and when it was heard, in `performance.now()`. */
export interface Heard {
  readonly event: ProgressEvent
  readonly atMs: number
}

/** How a process ended. */
export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** A running `pawl run`. */
export interface Worker {
  readonly pid: number
  readonly startedAtMs: number
  /** Grows. */
  readonly heard: readonly Heard[]
  /** Lines of its error output; grows. */
  readonly complaints: readonly string[]
  /** Resolves when the process is gone and its output read. */
  readonly ended: Promise<Ended>
  readonly isAlive: boolean
  /** Sends SIGKILL and waits until the process is gone. */
  kill(): Promise<void>
  signal(name: NodeJS.Signals): void
  /** Seconds of CPU that it has used. */
  cpuSeconds(): number
}

/** Starts the `pawl` command with any arguments; its output is the caller's. */
export function startPawl(args: readonly string[], env: Readonly<Record<string, string>> = {}): ChildProcess {
  const words = ['--conditions=pawl-source', main, ...args]
  return spawn(process.execPath, words, { stdio: ['pipe', 'pipe', 'pipe'], env: { PATH: process.env.PATH, ...env } })
}

/** Runs the command to its end. */
export async function runPawl(
  args: readonly string[],
  options: { readonly env?: Readonly<Record<string, string>>; readonly input?: string } = {},
): Promise<Ended & { readonly stdout: string; readonly stderr: string }> {
  const child = startPawl(args, options.env)
  const texts = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name]!.setEncoding('utf8').on('data', (text: string) => {
      texts[name] += text
    })
  child.stdin!.on('error', () => {})
  child.stdin!.end(options.input ?? '')
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  return { code, signal, ...texts }
}

/** Starts a worker; `args` as after `pawl run`. */
export function startWorker(
  args: readonly string[],
  onEvent: (event: ProgressEvent, worker: Worker) => void = () => {},
  env: Readonly<Record<string, string>> = {},
): Worker {
  const child = startPawl(['run', ...args, '--json'], env)
  const heard: Heard[] = []
  const complaints: string[] = []
  const ended = once(child, 'close').then(([code, signal]): Ended => ({ code, signal }))
  createInterface(child.stderr!).on('line', (line) => complaints.push(line))
  const worker: Worker = {
    pid: child.pid!,
    startedAtMs: performance.now(),
    heard,
    complaints,
    ended,
    get isAlive() {
      return child.exitCode === null && child.signalCode === null
    },
    async kill() {
      child.kill('SIGKILL')
      await ended
    },
    signal: (name) => void child.kill(name),
    cpuSeconds: () => cpuSecondsOf(child.pid!),
  }
  createInterface(child.stdout!).on('line', (line) => {
    // A process that is killed may leave half a line.
    if (!line.startsWith('{"event"') || !line.endsWith('}')) return
    const event = JSON.parse(line) as ProgressEvent
    heard.push({ event, atMs: performance.now() })
    onEvent(event, worker)
  })
  return worker
}

/** Waits until a worker says something that fits; null when it does not in time, or ends. */
export async function hear(
  worker: Worker,
  fits: (event: ProgressEvent) => boolean,
  timeoutMs: number,
): Promise<Heard | null> {
  const deadline = performance.now() + timeoutMs
  for (let at = worker.heard.length; performance.now() < deadline; await sleep(2)) {
    for (; at < worker.heard.length; at++) if (fits(worker.heard[at].event)) return worker.heard[at]
    if (!worker.isAlive) return null
  }
  return null
}

/** Fields 14 and 15 of `/proc/PID/stat`, in ticks of 10 ms; see proc(5). */
function cpuSecondsOf(pid: number): number {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) / 100
  } catch {
    return 0
  }
}
