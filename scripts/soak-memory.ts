/**
 * What each sink takes of memory for an epoch of a million rows of 100 bytes, or as many as its limits allow a lane.
 *
 * Every sink is measured twice, each time in a fresh process that has its server elsewhere: what is held, collected
 * whenever it grows, and by how much resident memory grew at its highest, nothing forced. Called by `npm run soak`;
 * alone:
 *
 *     npm run soak -- --only memory
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Implementation } from '../lib/testing/contracts/contract.ts'
import { heldWhile } from '../lib/testing/contracts/held-memory.ts'
import {
  heldBytesMaxDefault,
  measureSinkSize,
  type SinkSizeFigures,
  type Watch,
} from '../lib/testing/contracts/sink-size.ts'
import type { SinkSubject } from '../lib/testing/contracts/sink-subject.ts'
import { startEmulator } from '../test/support/aws-emulator.ts'
import { startBroker } from '../test/support/kafka-broker.ts'
import { startMariaDb } from '../test/support/mariadb-server.ts'
import { startPostgres } from '../test/support/postgres-server.ts'
import { startRedis } from '../test/support/redis-server.ts'
import { called, deltaOnDisk, file } from '../test/support/sink-sizes.ts'
import {
  dorisSize,
  dynamoSize,
  filesSize,
  kafkaSize,
  mariaDbSize,
  postgresSize,
  redisSize,
} from '../test/support/sink-sizes-servers.ts'

const million = { rows: 1_000_000, rowBytes: 100 }
const mib = 1024 * 1024

interface Figures extends SinkSizeFigures {
  readonly name: string
  readonly promoteMax: number
  readonly residentBytes: number
}

/** Measures one sink with a server of its own. */
type Measure = (watch: Watch) => Promise<Figures>

async function figuresOf({ name, fresh }: Implementation<SinkSubject>, watch: Watch): Promise<Figures> {
  const place = await fresh()
  try {
    const subject = await place.open()
    const before = process.resourceUsage().maxRSS
    const figures = await measureSinkSize(subject, million, watch)
    const residentBytes = (process.resourceUsage().maxRSS - before) * 1024
    return { name, ...figures, promoteMax: subject.heldBytesMax?.promote ?? heldBytesMaxDefault, residentBytes }
  } finally {
    await place.dispose?.()
  }
}

const alone =
  (implementation: Implementation<SinkSubject>): Measure =>
  (watch) =>
    figuresOf(implementation, watch)

const withServer =
  <S extends { remove(): Promise<void> }>(start: () => Promise<S>, of: (server: S) => Implementation<SinkSubject>) =>
  async (watch: Watch): Promise<Figures> => {
    const server = await start()
    try {
      return await figuresOf(of(server), watch)
    } finally {
      await server.remove()
    }
  }

const measures: readonly Measure[] = [
  withServer(startBroker, kafkaSize),
  withServer(startPostgres, postgresSize),
  withServer(startMariaDb, mariaDbSize),
  withServer(startRedis, (server) => redisSize(server, 'stream')),
  withServer(startRedis, (server) => redisSize(server, 'string')),
  withServer(startEmulator, (emulator) => dynamoSize(emulator, 'upsert')),
  withServer(startEmulator, (emulator) => dynamoSize(emulator, 'transactions')),
  withServer(startEmulator, (emulator) => filesSize(emulator, 'json-lines')),
  withServer(startEmulator, (emulator) => filesSize(emulator, 'csv')),
  withServer(startEmulator, (emulator) => filesSize(emulator, 'parquet')),
  alone(deltaOnDisk),
  alone(dorisSize('insert')),
  alone(dorisSize('upsert')),
  alone(file),
  alone(called),
]

const me = fileURLToPath(import.meta.url)

/** Measures every sink and prints a table of Markdown. Throws when one held more than it may. */
export function soakMemory(say: (line: string) => void): void {
  const faults: string[] = []
  say('| sink | rows | staged | held staging | held promoting | may hold | resident memory grew by |')
  say('| --- | --- | --- | --- | --- | --- | --- |')
  for (const index of measures.keys()) {
    const held = apart(index, 'held')
    const { residentBytes } = apart(index, 'resident')
    const { name, rows, stageHeldBytes, promoteHeldBytes, promoteMax } = held
    const bytes = [held.bytes, stageHeldBytes, promoteHeldBytes, promoteMax, residentBytes]
    say(
      `| ${[name, rows.toLocaleString('en-US'), ...bytes.map((one) => `${Math.round(one / mib)} MiB`)].join(' | ')} |`,
    )
    if (stageHeldBytes > heldBytesMaxDefault || promoteHeldBytes > promoteMax) faults.push(name)
  }
  if (faults.length > 0) throw new Error(`held more than they may: ${faults.join(', ')}`)
}

function apart(index: number, what: 'held' | 'resident'): Figures {
  const args = [...process.execArgv, me, String(index), what]
  const { status, stdout } = spawnSync(process.execPath, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  if (status !== 0) throw new Error(`measuring sink ${index} ended with ${status}`)
  return JSON.parse(stdout.trim().split('\n').at(-1)!) as Figures
}

const unwatched: Watch = async (work) => ({ result: await work(), heldBytes: 0 })

if (process.argv[1] === me) {
  const [index, what] = process.argv.slice(2)
  console.log(JSON.stringify(await measures[Number(index)]!(what === 'held' ? heldWhile : unwatched)))
  process.exit(0)
}
