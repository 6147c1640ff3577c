import { SFNClient, StopExecutionCommand } from '@aws-sdk/client-sfn'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { kafka } from '../../lib/adapters/kafka/cluster.ts'
import type { Head } from '../../lib/model/head.ts'
import { type KafkaEvent, type Mapping, pollMapping } from '../../scripts/aws/event-source.ts'
import { type Emulator, missingEmulatorTool, startEmulator } from '../support/aws-emulator.ts'
import { bootstrap, type Deployed, deploy } from '../support/deployed.ts'
import { type Broker, missingTool, startBroker } from '../support/kafka-broker.ts'
import { connectPlain, seen } from '../support/kafka-sink.ts'
import { asAdmin } from '../support/kafka-topics.ts'

const partitions = 3
const batchLines = 25_000
const missing = missingTool() ?? missingEmulatorTool()
const words = Array.from({ length: 500 }, (_, i) => `word${i}`)

let emulator: Emulator
let broker: Broker
let deployed: Deployed

/** What a single-threaded fold of everything sent so far gives. */
const expected = new Map<string, number>()
let sent = 0

/** Four words a line. */
function lineOf(index: number): string {
  return Array.from({ length: 4 }, (_, i) => words[(index * 7 + i * (1 + (index % 5))) % words.length]).join(' ')
}

/** Appends lines to all partitions, and answers as the event that a mapping makes of their ends. */
async function sendLines(count: number): Promise<unknown> {
  const lines = Array.from({ length: count }, (_, i) => lineOf(sent + i))
  for (const word of lines.flatMap((line) => line.split(' '))) expected.set(word, (expected.get(word) ?? 0) + 1)
  sent += count
  const appender = await kafka({ brokers: broker.bootstrap }).openAppender('lines')
  const records: Record<string, unknown[]> = {}
  for (let partition = 0; partition < partitions; partition++) {
    const own = lines.filter((_, i) => i % partitions === partition)
    for (let at = 0; at < own.length; at += 5000) {
      const part = own
        .slice(at, at + 5000)
        .map((line) => ({ key: null, value: Buffer.from(line), timestampMs: Date.now(), headers: [] }))
      const { baseOffset } = await appender.append(partition, part)
      const offset = Number(baseOffset) + part.length - 1
      records[`lines-${partition}`] = [{ topic: 'lines', partition, offset, value: '', headers: [] }]
    }
  }
  await appender.close()
  return { eventSource: 'aws:kafka', records }
}

/** The last count of each word, after making sure that counts only grow. */
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

/** The head, once the execution holds the pipeline with an attempt open. */
async function untilOpen(arn: string): Promise<Head> {
  for (let tries = 0; tries < 2000; tries++) {
    const head = await deployed.job.place.ledger.read('word-count')
    if (head?.run.place === arn && head.open !== null) return head
  }
  throw new Error(`${arn} opened nothing`)
}

/** The mapping of the doorbell, as a poller reads it. */
function mappingOf({ bootstrap: bootstrapServers }: Broker): Mapping {
  const eventSourceArn = 'arn:aws:kafka:us-east-1:000000000000:cluster/test/0-1'
  const group = 'pawl-doorbell-dev-word-count'
  const batch = { startingPosition: 'TRIM_HORIZON', batchSize: 10_000, batchWindowMs: 200 } as const
  return { bootstrapServers, topics: ['lines'], group, eventSourceArn, ...batch }
}

/** Keeps each event, and rings with it and with the first one at once. */
function ringing(events: KafkaEvent[]) {
  return async (event: KafkaEvent): Promise<void> => {
    events.push(event)
    await Promise.all([deployed.invoke('TriggerName', event), deployed.invoke('TriggerName', events[0])])
  }
}

const recordsOf = (events: readonly KafkaEvent[]) =>
  events.flatMap(({ records }) => Object.values(records)).reduce((sum, { length }) => sum + length, 0)

const sorted = (counts: ReadonlyMap<string, number>) => [...counts].sort(([a], [b]) => (a < b ? -1 : 1))
const tick = { source: 'aws.events', 'detail-type': 'Scheduled Event' }

