/**
 * A real Kafka broker: single node, KRaft, from Maven, on loopback.
 *
 * For tests and measurements alike, so nothing of a test runner is used here. `sharedBroker` is started by the first
 * process of a test run that needs it, or taken from `KAFKA_BROKERS`; `startBroker` starts one to be killed,
 * restarted or secured. Jars are kept in `.cache`, data in the system's directory for temporary files. A guard ends a
 * broker whose owner is gone, however it went.
 */
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Certificates, securityProperties, writeCertificates } from './kafka-security.ts'

const version = '4.4.0'
const cache = fileURLToPath(new URL(`../../.cache/kafka-${version}`, import.meta.url))
const script = fileURLToPath(new URL('kafka.sh', import.meta.url))
/** Class path of the broker's jars, for Java programs beside it; there once a broker was started. */
export const brokerClassPath = join(cache, 'libs', '*')
const startMs = 60_000

export interface BrokerOptions {
  /** Adds a SASL listener (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512; user `alice`) and one for mutual TLS. */
  readonly secure?: boolean
  /** More lines of `server.properties`. */
  readonly properties?: Readonly<Record<string, string | number | boolean>>
  /** Process whose end ends the broker; default: this one. */
  readonly owner?: number
}

export interface Broker {
  /** host:port of the plain listener. */
  readonly bootstrap: string
  /** With `secure`: host:port of the listeners. */
  readonly sasl: string
  readonly tls: string
  /** Password of `alice`. */
  readonly password: string
  readonly certificates: Certificates | null
  /** Where its data lies. */
  readonly directory: string
  /** Orderly stop. */
  stop(): Promise<void>
  /** As a power cut would: SIGKILL. */
  kill(): Promise<void>
  /** Starts again with the same data and ports. */
  restart(): Promise<void>
  /** Kills it and deletes its data. */
  remove(): Promise<void>
}

/** What the tests lack, as a sentence; null when a broker can be started. */
export function missingTool(): string | null {
  const lacks = (tool: string, flag: string) => {
    try {
      execFileSync(tool, [flag], { stdio: 'ignore' })
      return false
    } catch {
      return true
    }
  }
  if (lacks('java', '-version')) return 'java is missing, so nothing was run against a Kafka broker'
  if (!existsSync(join(cache, '.complete')) && lacks('mvn', '-version'))
    return 'mvn is missing, so nothing was run against a Kafka broker'
  return null
}

/** The broker of this test run. Starts it when it is the first to ask. */
export async function sharedBroker(): Promise<Broker> {
  const given = process.env.KAFKA_BROKERS
  if (given) return foreignBroker(given)
  // The runner outlives the processes of its test files.
  const owner = process.ppid
  const directory = join(tmpdir(), `pawl-kafka-shared-${owner}`)
  const note = join(directory, 'bootstrap')
  mkdirSync(directory, { recursive: true })
  const lock = join(directory, 'lock')
  await untilLocked(lock)
  try {
    if (existsSync(note)) {
      const bootstrap = readFileSync(note, 'utf8')
      if (await answers(Number(bootstrap.split(':')[1]))) return foreignBroker(bootstrap)
    }
    const broker = await launch(mkdtempSync(join(directory, 'broker-')), { owner })
    spawn('bash', [script, 'guard', String(owner), directory], { detached: true, stdio: 'ignore' }).unref()
    writeFileSync(note, broker.bootstrap)
    return foreignBroker(broker.bootstrap)
  } finally {
    rmdirSync(lock)
  }
}

/** A broker of one's own. Always `remove()` it. */
export async function startBroker(options: BrokerOptions = {}): Promise<Broker> {
  return launch(mkdtempSync(join(tmpdir(), 'pawl-kafka-')), options)
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

/** A broker that is not ours to stop. */
function foreignBroker(bootstrap: string): Broker {
  const refuse = async () => {
    throw new Error('the shared broker is not to be stopped: use startBroker')
  }
  const none = { sasl: '', tls: '', password: '', certificates: null, directory: '' }
  return { bootstrap, ...none, stop: refuse, kill: refuse, restart: refuse, remove: refuse }
}

async function launch(directory: string, options: BrokerOptions): Promise<Broker> {
  execFileSync('bash', [script, 'fetch', cache, version], { stdio: ['ignore', 'ignore', 'inherit'] })
  const ports = await freePorts(4)
  const certificates = options.secure ? writeCertificates(directory) : null
  const password = 'open-sesame'
  writeFileSync(join(directory, 'server.properties'), properties(directory, ports, options, certificates, password))
  writeFileSync(join(directory, 'log4j2.properties'), logging)
  format(directory, options.secure ? password : null)
  const guard = spawn('bash', [script, 'guard', String(options.owner ?? process.pid), directory], {
    detached: true,
    stdio: 'ignore',
  })
  guard.unref()
  await run(directory, ports)
  return {
    bootstrap: `127.0.0.1:${ports[0]}`,
    sasl: `127.0.0.1:${ports[2]}`,
    tls: `127.0.0.1:${ports[3]}`,
    password,
    certificates,
    directory,
    stop: () => end(directory, 'SIGTERM'),
    kill: () => end(directory, 'SIGKILL'),
    restart: () => run(directory, ports),
    remove: async () => {
      await end(directory, 'SIGKILL')
      rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/** Random ports that were free a moment ago. */
async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer())
  const ports = await Promise.all(
    servers.map(
      (server) =>
        new Promise<number>((resolve, reject) => {
          server.once('error', reject)
          server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port))
        }),
    ),
  )
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}

