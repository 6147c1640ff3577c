/**
 * AWS on loopback: MiniStack from PyPI, in a virtual environment of the project.
 *
 * For tests and measurements alike, so nothing of a test runner is used here. `sharedEmulator` is started by the
 * first process of a test run that needs it, or taken from `PAWL_AWS_ENDPOINT`; `startEmulator` starts one to be
 * reset, killed or restarted. The installation is kept in `.cache`, data in the system's directory for temporary
 * files. A guard ends an emulator whose owner is gone, however it went, with the function workers that it started.
 */
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const script = fileURLToPath(new URL('../../scripts/aws/emulator.sh', import.meta.url))
const pinned = readFileSync(new URL('../../scripts/aws/requirements.txt', import.meta.url), 'utf8').trim()
const cache = fileURLToPath(new URL(`../../.cache/${pinned.replace('==', '-')}`, import.meta.url))
const startMs = 60_000

/** What clients of the SDK need to reach an emulator; S3 clients add `forcePathStyle`. */
export interface EmulatorClientOptions {
  readonly endpoint: string
  readonly region: string
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string }
}

/** How an emulator is started. */
export interface EmulatorOptions {
  /** Process whose end ends the emulator; default: this one. */
  readonly owner?: number
  /** More of its environment, which its functions inherit. */
  readonly environment?: Readonly<Record<string, string>>
}

export interface Emulator {
  /** `http://127.0.0.1:PORT`. */
  readonly endpoint: string
  readonly client: EmulatorClientOptions
  /** What a process needs to take the emulator for AWS: the CDK, a command, a function. */
  readonly environment: Readonly<Record<string, string>>
  /** Where its state, its log and its temporary files lie. */
  readonly directory: string
  /** Forgets everything. */
  reset(): Promise<void>
  /** Orderly stop, which keeps its state. */
  stop(): Promise<void>
  /** SIGKILL, to its function workers too; what was not saved by an orderly stop is gone. */
  kill(): Promise<void>
  /** Starts again with the state of the last orderly stop, on the same port. */
  restart(): Promise<void>
  /** Kills it and deletes its data. */
  remove(): Promise<void>
}

/** What the tests lack, as a sentence; null when an emulator can be started. */
export function missingEmulatorTool(): string | null {
  if (existsSync(join(cache, '.complete'))) return null
  try {
    execFileSync('python3', ['-c', 'import ensurepip, venv'], { stdio: 'ignore' })
    return null
  } catch {
    return 'python3 with venv is missing, so nothing was run against an emulator of AWS'
  }
}

/** The emulator of this test run. Starts it when it is the first to ask. Make buckets and tables of your own. */
export async function sharedEmulator(): Promise<Emulator> {
  const given = process.env.PAWL_AWS_ENDPOINT
  if (given) return foreignEmulator(given)
  // The runner outlives the processes of its test files.
  const owner = process.ppid
  const directory = join(tmpdir(), `pawl-aws-shared-${owner}`)
  const note = join(directory, 'endpoint')
  mkdirSync(directory, { recursive: true })
  const lock = join(directory, 'lock')
  await untilLocked(lock)
  try {
    if (existsSync(note)) {
      const endpoint = readFileSync(note, 'utf8')
      if (await isHealthy(endpoint)) return foreignEmulator(endpoint)
    }
    const { endpoint } = await launch(mkdtempSync(join(directory, 'emulator-')), { owner })
    spawn('bash', [script, 'guard', String(owner), directory], { detached: true, stdio: 'ignore' }).unref()
    writeFileSync(note, endpoint)
    return foreignEmulator(endpoint)
  } finally {
    rmdirSync(lock)
  }
}

/** An emulator of one's own. Always `remove()` it. */
export async function startEmulator(options: EmulatorOptions = {}): Promise<Emulator> {
  return launch(mkdtempSync(join(tmpdir(), 'pawl-aws-')), options)
}