describe.skipIf(missing !== null)('a deployed word count', () => {
  beforeAll(async () => {
    ;[emulator, broker] = await Promise.all([startEmulator(), startBroker()])
    await asAdmin(broker, (admin) =>
      admin.createTopics({
        waitForLeaders: true,
        topics: ['lines', 'word-counts'].map((topic) => ({ topic, numPartitions: partitions })),
      }),
    )
    await bootstrap({ emulator, broker })
    deployed = await deploy({ emulator, broker })
  }, 300_000)

  afterAll(async () => {
    await deployed?.close()
    await Promise.all([emulator?.remove(), broker?.remove()])
  })

  test('counts 100,000 lines exactly once, woken by a poller, whose events come twice and in any order', async () => {
    const events: KafkaEvent[] = []
    const polling = pollMapping(mappingOf(broker), ringing(events), () => {})
    for (let batch = 0; batch < 4; batch++) await sendLines(batchLines)
    await vi.waitFor(() => expect(recordsOf(events)).toBeGreaterThanOrEqual(100_000), {
      timeout: 120_000,
      interval: 200,
    })
    await polling.stop()
    for (const event of events.toReversed()) await deployed.invoke('TriggerName', event)
    await deployed.untilAtRest(180_000)
    expect(sent).toBe(100_000)
    expect(sorted(await visibleCounts())).toEqual(sorted(expected))
    const { faults, unreadable, lanes } = await deployed.verify()
    expect({ faults, unreadable, lanes }).toEqual({ faults: [], unreadable: [], lanes: 1 })
  }, 240_000)

  test('events of what is committed start no execution, nor does a tick at rest', async () => {
    const before = (await deployed.executions()).length
    const records = { 'lines-0': [{ topic: 'lines', partition: 0, offset: 5 }] }
    expect(await deployed.invoke('TriggerName', { eventSource: 'aws:kafka', records })).toEqual({
      rung: false,
      reason: 'committed',
    })
    expect(await deployed.invoke('TriggerName', tick)).toEqual({ rung: false, reason: 'at-rest' })
    expect((await deployed.executions()).length).toBe(before)
  })

  test('an epoch enters at most ten states', async () => {
    await sendLines(100)
    await deployed.invoke('TriggerName', tick)
    await deployed.untilAtRest(60_000)
    const [{ arn }] = await deployed.executions()
    const states = await deployed.states(arn)
    // The emulator does not show the states of Map iterations: one task, one lane.
    const epoch = states.slice(0, states.indexOf('Finalize') + 1)
    expect(epoch).toEqual(['Plan', 'Route', 'Operate', 'Precommit', 'Route', 'Commit', 'Promote', 'Finalize'])
    expect(epoch.length + 2).toBeLessThanOrEqual(10)
  }, 90_000)

  test('an execution that is stopped is taken over as soon as its end is told', async () => {
    const event = await sendLines(40_000)
    await deployed.invoke('TriggerName', event)
    const [{ arn }] = await deployed.executions()
    const { generation } = await untilOpen(arn)
    const client = new SFNClient(emulator.client)
    await client.send(new StopExecutionCommand({ executionArn: arn }))
    client.destroy()
    expect((await deployed.executions()).find((execution) => execution.arn === arn)?.status).toBe('ABORTED')
    const told = { source: 'aws.states', 'detail-type': 'Step Functions Execution Status Change' }
    const death = { ...told, detail: { executionArn: arn, status: 'ABORTED' } }
    expect(await deployed.invoke('TriggerName', death)).toEqual({ rung: true, run: 'started' })
    await deployed.untilAtRest(120_000)
    expect(sorted(await visibleCounts())).toEqual(sorted(expected))
    const { faults, head } = await deployed.verify()
    expect(faults).toEqual([])
    expect(head.generation).toBeGreaterThan(generation)
  }, 180_000)

  test('collect leaves nothing that no root reaches', async () => {
    await deployed.invoke('CollectName', {})
    expect((await deployed.verify()).orphans).toEqual({ objects: 0, bytes: 0 })
  })
})
