/**
 * Real servers for tests: a program of Debian on a random port, with its data in a directory for temporary files.
 *
 * Never as root: databases refuse that, so the program runs as its own user where there is one. A guard ends a server
 * whose owner is gone, however it went, and deletes its data.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const startMs = 30_000

/** How a server is made and started. */
export interface ServerOptions {
  readonly name: string
  /** User of the system to run as, when this process is root. */
  readonly user: string
  /** Makes what must be there before the first start. */
  prepare?(directory: string, run: RunAs): void
  command(directory: string, port: number): readonly [program: string, ...args: string[]]
}

/** Runs a program to its end as the server's user. */
export type RunAs = (program: string, args: readonly string[]) => void

export interface Server {
  readonly port: number
  readonly directory: string
  /** As a power cut would: SIGKILL. */
  kill(): Promise<void>
  /** Starts again with the same data and port. */
  restart(): Promise<void>
  /** Kills it and deletes its data. */
  remove(): Promise<void>
}

/** The program's path, or null. */
export function findProgram(name: string, ...folders: readonly string[]): string | null {
  const places = [...folders, '/usr/sbin', '/usr/bin', '/usr/local/bin', '/usr/local/sbin']
  return places.map((folder) => join(folder, name)).find((path) => existsSync(path)) ?? null
}

/** Newest folder of Debian's PostgreSQL programs. */
export function postgresFolder(): string {
  const root = '/usr/lib/postgresql'
  const versions = existsSync(root)
    ? readdirSync(root)
        .map(Number)
        .sort((a, b) => b - a)
    : []
  return join(root, String(versions[0] ?? ''), 'bin')
}

/** Starts a server of one's own. Always `remove()` it. */
export async function startServer(options: ServerOptions): Promise<Server> {
  const directory = mkdtempSync(join(tmpdir(), `pawl-${options.name}-`))
  const identity = identityOf(options.user)
  if (identity !== null) chownSync(directory, identity.uid, identity.gid)
  const run: RunAs = (program, args) => {
    execFileSync(program, args, { ...identity, cwd: directory, stdio: ['ignore', 'ignore', 'pipe'] })
  }
  options.prepare?.(directory, run)
  const port = await freePort()
  let child = await launch(options, identity, directory, port)
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.ref()
    // PostgreSQL's own processes would outlive it for a moment, and go on answering.
    const descendants = childrenOf(child.pid!)
    for (const pid of [child.pid!, ...descendants]) signal(pid, 'SIGKILL')
    await ended
    while (descendants.some(runs)) await sleep(5)
  }
  return {
    port,
    directory,
    kill,
    async restart() {
      await kill()
      child = await launch(options, identity, directory, port)
    },
    async remove() {
      await kill()
      rmSync(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    },
  }
}

async function launch(
  options: ServerOptions,
  identity: Identity | null,
  directory: string,
  port: number,
): Promise<ChildProcess> {
  const path = join(directory, 'server.log')
  const log = openSync(path, 'a')
  const [program, ...args] = options.command(directory, port)
  const child = spawn(program, args, { ...identity, cwd: directory, stdio: ['ignore', log, log] })
  child.unref()
  const watch = `while kill -0 ${process.pid} 2>/dev/null && kill -0 ${child.pid} 2>/dev/null; do sleep 0.5; done
    kill -0 ${process.pid} 2>/dev/null || { kill -KILL ${child.pid}; sleep 1; rm -rf '${directory}'; }`
  spawn('bash', ['-c', watch], { detached: true, stdio: 'ignore' }).unref()
  const deadline = performance.now() + startMs
  while (!(await answers(port))) {
    if (child.exitCode !== null || performance.now() > deadline)
      throw new Error(`${options.name} did not start:\n${readFileSync(path, 'utf8').slice(-2000)}`)
    await sleep(50)
  }
  return child
}

function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // It is gone already.
  }
}

/** False for a process that is gone, and for one that only waits to be reaped. */
function runs(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat[stat.lastIndexOf(')') + 2] !== 'Z'
  } catch {
    return false
  }
}

interface Identity {
  readonly uid: number
  readonly gid: number
}

function identityOf(user: string): Identity | null {
  if (process.getuid?.() !== 0) return null
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith(`${user}:`))
  if (line === undefined) throw new Error(`there is no user ${user}`)
  const [, , uid, gid] = line.split(':')
  return { uid: Number(uid), gid: Number(gid) }
}

async function freePort(): Promise<number> {
  const server = createServer()
  const port = await new Promise<number>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port))
  })
  await new Promise((resolve) => server.close(resolve))
  return port
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    const done = (result: boolean) => {
      socket.destroy()
      resolve(result)
    }
    socket.once('connect', () => done(true)).once('error', () => done(false))
  })
}
