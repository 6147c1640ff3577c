import { randomUUID } from 'node:crypto'
import { appendFileSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ErrorCode, errorRegistry } from '../../lib/model/errors.ts'
import type { ProgressEvent } from '../../lib/model/event.ts'
import { countedProject, type Ended, linesOf, type Project, project, succeed, wordCount } from '../cli/command.ts'
import { type Broker, missingTool, startBroker } from '../support/kafka.ts'
import { asAdmin, freshTopic, send } from '../support/kafka-topics.ts'
import { mountSmallDisk } from '../support/small-disk.ts'
import { javaRead } from '../support/witness.ts'
import { hear, startWorker, type Worker } from '../support/worker-process.ts'

const caughtUp = ['--until', 'caught-up']

/** One sentence with code and next step, and the exit code. */
function expectRefusal({ code, stderr }: Ended, error: ErrorCode, exit: 1 | 3): void {
  expect(stderr).toContain(`${error}: ${errorRegistry[error].message}`)
  expect(stderr).toContain(errorRegistry[error].action)
  expect(stderr.trimEnd().split('\n')).toHaveLength(1)
  expect(code).toBe(exit)
}

const speaksOf = (code: ErrorCode) => (event: ProgressEvent) => 'code' in event && event.code === code
const isPromoted = ({ event }: ProgressEvent) => event === 'promoted'

async function endInOrder(worker: Worker): Promise<void> {
  worker.signal('SIGTERM')
  const { code } = await worker.ended
  expect({ code, complaints: worker.complaints.slice(1) }).toEqual({ code: 0, complaints: [] })
}

/** The rows of each word must be its counts, rising to how often it was fed. */
function expectFold(
  rows: readonly { readonly key: string | null; readonly value: string | null }[],
  fed: number,
): void {
  const shown = new Map<string, number[]>()
  for (const { key, value } of rows) shown.set(key!, [...(shown.get(key!) ?? []), Number(value)])
  for (const counts of shown.values())
    for (const [i, count] of counts.entries()) expect(count).toBeGreaterThan(counts[i - 1] ?? 0)
  const words = linesOf(fed).trim().split(/\s+/)
  const expected = Object.fromEntries(words.map((word) => [word, 0]))
  for (const word of words) expected[word]!++
  expect(Object.fromEntries([...shown].map(([word, counts]) => [word, counts.at(-1)]))).toEqual(expected)
}

async function rowsOf(made: Project, args: readonly string[] = []) {
  const { stdout } = await succeed(made.pawl(['consume', 'counts', '--keys', ...args]))
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => {
      const [key, value] = line.split('\t')
      return { key: key!, value: value! }
    })
}

