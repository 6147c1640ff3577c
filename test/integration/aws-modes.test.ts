/**
 * What only a deployment can show: rows that a database refuses, and the weaker modes when promote dies.
 *
 * One stack, two pipelines. The database's credentials are a secret; its driver is in the bundles, or nowhere.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CreateSecretCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { kafka } from '../../lib/adapters/kafka/cluster.ts'
import { unseal } from '../../lib/epoch/seal.ts'
import type { Manifest, RejectedRecord } from '../../lib/model/manifest.ts'
import { type Project, project } from '../cli/command.ts'
import { type Emulator, missingEmulatorTool, sharedEmulator } from '../support/aws-emulator.ts'
import { bootstrap, type Deployed, deployBeside } from '../support/deployed.ts'
import type { FatefulLine } from '../support/deployed-sink-modes.ts'
import { type Broker, missingTool, sharedBroker } from '../support/kafka.ts'
import { connectPlain, seen } from '../support/kafka-sink.ts'
import { asAdmin } from '../support/kafka-topics.ts'
import { missingPostgres, type Postgres, startPostgres } from '../support/postgres-server.ts'

const missing = missingTool() ?? missingEmulatorTool() ?? missingPostgres()
const entries = ['least', 'most'].map((mode) =>
  fileURLToPath(new URL(`../support/deployed-at-${mode}-once.ts`, import.meta.url)),
)
const stack = ['--stack', 'pawl-word-count-modes']
const tick = { source: 'aws.events', 'detail-type': 'Scheduled Event' }
/** Of both pipelines: lines of an epoch, and of all. */
const [epochLines, total] = [20, 60]
const all = Array.from({ length: total }, (_, n) => n)
const isBad = (n: number) => n % 7 === 3

let emulator: Emulator
let broker: Broker
let postgres: Postgres
let least: Deployed
let most: Deployed
let made: Project
let directory: string

/** Lines into the topic of a pipeline, with deaths of promote on the way; what its target shows in the end. */
async function run({ job, invoke, untilAtRest }: Deployed, deaths: Readonly<Record<number, FatefulLine['dies']>>) {
  const { pipeline } = job.compiled.topology
  const file = join(directory, pipeline)
  const lines = all.map((n): FatefulLine => ({ n, file, ...(deaths[n] && { dies: deaths[n] }) }))
  const records = lines.map((line) => ({
    key: null,
    value: Buffer.from(JSON.stringify(line)),
    timestampMs: Date.now(),
  }))
  const appender = await kafka({ brokers: broker.bootstrap }).openAppender(`${pipeline}-in`)
  await appender.append(0, records)
  await appender.close()
  await invoke('TriggerName', tick)
  await untilAtRest(60_000)
  return readFileSync(file, 'utf8').trim().split('\n').map(Number)
}

const pawl = (...words: string[]) => made.pawl([...words, ...stack], { env: emulator.environment })

/** Dead letters, each as the number of its row and the place that its headers name. */
async function letters(): Promise<{ readonly n: number; readonly place: string; readonly code: string }[]> {
  const link = connectPlain(broker.bootstrap)
  const records = await seen(link, 'least-letters')
  await link.close()
  return records.map(({ value, headers }) => {
    const { refused, value: row } = JSON.parse(value!) as RejectedRecord
    const header = new Map(headers)
    const place = `${header.get('pawl-sink')}/${header.get('pawl-lane')} ${header.get('pawl-epoch')}`
    expect(place).toBe(`${refused?.sink}/${refused?.lane} ${refused?.epoch}`)
    const { n } = JSON.parse(Buffer.from(row!, 'base64').toString()) as { n: string }
    return { n: Number(n), place, code: header.get('pawl-code') ?? '' }
  })
}

describe.skipIf(missing !== null)('a stack of pipelines in the weaker modes', () => {
  beforeAll(async () => {
    ;[emulator, broker, postgres] = await Promise.all([sharedEmulator(), sharedBroker(), startPostgres()])
    made = project()
    directory = mkdtempSync(join(tmpdir(), 'pawl-modes-'))
    const secrets = new SecretsManagerClient(emulator.client)
    await secrets.send(new CreateSecretCommand({ Name: 'modes-database', SecretString: postgres.url }))
    secrets.destroy()
    await postgres.query('CREATE TABLE welcome (n int PRIMARY KEY, CONSTRAINT liked CHECK (n % 7 <> 3))')
    const topics = ['least-in', 'least-letters', 'most-in'].map((topic) => ({ topic, numPartitions: 1 }))
    await asAdmin(broker, (admin) => admin.createTopics({ waitForLeaders: true, topics }))
    await bootstrap({ emulator, broker })
    ;[least, most] = (await deployBeside({ emulator, broker, stageName: 'modes' }, entries)) as [Deployed, Deployed]
  }, 300_000)

  afterAll(async () => {
    await least?.close()
    await most?.close()
    made?.[Symbol.dispose]()
    await postgres?.remove()
    if (directory !== undefined) rmSync(directory, { recursive: true })
  })

  test('at least once, when promote dies between write and marker: nothing is missing, one block comes twice', async () => {
    const shown = await run(least, { 25: 'after' })
    const second = all.slice(epochLines, 2 * epochLines)
    expect(shown).toEqual([...all.slice(0, epochLines), ...second, ...second, ...all.slice(2 * epochLines)])
  }, 120_000)

  test('each row is in the table or a dead letter of a later epoch that says where it was refused', async () => {
    const rows = (await postgres.query('SELECT n FROM welcome ORDER BY n')).map(({ n }) => Number(n))
    expect(rows).toEqual(all.filter((n) => !isBad(n)))
    const buried = (await letters()).sort((a, b) => a.n - b.n)
    const place = (n: number) => `table/0 ${1 + Math.floor(n / epochLines)}`
    expect(buried).toEqual(all.filter(isBad).map((n) => ({ n, place: place(n), code: '23514' })))
    expect(await postgres.query('SELECT * FROM pawl_refused')).toEqual([])
    const { code, stdout } = await pawl('verify', 'least', '--file', entries[0]!, '--bootstrap', broker.bootstrap)
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringMatching(/markers +4 lanes/) })
  }, 60_000)

  test('from outside the commands see what was refused, and every lane sound', async () => {
    const { stdout } = await pawl('show', 'last', 'least')
    expect(stdout).toMatch(/table\/0 epoch 3 row 5.* 23514: .*liked/)
    const listed = await pawl('sinks', 'prepare', entries[0]!, '--sink', 'table')
    expect(listed).toMatchObject({ code: 0, stdout: expect.stringContaining('"pawl_refused"') })
    const doctor = await pawl('doctor', '--pipeline', 'least')
    expect(doctor).toMatchObject({ code: 0, stdout: expect.stringContaining('lane table/0: its marker shows epoch 3') })
  }, 60_000)

  test('at most once, when promote dies before and after its write: nothing comes twice, and what is lost was recorded', async () => {
    const shown = await run(most, { 5: 'before', 45: 'after' })
    expect(shown).toEqual(all.slice(epochLines))
    const { ledger, store } = most.job.place
    const head = await ledger.read('most')
    const first = { epoch: 1, sink: 'target', lane: 0, rows: epochLines, code: 'UNKNOWN_RESULT' }
    expect(head?.unconfirmed).toEqual({ rows: 2 * epochLines, recent: [{ ...first, epoch: 3 }] })
    const [item] = await ledger.histories('most', 2, 3)
    expect(await unseal<Manifest>(store, item!.manifest)).toMatchObject({ unconfirmed: [first] })
    expect((await pawl('status', 'most')).stdout).toContain('40 rows were given up')
  }, 120_000)
})
