/**
 * Every command against a deployment that runs, that is parked, and whose run is dead; then the doctor.
 *
 * What they print is the page docs/command-output-aws.md.
 */

import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { kafka } from '../../lib/adapters/kafka/cluster.ts'
import type { Head } from '../../lib/model/head.ts'
import { type Ended, type Project, project } from '../cli/command.ts'
import { transcript } from '../cli/transcript.ts'
import { type Emulator, missingEmulatorTool, sharedEmulator } from '../support/aws-emulator.ts'
import { bootstrap, type Deployed, deploy } from '../support/deployed.ts'
import { type Broker, missingTool, sharedBroker } from '../support/kafka.ts'
import { asAdmin } from '../support/kafka-topics.ts'

const entry = fileURLToPath(new URL('../support/deployed-moody.ts', import.meta.url))
const tick = { source: 'aws.events', 'detail-type': 'Scheduled Event' }
const missing = missingTool() ?? missingEmulatorTool()
const wish = ['--by', 'ada', '--why', 'broker upgrade']

let emulator: Emulator
let broker: Broker
let deployed: Deployed
let made: Project
const written = transcript((words): Promise<Ended> => {
  return made.pawl([...words.map((word) => (word === 'moody.ts' ? entry : word)), '--stack', 'pawl-word-count-steer'], {
    env: emulator.environment,
  })
})
const { say } = written

async function feed(line: string): Promise<void> {
  const appender = await kafka({ brokers: broker.bootstrap }).openAppender('moody-lines')
  await appender.append(0, [{ key: null, value: Buffer.from(line), timestampMs: Date.now() }])
  await appender.close()
}

async function until(isSo: (head: Head) => boolean): Promise<Head> {
  for (let tries = 0; tries < 600; tries++) {
    const head = await deployed.job.place.ledger.read('moody')
    if (head !== null && isSo(head)) return head
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error('it does not come')
}

const isFree = ({ run }: Head) => !run.open
const later = (ms: number) => Date.now() + ms
const ring = () => deployed.invoke('TriggerName', tick)

describe.skipIf(missing !== null)('commands against a deployment', () => {
  beforeAll(async () => {
    ;[emulator, broker] = await Promise.all([sharedEmulator(), sharedBroker()])
    const topics = ['moody-lines', 'moody-counts'].map((topic) => ({ topic, numPartitions: 1 }))
    await asAdmin(broker, (admin) => admin.createTopics({ waitForLeaders: true, topics }))
    await bootstrap({ emulator, broker })
    deployed = await deploy({ emulator, broker, stageName: 'steer', entry })
    made = project()
  }, 300_000)

  afterAll(async () => {
    made?.[Symbol.dispose]()
    await deployed?.close()
  })

  test('a running pipeline is held, drained, hurried, and taken from its run', async () => {
    await feed('calm')
    await ring()
    await deployed.untilAtRest(60_000)
    written.heading('A running pipeline')
    for (const look of [['status'], ['epochs'], ['show', 'last'], ['verify'], ['diff', 'moody.ts']])
      await say(0, ...look)
    await feed('calm')
    await say(0, 'run-now', '--wait')
    await say(0, 'pause', '--wait', ...wish)
    await say(4, 'status')
    await feed('calm')
    expect(await ring()).toMatchObject({ rung: false })
    await say(0, 'drain', ...wish)
    await feed('beyond')
    await ring()
    expect(await until(() => true)).toMatchObject({ committed: { epoch: 3 }, paused: { drain: null } })
    await say(0, 'resume')
    await until((head) => isFree(head) && head.promotedThrough === 4)
    await say(0, 'abort', '--yes')
    await feed(`hangs ${later(12_000)}`)
    await ring()
    const { run } = await until(({ open }) => open !== null)
    await say(2, 'abort')
    await say(0, 'status')
    await say(0, 'pause', ...wish)
    await say(0, 'abort', '--yes', ...wish)
    const executions = await deployed.executions()
    expect(executions.find(({ arn }) => arn === run.place)).toMatchObject({ status: 'ABORTED' })
    await say(0, 'verify')
    await say(0, 'resume')
    await until((head) => isFree(head) && head.promotedThrough === 5)
  }, 120_000)

  test('a parked pipeline waits for a person, and goes on once resumed', async () => {
    const mended = later(14_000)
    await feed(`fails ${mended}`)
    await ring()
    await until(({ parked, run }) => parked !== null && !run.open)
    written.heading('A parked pipeline')
    await say(3, 'status')
    for (const look of [['epochs'], ['show', 'last'], ['verify'], ['diff', 'moody.ts']]) await say(0, ...look)
    await say(3, 'drain')
    await say(3, 'run-now')
    await say(0, 'abort', '--yes')
    await say(0, 'pause', ...wish)
    await say(3, 'status')
    await say(1, 'doctor')
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, mended - Date.now())))
    await say(0, 'resume')
    await until((head) => isFree(head) && head.promotedThrough === 6)
  }, 120_000)

  test('a dead pipeline is held by the head alone, and drained by a run of its own', async () => {
    const { ledger } = deployed.job.place
    const now = await until(isFree)
    const [dead] = (await deployed.executions()).filter(({ status }) => status === 'ABORTED')
    const attempt = { attempt: 'd'.repeat(32), epoch: 7, build: 'b', openedAtMs: Date.now(), span: 1, suspect: null }
    const run = { ...now.run, id: 'dead', sequence: now.run.sequence + 1, open: true, place: dead!.arn }
    // As a run leaves it that dies, and whose death nobody hears of.
    await ledger.swap(now.revision, { ...now, run, open: attempt, revision: now.revision + 1, write: 'dead' })
    await feed('calm')
    written.heading('A dead pipeline')
    await say(0, 'status')
    for (const look of [['epochs'], ['show', 'last'], ['verify'], ['diff', 'moody.ts']]) await say(0, ...look)
    await say(0, 'pause', ...wish)
    await say(4, 'status')
    await say(0, 'abort', '--yes')
    await say(0, 'drain', ...wish)
    await say(0, 'resume')
    await until(isFree)
    await say(0, 'run-now', '--wait')
    await say(0, 'doctor')
    const { faults } = await deployed.verify()
    expect(faults).toEqual([])
  }, 120_000)

  test('what they print stands in docs/command-output-aws.md; run vitest with -u to write it again', async () => {
    await expect(written.text('What the commands print, of a deployment')).toMatchFileSnapshot(
      '../../docs/command-output-aws.md',
    )
  })
})