async function untilLocked(lock: string): Promise<void> {
  for (let i = 0; i < startMs / 100; i++) {
    try {
      mkdirSync(lock)
      return
    } catch {
      await sleep(100)
    }
  }
  throw new Error(`${lock} is held by another process`)
}

function reachedAt(endpoint: string) {
  const key = 'test'
  return {
    endpoint,
    client: { endpoint, region: 'us-east-1', credentials: { accessKeyId: key, secretAccessKey: key } },
    environment: {
      AWS_ENDPOINT_URL: endpoint,
      AWS_REGION: 'us-east-1',
      AWS_DEFAULT_REGION: 'us-east-1',
      AWS_ACCESS_KEY_ID: key,
      AWS_SECRET_ACCESS_KEY: key,
    },
  }
}

/** An emulator that is not ours to stop. */
function foreignEmulator(endpoint: string): Emulator {
  const refuse = async () => {
    throw new Error('the shared emulator is not to be stopped or reset: use startEmulator')
  }
  const none = { directory: '', reset: refuse, stop: refuse, kill: refuse, restart: refuse, remove: refuse }
  return { ...reachedAt(endpoint), ...none }
}

async function launch(directory: string, options: EmulatorOptions): Promise<Emulator> {
  execFileSync('bash', [script, 'install', cache], { stdio: ['ignore', 'ignore', 'inherit'] })
  const port = await freePort()
  const endpoint = `http://127.0.0.1:${port}`
  const owner = String(options.owner ?? process.pid)
  spawn('bash', [script, 'guard', owner, directory], { detached: true, stdio: 'ignore' }).unref()
  const start = () => run(directory, port, endpoint, options.environment ?? {})
  await start()
  return {
    ...reachedAt(endpoint),
    directory,
    async reset() {
      const answer = await fetch(`${endpoint}/_ministack/reset`, { method: 'POST' })
      if (!answer.ok) throw new Error(`the emulator did not reset: ${answer.status}`)
    },
    stop: () => end(directory, 'SIGTERM'),
    kill: () => end(directory, 'SIGKILL'),
    restart: start,
    remove: async () => {
      await end(directory, 'SIGKILL')
      rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/** A random port that was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

async function run(
  directory: string,
  port: number,
  endpoint: string,
  environment: Readonly<Record<string, string>>,
): Promise<void> {
  const log = openSync(join(directory, 'console.log'), 'a')
  const emulator = spawn('bash', [script, 'run', cache, directory, String(port)], {
    // The leader of a group, so that its function workers can be ended with it.
    detached: true,
    stdio: ['ignore', log, log],
    env: { ...process.env, ...environment },
  })
  emulator.unref()
  let dead = false
  emulator.once('exit', () => {
    dead = true
  })
  writeFileSync(join(directory, 'emulator.pid'), String(emulator.pid))
  const deadline = Date.now() + startMs
  while (!(await isHealthy(endpoint))) {
    if (dead || Date.now() > deadline)
      throw new Error(
        `the emulator did not start:\n${readFileSync(join(directory, 'console.log'), 'utf8').slice(-2000)}`,
      )
    await sleep(50)
  }
}

async function isHealthy(endpoint: string): Promise<boolean> {
  try {
    return (await fetch(`${endpoint}/_ministack/health`)).ok
  } catch {
    return false
  }
}

async function end(directory: string, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  const file = join(directory, 'emulator.pid')
  if (!existsSync(file)) return
  const pid = Number(readFileSync(file, 'utf8'))
  const sent = (target: number, name: NodeJS.Signals | 0) => {
    try {
      return process.kill(target, name)
    } catch {
      return false
    }
  }
  sent(signal === 'SIGKILL' ? -pid : pid, signal)
  for (let i = 0; sent(pid, 0); i++) {
    if (i === 400) sent(-pid, 'SIGKILL')
    await sleep(25)
  }
  sent(-pid, 'SIGKILL')
  rmSync(file, { force: true })
}
