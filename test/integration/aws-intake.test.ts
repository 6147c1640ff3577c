import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { kafka } from '../../lib/adapters/kafka/cluster.ts'
import { look } from '../../lib/epoch/look.ts'
import { prng } from '../../lib/model/prng.ts'
import { type KafkaEvent, type KafkaEventRecord, type Mapping, pollMapping } from '../../scripts/aws/event-source.ts'
import { project } from '../cli/command.ts'
import { type Emulator, missingEmulatorTool, startEmulator } from '../support/aws-emulator.ts'
import { bootstrap, type Deployed, deploy } from '../support/deployed.ts'
import { type Broker, missingTool, startBroker } from '../support/kafka-broker.ts'
import { connectPlain, seen } from '../support/kafka-sink.ts'
import { asAdmin } from '../support/kafka-topics.ts'

const entry = new URL('../support/deployed-intake.ts', import.meta.url).pathname
const missing = missingTool() ?? missingEmulatorTool()
const partitions = 3
const total = 9_000
const words = Array.from({ length: 200 }, (_, i) => `word${i}`)
const lineOf = (i: number) => [words[i % 200], words[(i * 7) % 200], words[(i * 13) % 200]].join(' ')
const tick = { source: 'aws.events', 'detail-type': 'Scheduled Event' }

let emulator: Emulator
let broker: Broker
let deployed: Deployed
const expected = new Map<string, number>()
const told = { events: 0, delivered: 0, doubled: 0, overlapping: 0, reordered: 0, lost: 0, recovered: 0 }

async function sendLines(from: number, count: number): Promise<void> {
  const appender = await kafka({ brokers: broker.bootstrap }).openAppender('lines')
  for (let partition = 0; partition < partitions; partition++) {
    const own = Array.from({ length: count }, (_, i) => from + i).filter((i) => i % partitions === partition)
    for (const i of own) for (const word of lineOf(i).split(' ')) expected.set(word, (expected.get(word) ?? 0) + 1)
    const records = own.map((i) => ({ key: null, value: Buffer.from(lineOf(i)), timestampMs: 1_000 + i, headers: [] }))
    await appender.append(partition, records)
  }
  await appender.close()
}

function mapping(): Mapping {
  const eventSourceArn = 'arn:aws:kafka:us-east-1:000000000000:cluster/test/0-1'
  const batch = { startingPosition: 'TRIM_HORIZON', batchSize: 300, batchWindowMs: 50 } as const
  const group = 'pawl-intake-dev-intake'
  return { bootstrapServers: broker.bootstrap, topics: ['lines'], group, eventSourceArn, ...batch }
}

/** Each partition of an event with some of what came before it in that partition. */
function overlapped(event: KafkaEvent, before: Map<string, readonly KafkaEventRecord[]>): KafkaEvent {
  const records = Object.entries(event.records).map(([name, own]) => [
    name,
    [...(before.get(name) ?? []).slice(-40), ...own],
  ])
  return { ...event, records: Object.fromEntries(records) }
}

/** A mapping that doubles, overlaps, holds back and loses what it read, and says that all went well. */
function hostile(seed: number) {
  const random = prng(seed)
  const before = new Map<string, readonly KafkaEventRecord[]>()
  const held: KafkaEvent[] = []
  const trigger = async (event: KafkaEvent) => {
    told.delivered++
    await deployed.invoke('TriggerName', event)
  }
  return async (event: KafkaEvent) => {
    told.events++
    const kind = random.int(6)
    if (kind === 0) told.lost++
    else if (kind === 1) held.push(event)
    else if (kind === 2) {
      told.doubled++
      await Promise.all([trigger(event), trigger(event)])
    } else if (kind === 3) {
      told.overlapping++
      await trigger(overlapped(event, before))
    } else await trigger(event)
    for (const [name, records] of Object.entries(event.records)) before.set(name, records)
    if (held.length > 1) {
      told.reordered++
      await trigger(held.shift()!)
    }
  }
}

async function recover(): Promise<void> {
  const { lines } = (await deployed.invoke('RecoverName', {})) as { lines: { ranges: unknown[] } }
  told.recovered += lines.ranges.length
}

