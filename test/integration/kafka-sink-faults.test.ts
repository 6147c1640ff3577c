import { afterEach, expect } from 'vitest'
import type { KafkaConnection } from '../../lib/adapters/kafka/connection.ts'
import { isPawlError } from '../../lib/model/errors.ts'
import type { PromoteResult } from '../../lib/ports/sink.ts'
import { type Broker, kafkaTest as test } from '../support/kafka.ts'
import {
  connectPlain,
  disturbedLink,
  faults,
  markerOf,
  seenValues,
  settled,
  sinkRig,
  striking,
  topicSpec,
} from '../support/kafka-sink.ts'
import { freshTopic } from '../support/kafka-topics.ts'

const open: KafkaConnection[] = []
afterEach(async () => {
  for (const connection of open.splice(0)) await connection.close()
})

/** A rig with base markers, and what it takes to run more promoters against it. */
async function prepared(broker: Broker) {
  const connect = () => {
    const connection = connectPlain(broker.bootstrap)
    open.push(connection)
    return connection
  }
  const link = connect()
  const topic = await freshTopic(broker, 2)
  const rig = await sinkRig(link, topicSpec(topic))
  await rig.base()
  const disturbed = disturbedLink(connect())
  return { rig, link, topic, disturbed, twin: await rig.twin(disturbed) }
}

const rowsOf = (epoch: number): [string, string][] => Array.from({ length: 20 }, (_, i) => [`k${i}`, `${epoch}-${i}`])
const valuesOf = (epochs: number) =>
  Array.from({ length: epochs }, (_, e) => rowsOf(e + 1).map(([, value]) => value))
    .flat()
    .sort()

for (const fault of faults) {
  test(`an epoch shows once when, at each request in turn, ${fault}`, async ({ broker }) => {
    const { rig, link, topic, disturbed } = await prepared(broker)
    const struck: string[] = []
    let epoch = 0
    for (let at = 0; struck.length === at; at++) {
      const [committable] = await rig.stage(++epoch, rowsOf(epoch))
      // Another process each time, which knows as little: so each request has its turn.
      disturbed.disturb((_request, act) => act())
      const twin = await rig.twin(disturbed)
      disturbed.disturb(striking(fault, at, (name) => struck.push(name)))
      const first = await twin.promote(committable).catch((error: unknown) => error)
      if (first instanceof Error) expect(first).toMatchObject({ kind: 'Retryable' })
      else expect(first).toEqual({ result: 'promoted' })
      const then = await settled(rig, committable)
      if (then.result === 'refused') expect(then.found).toEqual(markerOf(rig.incarnation, epoch))
      expect(await rig.sink.marker(0)).toEqual(markerOf(rig.incarnation, epoch))
    }
    expect(await seenValues(link, topic)).toEqual(valuesOf(epoch))
    for (const name of ['InitProducerId', 'AddPartitionsToTxn', 'Produce', 'EndTxn']) expect(struck).toContain(name)
  })
}

for (const when of ['before', 'after'] as const) {
  test(`case 27: an epoch shows once when a promoter stops ${when} each request in turn while another finishes`, async ({
    broker,
  }) => {
    const { rig, link, topic, twin, disturbed } = await prepared(broker)
    const held: string[] = []
    const fencedBy = new Set<unknown>()
    let epoch = 0
    for (let at = 0; held.length === at; at++) {
      const [committable] = await rig.stage(++epoch, rowsOf(epoch))
      let other: PromoteResult | null = null
      disturbed.disturb(async (request, act, index) => {
        if (index !== at) return act()
        held.push(request.apiName)
        const answer = when === 'after' ? await act() : null
        other = await settled(rig, committable)
        return answer ?? act()
      })
      const slow = await twin.promote(committable).catch((error: unknown) => error)
      if (isPawlError(slow)) {
        expect(slow).toMatchObject({ code: 'TRANSACTION_FENCED', kind: 'Fenced' })
        fencedBy.add(slow.details.kafka)
      }
      const promoted = [slow, other].filter((result) => (result as PromoteResult | null)?.result === 'promoted')
      expect(promoted).toHaveLength(1)
      expect(await rig.sink.marker(0)).toEqual(markerOf(rig.incarnation, epoch))
    }
    expect(await seenValues(link, topic)).toEqual(valuesOf(epoch))
    expect(held).toContain('EndTxn')
    // INVALID_PRODUCER_EPOCH from the partition's leader, PRODUCER_FENCED from the coordinator.
    expect(fencedBy).toEqual(new Set([47, 90]))
  })
}

test('an epoch shows once when two promoters start at the same time', async ({ broker }) => {
  const { rig, link, topic, twin } = await prepared(broker)
  for (let epoch = 1; epoch <= 25; epoch++) {
    const [committable] = await rig.stage(epoch, rowsOf(epoch))
    const both = await Promise.allSettled([rig.promote(committable), twin.promote(committable)])
    for (const one of both) if (one.status === 'rejected') expect(one.reason).toMatchObject({ kind: 'Fenced' })
    await settled(rig, committable)
  }
  expect(await seenValues(link, topic)).toEqual(valuesOf(25))
})

test('case 26: waits out CONCURRENT_TRANSACTIONS and a moving coordinator, wherever they are told', async ({
  broker,
}) => {
  const { rig, link, topic, twin, disturbed } = await prepared(broker)
  const told = new Set<string>()
  const [committable] = await rig.stage(1, rowsOf(1))
  disturbed.disturb(async (request, act) => {
    for (const error of [51, 14, 15, 16]) {
      const key = `${request.apiName} ${error}`
      if (told.has(key) || !['InitProducerId', 'EndTxn', 'AddPartitionsToTxn'].includes(request.apiName)) continue
      told.add(key)
      const answer = { error, producerId: -1n, epoch: -1 }
      return (request.apiName === 'AddPartitionsToTxn' ? [{ ...answer, topic, partition: 0 }] : answer) as never
    }
    return act()
  })
  expect(await twin.promote(committable)).toEqual({ result: 'promoted' })
  expect(told.size).toBe(12)
  expect(await seenValues(link, topic)).toEqual(valuesOf(1))
})
