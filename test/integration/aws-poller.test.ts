import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { wakeOf } from '../../lib/model/wake.ts'
import { type KafkaEvent, type KafkaEventRecord, type Mapping, pollMapping } from '../../scripts/aws/event-source.ts'
import { mappingOf } from '../../scripts/aws/poller.ts'
import { kafkaTest } from '../support/kafka.ts'
import { freshTopic, send } from '../support/kafka-topics.ts'

const eventSourceArn = 'arn:aws:kafka:us-east-1:000000000000:cluster/test/0-1'

function mappingFor(bootstrapServers: string, topic: string, more: Partial<Mapping> = {}): Mapping {
  return {
    bootstrapServers,
    topics: [topic],
    group: `poller-${randomUUID()}`,
    startingPosition: 'TRIM_HORIZON',
    batchSize: 100,
    batchWindowMs: 200,
    eventSourceArn,
    ...more,
  }
}

const recordsOf = (events: readonly KafkaEvent[]): KafkaEventRecord[] =>
  events.flatMap(({ records }) => Object.values(records).flat())

async function until(isDone: () => boolean): Promise<void> {
  for (let tries = 0; !isDone(); tries++) {
    if (tries > 1000) throw new Error('it does not come')
    await sleep(20)
  }
}

describe('a poller in the place of an event source mapping', () => {
  kafkaTest('hands over records of all partitions in the documented shape', async ({ broker }) => {
    const topic = await freshTopic(broker, 2)
    const headers = { trace: 'ä', twice: ['1', '2'] }
    await send(broker, topic, [
      { partition: 0, key: 'k', value: 'v', headers, timestamp: '1545084650987' },
      { partition: 0, key: null, value: '' },
      { partition: 1, key: 'gone', value: null },
    ])
    const events: KafkaEvent[] = []
    const mapping = mappingFor(broker.bootstrap, topic)
    const polling = pollMapping(
      mapping,
      async (event) => void events.push(event),
      () => {},
    )
    await until(() => recordsOf(events).length === 3)
    await polling.stop()
    expect(events[0]).toMatchObject({ eventSource: 'aws:kafka', eventSourceArn, bootstrapServers: broker.bootstrap })
    const named = Object.assign({}, ...events.map(({ records }) => records)) as KafkaEvent['records']
    expect(Object.keys(named).sort()).toEqual([`${topic}-0`, `${topic}-1`])
    expect(named[`${topic}-0`]?.[0]).toEqual({
      topic,
      partition: 0,
      offset: 0,
      timestamp: 1545084650987,
      timestampType: 'CREATE_TIME',
      key: 'aw==',
      value: 'dg==',
      headers: [{ trace: [0xc3, 0xa4] }, { twice: [0x31] }, { twice: [0x32] }],
    })
    expect(named[`${topic}-0`]?.[1]).toMatchObject({ offset: 1, value: '', headers: [] })
    expect(named[`${topic}-0`]?.[1]).not.toHaveProperty('key')
    expect(named[`${topic}-1`]?.[0]).toMatchObject({ key: 'Z29uZQ==' })
    expect(named[`${topic}-1`]?.[0]).not.toHaveProperty('value')
    expect(wakeOf(events[0])).toMatchObject({ wake: 'records' })
  })

  kafkaTest('sends a batch again until it is taken, and goes on behind it', async ({ broker }) => {
    const topic = await freshTopic(broker)
    await send(
      broker,
      topic,
      Array.from({ length: 25 }, (_, i) => ({ value: String(i) })),
    )
    const mapping = mappingFor(broker.bootstrap, topic, { batchSize: 10 })
    const tried: number[][] = []
    const faults: string[] = []
    const invoke = async (event: KafkaEvent) => {
      tried.push(recordsOf([event]).map(({ offset }) => offset))
      if (tried.length < 3) throw new Error('it is busy')
    }
    const first = pollMapping(mapping, invoke, (fault) => faults.push(fault))
    await until(() => tried.length === 5)
    await sleep(200)
    await first.stop()
    expect(tried.map(([offset]) => offset)).toEqual([0, 0, 0, 10, 20])
    expect(tried.map(({ length }) => length)).toEqual([10, 10, 10, 10, 5])
    expect(faults).toHaveLength(2)
    await send(broker, topic, [{ value: 'later' }])
    const seen: KafkaEvent[] = []
    const second = pollMapping(
      mapping,
      async (event) => void seen.push(event),
      () => {},
    )
    await until(() => seen.length > 0)
    await second.stop()
    expect(recordsOf(seen).map(({ offset }) => offset)).toEqual([25])
  })
})

test('reads mappings as Lambda describes them, and leaves those that are no Kafka', () => {
  const SelfManagedEventSource = { Endpoints: { KAFKA_BOOTSTRAP_SERVERS: ['a:1', 'b:2'] } }
  const given = { UUID: 'u', Topics: ['lines'], SelfManagedEventSource, State: 'Enabled' }
  expect(mappingOf({ ...given, BatchSize: 7, MaximumBatchingWindowInSeconds: 2 })).toMatchObject({
    bootstrapServers: 'a:1,b:2',
    topics: ['lines'],
    group: 'u',
    startingPosition: 'LATEST',
    batchSize: 7,
    batchWindowMs: 2000,
  })
  expect(mappingOf({ ...given, State: 'Disabled' })).toBeNull()
  expect(mappingOf({ UUID: 'u', EventSourceArn: 'arn:aws:sqs:us-east-1:000000000000:queue' })).toBeNull()
})