async function visibleCounts(): Promise<Map<string, number>> {
  const link = connectPlain(broker.bootstrap)
  const counts = new Map<string, number>()
  for (const { key, value } of await seen(link, 'word-counts')) {
    expect(Number(value)).toBeGreaterThan(counts.get(key!) ?? 0)
    counts.set(key!, Number(value))
  }
  await link.close()
  return counts
}

const sorted = (counts: ReadonlyMap<string, number>) => [...counts].sort(([a], [b]) => (a < b ? -1 : 1))

describe.skipIf(missing !== null)('a deployed pipeline of Express executions over an intake of events', () => {
  beforeAll(async () => {
    ;[emulator, broker] = await Promise.all([startEmulator(), startBroker()])
    await asAdmin(broker, (admin) =>
      admin.createTopics({
        waitForLeaders: true,
        topics: ['lines', 'word-counts'].map((topic) => ({ topic, numPartitions: partitions })),
      }),
    )
    await bootstrap({ emulator, broker })
    deployed = await deploy({ emulator, broker, entry, intake: 'event', workflow: 'express' })
    await recover()
  }, 300_000)

  afterAll(async () => {
    console.log(`intake on the emulator: ${JSON.stringify(told)}`)
    await deployed?.close()
    await Promise.all([emulator?.remove(), broker?.remove()])
  })

  test('case 67: counts once what a mapping doubles, overlaps, reorders and loses', async () => {
    const polling = pollMapping(mapping(), hostile(5), () => {})
    for (let from = 0; from < total; from += 1_000) {
      await sendLines(from, 1_000)
      await sleep(150)
    }
    const read = () => told.events * 300
    for (let tries = 0; read() < total && tries < 200; tries++) await sleep(50)
    await polling.stop()
    // The first look fills gaps between events; the second, what no event has brought since the first.
    for (let looks = 0; looks < 2; looks++) await recover()
    await deployed.invoke('TriggerName', tick)
    await deployed.untilAtRest(120_000)
    expect((await look(deployed.job)).lag).toEqual(
      Array.from({ length: partitions }, (_, partition) => ({
        source: 'lines',
        topic: 'lines',
        partition,
        records: '0',
      })),
    )
    expect(sorted(await visibleCounts())).toEqual(sorted(expected))
    const { faults, unreadable } = await deployed.verify()
    expect({ faults, unreadable }).toEqual({ faults: [], unreadable: [] })
    expect(told.lost).toBeGreaterThan(0)
    expect(told.recovered).toBeGreaterThan(0)
  }, 240_000)

  test('a person at the command line holds it, sends it on and hurries it, and its doctor finds no fault', async () => {
    using made = project()
    const say = async (...words: string[]) => {
      const { code, stdout, stderr } = await made.pawl([...words, '--stack', 'pawl-word-count-dev', '--json'], {
        env: emulator.environment,
      })
      return { code, stderr, said: JSON.parse(stdout) }
    }
    await sendLines(total, 30)
    for (let looks = 0; looks < 2; looks++) await recover()
    expect(await say('run-now', '--wait')).toMatchObject({ code: 0 })
    expect(await say('pause', '--wait')).toMatchObject({ code: 0, said: { state: 'paused' } })
    expect(await say('resume')).toMatchObject({ code: 0 })
    await deployed.untilAtRest(60_000)
    const { code, said } = await say('status')
    // Runs that were started from here, too, are Express executions: nobody may ask for their status.
    expect({ code, ...said }).toMatchObject({ code: 0, run: { place: expect.stringContaining(':express:') } })
    expect(await say('doctor')).toMatchObject({ code: 0, said: { failed: 0, warned: 0 } })
    expect(sorted(await visibleCounts())).toEqual(sorted(expected))
  }, 120_000)

  test('keeps of its input no more than the retained epochs may read again', async () => {
    await deployed.invoke('CollectName', {})
    const kept: string[] = []
    for await (const { name } of deployed.job.place.store.list('intake/intake/lines/segments/')) kept.push(name)
    const { head } = await deployed.verify()
    expect(head.committed.epoch).toBeGreaterThan(5)
    expect(kept.length).toBeLessThan(told.delivered)
    await deployed.invoke('TriggerName', tick)
    await deployed.untilAtRest(60_000)
    expect(sorted(await visibleCounts())).toEqual(sorted(expected))
  }, 120_000)
})
