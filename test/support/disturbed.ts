/**
 * An emulator whose functions can be disturbed: their calls pass a proxy, and their processes can be found.
 *
 * Deployments, brokers and what is done to them are the caller's.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { functionNames } from '../../infra/function-names.ts'
import { type Emulator, startEmulator } from './aws-emulator.ts'
import { type FaultProxy, faultProxy, type ProxiedCall } from './fault-proxy.ts'

const capital = (name: string) => `${name[0]?.toUpperCase()}${name.slice(1)}`
const functionOf = new RegExp(`AWS_LAMBDA_FUNCTION_NAME=[^\\0]*?Functions(${functionNames.map(capital).join('|')})`)
const preload = new URL('function-preload.mjs', import.meta.url).href

export interface Disturbed {
  readonly emulator: Emulator
  /** Between functions and emulator, and nobody else. */
  readonly proxy: FaultProxy
  /** Warm workers, by process id. */
  workers(): readonly FunctionWorker[]
  /** Orderly stop and start with its state; what ran is dead. */
  restart(): Promise<void>
  remove(): Promise<void>
}

/** A process that runs one function. */
export interface FunctionWorker {
  readonly pid: number
  /** In small letters, as in `operate`. */
  readonly name: string
}

/** Starts it. `observe` sees every call of a function with its body. */
export async function startDisturbed(observe: (call: ProxiedCall, body: Buffer) => void): Promise<Disturbed> {
  const directory = mkdtempSync(join(tmpdir(), 'pawl-proxy-'))
  const file = join(directory, 'endpoint')
  const emulator = await startEmulator({
    environment: {
      NODE_OPTIONS: `--import=${preload}`,
      PAWL_PROXY_FILE: file,
      // A run that waits for another must not do so as fast as it can.
      SFN_WAIT_SCALE: '0.2',
    },
  })
  const proxy = await faultProxy(emulator.endpoint, observe)
  writeFileSync(file, proxy.endpoint)
  return {
    emulator,
    proxy,
    workers: () => workersOf(Number(readFileSync(join(emulator.directory, 'emulator.pid'), 'utf8'))),
    async restart() {
      await emulator.stop()
      await sleep(500)
      await emulator.restart()
    },
    async remove() {
      await emulator.remove()
      await proxy.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** Children of the emulator that run a function, out of `/proc`. */
function workersOf(parent: number): FunctionWorker[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.flatMap((name): FunctionWorker[] => {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
      // Field 4, after the name in brackets; see proc(5).
      if (Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) !== parent) return []
      const environment = readFileSync(`/proc/${name}/environ`, 'utf8')
      const found = functionOf.exec(environment)?.[1]
      return found === undefined ? [] : [{ pid: Number(name), name: found.toLowerCase() }]
    } catch {
      // Ended meanwhile.
      return []
    }
  })
}
