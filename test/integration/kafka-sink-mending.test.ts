import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { KafkaConnection } from '../../lib/adapters/kafka/connection.ts'
import { markerBatch } from '../../lib/adapters/kafka/control.ts'
import { controlTopic } from '../../lib/adapters/kafka/names.ts'
import { type ReadyBatch, stagedWindows } from '../../lib/adapters/kafka/staged.ts'
import { takeOver } from '../../lib/adapters/kafka/transaction.ts'
import { isPawlError, PawlError } from '../../lib/model/errors.ts'
import type { Committable } from '../../lib/model/manifest.ts'
import type { PromoteResult } from '../../lib/ports/sink.ts'
import { type Broker, missingTool, startBroker } from '../support/kafka.ts'
import {
  connectPlain,
  disturbedLink,
  faults,
  idOf,
  markerOf,
  type SinkRig,
  seenValues,
  settled,
  sinkRig,
  striking,
  topicSpec,
} from '../support/kafka-sink.ts'
import { freshTopic } from '../support/kafka-topics.ts'

const missing = missingTool()
const ends = ['commit', 'abort'] as const
const nameOf = { commit: 'a commit', abort: 'an abort' }
const open: KafkaConnection[] = []
let broker: Broker

beforeAll(async () => {
  if (missing !== null) return
  // A broker that does not verify partitions takes rows for one that was not added, which then misses the end.
  broker = await startBroker({
    properties: {
      'transaction.partition.verification.enable': false,
      'transaction.abort.timed.out.transaction.cleanup.interval.ms': 100,
    },
  })
})
afterEach(async () => {
  for (const connection of open.splice(0)) await connection.close()
})
afterAll(async () => {
  await broker?.remove()
})

/** A rig, and a link that is disturbed. Nobody outwaits a hung transaction: mending is quick or not at all. */
async function prepared() {
  const connect = () => {
    const connection = connectPlain(broker.bootstrap)
    open.push(connection)
    return connection
  }
  const link = connect()
  const topic = await freshTopic(broker, 2)
  const rig = await sinkRig(link, topicSpec(topic), { patienceMs: 5000 })
  await rig.base()
  return { rig, link, topic, disturbed: disturbedLink(connect()) }
}

const rowsOf = (epoch: number): [string, string][] => Array.from({ length: 20 }, (_, i) => [`k${i}`, `${epoch}-${i}`])
const valuesOf = (epochs: number) =>
  Array.from({ length: epochs }, (_, e) => rowsOf(e + 1).map(([, value]) => value))
    .flat()
    .sort()

/** Writes the epoch in a transaction of which the control partition, and one of the topic, never get the end. */
async function hang(
  { rig, link, topic }: Pick<Awaited<ReturnType<typeof prepared>>, 'rig' | 'link' | 'topic'>,
  committable: Committable,
  end: (typeof ends)[number],
  timeoutMs = 60_000,
): Promise<void> {
  const id = idOf(rig)
  const control = { topic: controlTopic(rig.identity), lanes: 1, patienceMs: 5000 }
  const transaction = await takeOver(link, id, { timeoutMs, patienceMs: 5000, coordinator: { node: null } })
  await transaction.addPartitions([{ topic, partitions: [0] }])
  const marker = markerOf(rig.incarnation, committable.epoch)
  const batches: ReadyBatch[] = [markerBatch(control, 0, id, { marker, topicIds: {} })]
  for await (const window of stagedWindows(rig.store, committable.parts)) batches.push(...window)
  const layouts = await link.topics([topic, control.topic])
  await transaction.send(batches, new Map([...layouts].map(([name, { leaders }]) => [name, leaders])))
  await transaction[end]()
}

