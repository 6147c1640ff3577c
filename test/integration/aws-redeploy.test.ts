import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { kafka } from '../../lib/adapters/kafka/cluster.ts'
import { type Emulator, missingEmulatorTool, startEmulator } from '../support/aws-emulator.ts'
import { bootstrap, type Deployed, deploy } from '../support/deployed.ts'
import { type Broker, missingTool, startBroker } from '../support/kafka-broker.ts'
import { connectPlain, seen } from '../support/kafka-sink.ts'
import { asAdmin } from '../support/kafka-topics.ts'

const missing = missingTool() ?? missingEmulatorTool()
const entryOf = (name: string) => new URL(`../support/deployed-pipelines/${name}.ts`, import.meta.url).pathname
const ring = { source: 'a person' }

let emulator: Emulator
let broker: Broker
let sent = 0
const deployments: Deployed[] = []

async function release(name: string, stageName = 'dev'): Promise<Deployed> {
  const deployed = await deploy({ emulator, broker, stageName, entry: entryOf(name) })
  deployments.push(deployed)
  return deployed
}

/** Appends lines and rings, until told to stop; what rings is whatever is deployed by then. */
function feed(trigger: () => Deployed): () => Promise<void> {
  let on = true
  const fed = (async () => {
    const appender = await kafka({ brokers: broker.bootstrap }).openAppender('relay-in')
    while (on) {
      const lines = Array.from({ length: 200 }, () => ({
        key: null,
        value: Buffer.from(String(sent++)),
        timestampMs: Date.now(),
        headers: [],
      }))
      await appender.append(0, lines)
      await trigger().invoke('TriggerName', ring)
      await sleep(50)
    }
    await appender.close()
  })()
  return async () => {
    on = false
    await fed
  }
}

async function linesOf(topic: string): Promise<string[]> {
  const link = connectPlain(broker.bootstrap)
  const lines = (await seen(link, topic)).map(({ value }) => value!)
  await link.close()
  return lines
}

const numbers = () => Array.from({ length: sent }, (_, i) => String(i))

describe.skipIf(missing !== null)('a deployment that changes', () => {
  beforeAll(async () => {
    ;[emulator, broker] = await Promise.all([startEmulator(), startBroker()])
    const topics = ['relay-in', 'relay-out', 'relay-beside'].map((topic) => ({ topic, numPartitions: 1 }))
    await asAdmin(broker, (admin) => admin.createTopics({ topics, waitForLeaders: true }))
    await bootstrap({ emulator, broker })
  }, 120_000)

  afterAll(async () => {
    for (const deployed of deployments) await deployed.close()
    await Promise.all([emulator?.remove(), broker?.remove()])
  })

  test('in the middle of runs, and is rolled back, loses and repeats nothing and mixes no builds', async () => {
    let current = await release('first')
    const stop = feed(() => current)
    await sleep(2000)
    current = await release('second')
    await sleep(4000)
    current = await release('first')
    await sleep(4000)
    await stop()
    await current.invoke('TriggerName', ring)
    await current.untilAtRest(60_000)
    const lines = await linesOf('relay-out')
    expect(lines.map((line) => line.split(' ')[1])).toEqual(numbers())
    const builds = lines.map((line) => line.split(' ')[0])
    expect(builds.filter((build, at) => build !== builds[at - 1])).toEqual(['first', 'second', 'first'])
    const { faults, head } = await current.verify()
    expect(faults).toEqual([])
    expect(head.committed.epoch).toBeGreaterThan(10)
  }, 240_000)

  test('stands beside a second stage on the same cluster', async () => {
    const beside = await release('beside', 'beside')
    const [first] = deployments
    const stop = feed(() => first)
    await beside.invoke('TriggerName', ring)
    await sleep(3000)
    await stop()
    for (const deployed of [first, beside]) {
      await deployed.invoke('TriggerName', ring)
      await deployed.untilAtRest(60_000)
      expect((await deployed.verify()).faults).toEqual([])
    }
    expect((await linesOf('relay-out')).map((line) => line.split(' ')[1])).toEqual(numbers())
    expect(await linesOf('relay-beside')).toEqual(numbers())
  }, 240_000)
})