function properties(
  directory: string,
  [plain, controller, sasl, tls]: readonly number[],
  options: BrokerOptions,
  certificates: Certificates | null,
  password: string,
): string {
  const listeners = [`PLAINTEXT://127.0.0.1:${plain}`]
  if (certificates) listeners.push(`SASL_PLAINTEXT://127.0.0.1:${sasl}`, `SSL://127.0.0.1:${tls}`)
  const all = {
    'process.roles': 'broker,controller',
    'node.id': 1,
    'controller.quorum.voters': `1@127.0.0.1:${controller}`,
    listeners: [...listeners, `CONTROLLER://127.0.0.1:${controller}`].join(','),
    'advertised.listeners': listeners.join(','),
    'controller.listener.names': 'CONTROLLER',
    'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT',
    'log.dirs': join(directory, 'logs'),
    'auto.create.topics.enable': false,
    'offsets.topic.replication.factor': 1,
    'offsets.topic.num.partitions': 4,
    'transaction.state.log.replication.factor': 1,
    'transaction.state.log.min.isr': 1,
    'transaction.state.log.num.partitions': 4,
    'share.coordinator.state.topic.replication.factor': 1,
    'share.coordinator.state.topic.min.isr': 1,
    'group.initial.rebalance.delay.ms': 0,
    'log.cleaner.dedupe.buffer.size': 8_388_608,
    // Rows of tests carry event times of long ago: by time they would be gone at the next check.
    'log.retention.ms': -1,
    // The tests make old segments vanish and be compacted while they wait.
    'log.retention.check.interval.ms': 500,
    'log.cleaner.backoff.ms': 200,
    'log.segment.delete.delay.ms': 100,
    // A broker that was killed may come back only when its session is over.
    'broker.session.timeout.ms': 1500,
    'broker.heartbeat.interval.ms': 300,
    'num.network.threads': 2,
    'num.io.threads': 4,
    ...(certificates ? securityProperties(certificates, password) : {}),
    ...options.properties,
  }
  return Object.entries(all)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('')
}

const logging = `status = error
appender.f.type = File
appender.f.name = F
appender.f.fileName = \${sys:kafka.logfile}
appender.f.layout.type = PatternLayout
appender.f.layout.pattern = %d %p %c: %m%n
rootLogger.level = WARN
rootLogger.appenderRef.f.ref = F
`

function javaArguments(directory: string, ...rest: string[]): string[] {
  return [
    '-XX:TieredStopAtLevel=1',
    `-Dlog4j2.configurationFile=file:${join(directory, 'log4j2.properties')}`,
    `-Dkafka.logfile=${join(directory, 'server.log')}`,
    '-cp',
    brokerClassPath,
    ...rest,
  ]
}

function format(directory: string, password: string | null): void {
  const scram = ['256', '512'].flatMap((bits) => ['--add-scram', `SCRAM-SHA-${bits}=[name=alice,password=${password}]`])
  const storage = ['kafka.tools.StorageTool', 'format', '-t', '4L6g3nShT-eMCtK--X86sw']
  const config = ['-c', join(directory, 'server.properties')]
  execFileSync('java', javaArguments(directory, '-Xmx96m', ...storage, ...config, ...(password ? scram : [])), {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}

async function run(directory: string, [plain, controller]: readonly number[]): Promise<void> {
  const log = openSync(join(directory, 'console.log'), 'a')
  const java = spawn(
    'java',
    javaArguments(
      directory,
      '-Xms64m',
      '-Xmx384m',
      '-XX:+UseSerialGC',
      'kafka.Kafka',
      `${directory}/server.properties`,
    ),
    { detached: true, stdio: ['ignore', log, log] },
  )
  java.unref()
  let dead = false
  java.once('exit', () => {
    dead = true
  })
  writeFileSync(join(directory, 'broker.pid'), String(java.pid))
  const deadline = Date.now() + startMs
  while (!((await answers(plain)) && (await answers(controller)))) {
    if (dead || Date.now() > deadline)
      throw new Error(`the broker did not start:\n${readFileSync(join(directory, 'console.log'), 'utf8').slice(-2000)}`)
    await sleep(50)
  }
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

async function end(directory: string, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  const file = join(directory, 'broker.pid')
  if (!existsSync(file)) return
  const pid = Number(readFileSync(file, 'utf8'))
  const sent = (name: NodeJS.Signals | 0) => {
    try {
      return process.kill(pid, name)
    } catch {
      return false
    }
  }
  sent(signal)
  for (let i = 0; sent(0); i++) {
    if (i === 400) sent('SIGKILL')
    await sleep(25)
  }
  rmSync(file, { force: true })
}
