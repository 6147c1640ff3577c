/**
 * Jobs as processes: started, listened to, measured from outside, killed.
 *
 * A job tells what happens to it in lines `EVT name=value …` on standard output; everything else it prints goes to a
 * file. What it uses is read from /proc, which is why figures exist on Linux only.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { openSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

/** Ticks a second of /proc; 100 on every Linux that Node runs on. */
const ticksPerSecond = 100

/** How to start a job. */
export interface JobCommand {
  readonly command: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Where its error output goes. */
  readonly log: string
}

/** A running job. */
export interface RunningJob {
  readonly pid: number
  readonly startedAtMs: number
  /** The fields of the first line whose first field is `name`; null when the job ends, or time is up, before. */
  event(name: string, timeoutMs: number): Promise<Readonly<Record<string, string>> | null>
  /** User and system seconds of all its threads so far. */
  cpuSeconds(): number
  /** Largest resident memory so far, in MB. */
  peakMb(): number
  /** Ends it; resolves when it is gone. */
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>
  readonly ended: Promise<void>
  /** The end of its error output. */
  lastWords(): string
}

/** Starts a job. */
export function startJob({ command, args, env, log }: JobCommand): RunningJob {
  const startedAtMs = Date.now()
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', openSync(log, 'a')],
    env: { ...process.env, ...env },
  })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const { pid = 0 } = child
  return {
    pid,
    startedAtMs,
    event: listener(child, ended),
    cpuSeconds: () => cpuSecondsOf(pid),
    peakMb: () => peakMbOf(pid),
    ended,
    lastWords: () => readFileSync(log, 'utf8').slice(-2000),
    async end(signal) {
      child.kill(signal)
      const timer = setTimeout(() => child.kill('SIGKILL'), 20_000)
      await ended
      clearTimeout(timer)
    },
  }
}

function listener(child: ChildProcess, ended: Promise<void>): RunningJob['event'] {
  const seen = new Map<string, Record<string, string>>()
  const waiting = new Map<string, (fields: Record<string, string>) => void>()
  const lines = createInterface({ input: child.stdout! })
  lines.on('line', (line) => {
    // Pawl's own report; the last one counts.
    if (line.startsWith('{') && line.includes('"event":"finalized"'))
      seen.set('finalized', { at: String(JSON.parse(line).atMs) })
    if (!line.startsWith('EVT ')) return
    const words = line.slice(4).split(' ')
    const fields = Object.fromEntries(words.map((word) => word.split('=') as [string, string]))
    const name = words[0].split('=')[0]
    if (seen.has(name)) return
    seen.set(name, fields)
    waiting.get(name)?.(fields)
  })
  const closed = Promise.all([ended, new Promise((resolve) => lines.once('close', resolve))])
  return async (name, timeoutMs) => {
    const known = seen.get(name)
    if (known) return known
    const told = new Promise<Record<string, string>>((resolve) => waiting.set(name, resolve))
    const late = new AbortController()
    const over = sleep(timeoutMs, null, { signal: late.signal }).catch(() => null)
    const found = await Promise.race([told, closed.then(() => seen.get(name) ?? null), over])
    late.abort()
    return found
  }
}

/** User and system seconds of a process; 0 when it is gone. */
export function cpuSecondsOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
  } catch {
    return 0
  }
}

function peakMbOf(pid: number): number {
  try {
    const found = /VmHWM:\s*(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
    return Math.round(Number(found?.[1] ?? 0) / 1024)
  } catch {
    return 0
  }
}

/** Load of the machine over the last minute. */
export function load(): string {
  try {
    return readFileSync('/proc/loadavg', 'utf8').split(' ')[0]
  } catch {
    return '?'
  }
}
