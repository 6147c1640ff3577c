/**
 * Deployments in mid-work: a changed operator, its rollback, and a second stage on the same cluster.
 *
 * Each line comes out behind the mark of the build that copied it. Which build that must be is known from the
 * manifest of the epoch whose range holds it.
 */
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { unseal } from '../../lib/epoch/seal.ts'
import type { Manifest } from '../../lib/model/manifest.ts'
import { awsTest, type Emulator } from '../support/aws.ts'
import { bootstrap, type Deployed, deploy } from '../support/deployed.ts'
import { type Broker, missingTool, sharedBroker } from '../support/kafka.ts'
import { asAdmin, kafkaClient } from '../support/kafka-topics.ts'
import { witness } from '../support/worker-witness.ts'

const builds = ['deployed-mark', 'deployed-mark-changed'].map((name) =>
  fileURLToPath(new URL(`../support/${name}.ts`, import.meta.url)),
) as [first: string, second: string]
const names = ['first', 'second']
const tick = { source: 'aws.events', 'detail-type': 'Scheduled Event' }
const restMs = 90_000

/** Appends numbered lines and rings, until it is told to stop; answers with how many there were. */
function feedAndRing(broker: Broker, ring: () => Promise<unknown>) {
  const state = { stopping: false }
  const feeding = (async () => {
    const producer = kafkaClient(broker).producer({ idempotent: true, allowAutoTopicCreation: false })
    await producer.connect()
    let lines = 0
    while (!state.stopping) {
      const messages = Array.from({ length: 50 }, (_, i) => ({ value: String(lines + i) }))
      await producer.send({ topic: 'mark-lines', messages })
      lines += messages.length
      // A trigger that is being replaced may fail; the next ring comes soon.
      await ring().catch(() => {})
      await new Promise((resolve) => setTimeout(resolve, 300))
    }
    await producer.disconnect()
    return lines
  })()
  return () => {
    state.stopping = true
    return feeding
  }
}

/** Ends and builds of all epochs. */
async function epochsOf({ job }: Deployed): Promise<{ readonly end: number; readonly build: string }[]> {
  const { ledger, store } = job.place
  const head = await ledger.read('mark')
  const items = await ledger.histories('mark', 1, (head?.committed.epoch ?? 0) + 1)
  return Promise.all(
    items.map(async ({ manifest }) => {
      const { progress, build } = await unseal<Manifest>(store, manifest)
      return { end: Number(progress[0]?.end), build }
    }),
  )
}

/** What is left of some lines when others are taken away, each once. */
function without(lines: readonly string[], others: readonly string[]): string[] {
  const counts = new Map<string, number>()
  for (const line of others) counts.set(line, (counts.get(line) ?? 0) + 1)
  return lines.filter((line) => {
    const count = counts.get(line) ?? 0
    counts.set(line, count - 1)
    return count <= 0
  })
}

/** The deployed builds, one after another. */
async function replace(emulator: Emulator, broker: Broker, entry: string): Promise<Deployed> {
  return deploy({ emulator, broker, stageName: 'one', entry })
}

awsTest(
  'no epoch mixes builds when an operator is changed and changed back, beside a second stage',
  async ({ emulator, skip }) => {
    const missing = missingTool()
    if (missing !== null) skip(missing)
    const broker = await sharedBroker()
    const topics = ['mark-lines', 'marked'].map((topic) => ({ topic, numPartitions: 1 }))
    await asAdmin(broker, (admin) => admin.createTopics({ topics, waitForLeaders: true }))
    await bootstrap({ emulator, broker })
    const first = await replace(emulator, broker, builds[0])
    const stop = feedAndRing(broker, () => first.invoke('TriggerName', tick))
    const second = await replace(emulator, broker, builds[1])
    await second.close()
    const again = await replace(emulator, broker, builds[0])
    const other = await deploy({ emulator, broker, stageName: 'two', entry: builds[0] })
    const lines = await stop()
    for (const deployed of [again, other]) {
      await deployed.invoke('TriggerName', tick)
      await deployed.untilAtRest(restMs)
    }
    const shown: string[] = []
    await witness(broker.bootstrap, 'marked', (_partition, _key, value) => shown.push(value ?? ''))
    const epochs = await epochsOf(again)
    // Functions are minified, so their build is not that of the same file here: told apart by who came first.
    const marks = new Map([...new Set(epochs.map(({ build }) => build))].map((build, at) => [build, names[at]]))
    const expected = Array.from({ length: lines }, (_, offset) => {
      const epoch = epochs.find(({ end }) => offset < end)
      return `${marks.get(epoch?.build ?? '')} ${offset}`
    })
    const twice = [...expected, ...expected.map((_, offset) => `first ${offset}`)]
    const [missed, surplus] = [without(twice, shown), without(shown, twice)]
    expect({ missed, surplus }).toEqual({ missed: [], surplus: [] })
    const changes = epochs.filter(({ build }, at) => at === 0 || epochs[at - 1]?.build !== build)
    console.log(JSON.stringify({ lines, epochs: epochs.length, changes: changes.map(({ build }) => marks.get(build)) }))
    expect(changes.map(({ build }) => marks.get(build))).toEqual(['first', 'second', 'first'])
    for (const deployed of [again, other]) {
      const { faults, unreadable } = await deployed.verify()
      expect({ faults, unreadable }).toEqual({ faults: [], unreadable: [] })
      await deployed.close()
    }
    await first.close()
  },
  300_000,
)