describe('a directory', () => {
  test('on a disk that is full is waited for: the pipeline goes on when there is room, and nothing is lost', async ({
    skip,
  }) => {
    const disk = mountSmallDisk()
    if (typeof disk === 'string') return skip(disk)
    using made = project({ 'count.ts': wordCount.replace('intervalMs: 0', 'intervalMs: 100') })
    const place = ['--dir', join(disk.path, 'pawl')]
    try {
      await succeed(made.pawl(['produce', 'lines', '--partitions', '2', ...place], { input: linesOf(1000) }))
      const worker = startWorker([made.path('count.ts'), ...place])
      expect(await hear(worker, isPromoted, 10_000)).not.toBeNull()
      const ballast = join(disk.path, 'ballast')
      fill(ballast)
      expect(await hear(worker, speaksOf('DISK_FULL'), 20_000)).not.toBeNull()
      expectRefusal(await made.pawl(['produce', 'lines', ...place], { input: linesOf(1) }), 'DISK_FULL', 1)
      expect(worker.isAlive).toBe(true)
      unlinkSync(ballast)
      expect(await hear(worker, isPromoted, 20_000)).not.toBeNull()
      await endInOrder(worker)
      await succeed(made.pawl(['run', 'count.ts', ...place, ...caughtUp]))
      expectFold(await rowsOf(made, place), 1000)
      expect((await succeed(made.pawl(['verify', ...place]))).stdout).toContain('sound')
    } finally {
      disk.unmount()
    }
  })

  test('whose ledger is locked by a stuck process is waited for, from the start and later', async () => {
    using made = await countedProject(100)
    const database = new DatabaseSync(made.path('.pawl', 'ledger.db'), { timeout: 5000 })
    const lockedWhile = async (locked: () => Promise<void>) => {
      database.exec('BEGIN IMMEDIATE')
      await locked().finally(() => database.exec('ROLLBACK'))
    }
    await succeed(made.pawl(['produce', 'lines'], { input: linesOf(100) }))
    let worker: Worker | null = null
    await lockedWhile(async () => {
      worker = startWorker([made.path('count.ts'), '--dir', made.path('.pawl')])
      expect(await hear(worker, speaksOf('LEDGER_BUSY'), 40_000)).not.toBeNull()
    })
    expect(await hear(worker!, isPromoted, 20_000)).not.toBeNull()
    await lockedWhile(async () => {
      await succeed(made.pawl(['produce', 'lines'], { input: linesOf(100) }))
      await sleep(3000)
    })
    expect(await hear(worker!, isPromoted, 20_000)).not.toBeNull()
    await endInOrder(worker!)
    await succeed(made.pawl(['run', 'count.ts', ...caughtUp]))
    database.close()
    expectFold(await rowsOf(made), 300)
  })

  test.each([
    ['snapshot', 'SNAPSHOT_DAMAGED', /\/state-\d+$/],
    ['manifest', 'MANIFEST_DAMAGED', /\/manifest$/],
  ] as const)(
    'with a damaged %s goes on where it was once the object is back from a backup',
    async (_, code, ending) => {
      using made = await countedProject(100)
      const path = join(made.path('.pawl', 'store'), newestObject(made, ending))
      const backup = readFileSync(path)
      const damaged = Buffer.from(backup)
      damaged[damaged.length >> 1]! ^= 1
      writeFileSync(path, damaged)
      await succeed(made.pawl(['produce', 'lines'], { input: linesOf(100) }))
      const refused = await made.pawl(['run', 'count.ts', ...caughtUp])
      expectRefusal(refused, code, 3)
      writeFileSync(path, backup)
      await succeed(made.pawl(['run', 'count.ts', '--resume', ...caughtUp]))
      expectFold(await rowsOf(made), 200)
    },
  )

  test('of a newer version is left alone, and goes on under that version', async () => {
    using made = await countedProject(100)
    const version = (number: number) => {
      const database = new DatabaseSync(made.path('.pawl', 'ledger.db'))
      database.exec(`PRAGMA user_version = ${number}`)
      database.close()
    }
    version(99)
    expectRefusal(await made.pawl(['run', 'count.ts', ...caughtUp]), 'LEDGER_TOO_NEW', 1)
    version(1)
    await succeed(made.pawl(['produce', 'lines'], { input: linesOf(100) }))
    await succeed(made.pawl(['run', 'count.ts', ...caughtUp]))
    expectFold(await rowsOf(made), 200)
  })

  test('whose state has another id parks, and goes on under the old id', async () => {
    using made = await countedProject(100)
    await succeed(made.pawl(['produce', 'lines'], { input: linesOf(100) }))
    made.write('count.ts', wordCount.replace("count('counter')", "count('other')"))
    expectRefusal(await made.pawl(['run', 'count.ts', ...caughtUp]), 'LINEAGE_CHANGED', 3)
    made.write('count.ts', wordCount)
    await succeed(made.pawl(['run', 'count.ts', ...caughtUp]))
    expectFold(await rowsOf(made), 200)
  })
})

const missing = missingTool()