for (const end of ends) {
  test.skipIf(missing)(`mends ${nameOf[end]} that the broker told to some partitions only`, async () => {
    const world = await prepared()
    const [committable] = await world.rig.stage(1, rowsOf(1))
    await hang(world, committable, end)
    const { result } = await world.rig.promote(committable)
    expect(result).toBe(end === 'commit' ? 'refused' : 'promoted')
    expect(await world.rig.sink.marker(0)).toEqual(markerOf(world.rig.incarnation, 1))
    expect(await seenValues(world.link, world.topic)).toEqual(valuesOf(1))
  })

  for (const fault of faults) {
    test.skipIf(missing)(`the next process mends ${nameOf[end]} when, at each request in turn, ${fault}`, async () => {
      const world = await prepared()
      const { rig, link, topic, disturbed } = world
      const struck: string[] = []
      let epoch = 0
      for (let at = 0; struck.length === at; at++) {
        const [committable] = await rig.stage(++epoch, rowsOf(epoch))
        await hang(world, committable, end)
        disturbed.disturb((_request, act) => act())
        const twin = await rig.twin(disturbed)
        disturbed.disturb(striking(fault, at, (name) => struck.push(name)))
        const first = await twin.promote(committable).catch((error: unknown) => error)
        if (first instanceof Error) expect(first).toMatchObject({ kind: 'Retryable' })
        await settled(await rig.twin(link), committable)
        expect(await rig.sink.marker(0)).toEqual(markerOf(rig.incarnation, epoch))
      }
      expect(await seenValues(link, topic)).toEqual(valuesOf(epoch))
      const mend = ['DescribeTransactions', 'DescribeProducers', 'AddPartitionsToTxn', 'EndTxn', 'InitProducerId']
      if (end === 'commit') mend.splice(2, 0, 'Produce')
      expect(struck.filter((name, at) => mend.includes(name) && struck.indexOf(name) === at)).toEqual(mend)
    })
  }

  for (const when of ['before', 'after'] as const) {
    test.skipIf(missing)(
      `${nameOf[end]} is mended once when a promoter stops ${when} each request in turn while another finishes`,
      async () => {
        const world = await prepared()
        const { rig, link, topic, disturbed } = world
        const held: string[] = []
        let epoch = 0
        for (let at = 0; held.length === at; at++) {
          const [committable] = await rig.stage(++epoch, rowsOf(epoch))
          await hang(world, committable, end)
          disturbed.disturb((_request, act) => act())
          const twin = await rig.twin(disturbed)
          disturbed.disturb(async (request, act, index) => {
            if (index !== at) return act()
            held.push(request.apiName)
            const answer = when === 'after' ? await act() : null
            await settledByHolder(rig, committable)
            return answer ?? act()
          })
          const slow = await twin.promote(committable).catch((error: unknown) => error)
          if (isPawlError(slow)) expect(slow.kind).toBe('Fenced')
          expect(await rig.sink.marker(0)).toEqual(markerOf(rig.incarnation, epoch))
        }
        expect(await seenValues(link, topic)).toEqual(valuesOf(epoch))
      },
    )
  }
}

/** As `settled`, for whom the head knows as the holder: being fenced is then only being disturbed. */
async function settledByHolder(rig: SinkRig, committable: Committable): Promise<PromoteResult> {
  for (;;) {
    try {
      return await settled(rig, committable)
    } catch (error) {
      if (!isPawlError(error) || error.kind !== 'Fenced') throw error
    }
  }
}

test.skipIf(missing)('two that mend a commit at the same time show it once', async () => {
  const world = await prepared()
  const { rig, link, topic, disturbed } = world
  const twin = await rig.twin(disturbed)
  for (let epoch = 1; epoch <= 15; epoch++) {
    const [committable] = await rig.stage(epoch, rowsOf(epoch))
    await hang(world, committable, 'commit')
    await Promise.all([rig, twin].map((one) => settledByHolder(one, committable)))
    expect(await rig.sink.marker(0)).toEqual(markerOf(rig.incarnation, epoch))
  }
  expect(await seenValues(link, topic)).toEqual(valuesOf(15))
})

test.skipIf(missing)('stops at a commit whose mending the broker gave up, until a person decides', async () => {
  const world = await prepared()
  const { rig, disturbed } = world
  const timeoutMs = 400
  const [committable] = await rig.stage(1, rowsOf(1))
  await hang(world, committable, 'commit', timeoutMs)
  const twin = await rig.twin(disturbed)
  disturbed.disturb(async (request, act) => {
    if (request.apiName === 'EndTxn') throw new PawlError('BROKER_UNREACHABLE', 'the process is dead')
    return act()
  })
  await expect(twin.promote(committable)).rejects.toMatchObject({ kind: 'Retryable' })
  await sleep(3 * timeoutMs)
  await expect(rig.promote(committable)).rejects.toThrow(/^TRANSACTION_TORN.*lane 0 after epoch 0/)
  await expect(rig.promote(committable)).rejects.toMatchObject({ kind: 'Corrupt' })
  const base = markerOf(rig.incarnation, 0)
  expect(await rig.sink.reassign!(0, base, null)).toBeNull()
  expect(await rig.sink.reassign!(0, null, base)).toEqual(base)
  expect(await rig.promote(committable)).toEqual({ result: 'promoted' })
})