describe.skipIf(missing !== null)('a cluster', () => {
  let broker: Broker
  beforeAll(async () => {
    broker = await startBroker({ secure: true })
  })
  afterAll(() => broker?.remove())

  /** A pipeline between topics of its own. */
  const between = (lines: string, counts: string) =>
    project({
      'count.ts': wordCount
        .replace("topic('lines'", `topic('${lines}'`)
        .replace("topic('counts'", `topic('${counts}'`)
        .replace("'word-count'", `'count-${randomUUID()}'`),
    })
  const feed = (topic: string, count: number) =>
    send(
      broker,
      topic,
      linesOf(count)
        .trimEnd()
        .split('\n')
        .map((value, i) => ({ value, partition: i % 2 })),
    )

  test('that is away is an error at the start and waited for later, and nothing is lost or repeated', async () => {
    const [lines, counts] = [await freshTopic(broker, 2), await freshTopic(broker, 2)]
    using made = between(lines, counts)
    const place = ['--bootstrap', broker.bootstrap, '--dir', made.path('.pawl'), '--kafka-config', patience(made)]
    await feed(lines, 100)
    await broker.stop()
    expectRefusal(await made.pawl(['run', 'count.ts', ...place]), 'BROKER_UNREACHABLE', 1)
    await broker.restart()
    const worker = startWorker([made.path('count.ts'), ...place])
    expect(await hear(worker, isPromoted, 20_000)).not.toBeNull()
    const away = hear(worker, speaksOf('BROKER_UNREACHABLE'), 20_000)
    await broker.kill()
    expect(await away).not.toBeNull()
    expect(worker.isAlive).toBe(true)
    await broker.restart()
    const back = hear(worker, isPromoted, 30_000)
    await feed(lines, 100)
    expect(await back).not.toBeNull()
    await endInOrder(worker)
    await succeed(made.pawl(['run', 'count.ts', ...place, ...caughtUp]))
    expectFold(javaRead(broker.bootstrap, counts), 200)
  })

  test('that refuses the password is an error, and with the right one it goes on', async () => {
    const [lines, counts] = [await freshTopic(broker, 2), await freshTopic(broker, 2)]
    using made = between(lines, counts)
    await feed(lines, 50)
    const run = (password: string, mechanism: string) =>
      made.pawl(['run', 'count.ts', '--bootstrap', broker.sasl, ...caughtUp], {
        env: {
          PAWL_KAFKA_USERNAME: 'alice',
          PAWL_KAFKA_PASSWORD: password,
          PAWL_KAFKA_SASL_MECHANISM: mechanism,
        },
      })
    for (const mechanism of ['plain', 'scram-sha-256', 'scram-sha-512']) {
      const refused = await run('wrong-horse', mechanism)
      expectRefusal(refused, 'AUTHENTICATION_FAILED', 1)
      expect(refused.stderr).not.toContain('wrong-horse')
    }
    await succeed(run(broker.password, 'scram-sha-512'))
    expectFold(javaRead(broker.bootstrap, counts), 50)
  })

  test('case 22: in which another directory runs a pipeline of that name is refused, and the first goes on', async () => {
    const [lines, counts] = [await freshTopic(broker, 2), await freshTopic(broker, 2)]
    using made = between(lines, counts)
    const run = (directory: string) =>
      made.pawl(['run', 'count.ts', '--bootstrap', broker.bootstrap, '--dir', directory, ...caughtUp])
    await feed(lines, 50)
    await succeed(run('one'))
    expectRefusal(await run('two'), 'MARKER_FOREIGN', 3)
    await feed(lines, 50)
    await succeed(run('one'))
    expectFold(javaRead(broker.bootstrap, counts), 100)
  })

  test('that lacks a topic of a source or sink is an error that names it, until it is created', async () => {
    const [lines, counts] = [`test-${randomUUID()}`, `test-${randomUUID()}`]
    using made = between(lines, counts)
    const run = (...more: string[]) =>
      made.pawl(['run', 'count.ts', '--bootstrap', broker.bootstrap, ...caughtUp, ...more])
    const create = (topic: string) =>
      asAdmin(broker, (admin) => admin.createTopics({ topics: [{ topic, numPartitions: 2 }], waitForLeaders: true }))
    const withoutSource = await run()
    expectRefusal(withoutSource, 'TOPIC_MISSING', 1)
    expect(withoutSource.stderr).toContain(lines)
    await create(lines)
    await feed(lines, 50)
    const withoutSink = await run()
    expectRefusal(withoutSink, 'TOPIC_MISSING', 3)
    expect(withoutSink.stderr).toContain(counts)
    await create(counts)
    await succeed(run('--resume'))
    expectFold(javaRead(broker.bootstrap, counts), 50)
  })
})

/** So short that a test hears of an outage soon. */
function patience(made: Project): string {
  made.write('kafka.json', '{"patienceMs":500,"connectTimeoutMs":500,"requestTimeoutMs":2000}')
  return made.path('kafka.json')
}

function fill(path: string): void {
  try {
    for (;;) appendFileSync(path, Buffer.alloc(4096))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  }
}

/** Name of the newest manifest, or of the last object with such a name in it. */
function newestObject(made: Project, ending: RegExp): string {
  const database = new DatabaseSync(made.path('.pawl', 'ledger.db'), { readOnly: true })
  const row = database.prepare('SELECT item FROM history ORDER BY epoch DESC LIMIT 1').get()
  database.close()
  const { manifest } = JSON.parse(String(row!.item)) as { manifest: { name: string } }
  if (ending.test(manifest.name)) return manifest.name
  const text = readFileSync(join(made.path('.pawl', 'store'), manifest.name), 'utf8')
  return [...text.matchAll(/"name":"([^"]+)"/g)].map((match) => match[1]!).findLast((name) => ending.test(name))!
}
