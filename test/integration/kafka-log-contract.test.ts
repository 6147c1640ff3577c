import type { Producer } from 'kafkajs'
import { beforeAll, beforeEach, describe, test } from 'vitest'
import { kafka } from '../../lib/adapters/kafka/cluster.ts'
import type { LogAppender, LogSource } from '../../lib/ports/log.ts'
import { type ContractPlace, contractCases } from '../../lib/testing/contracts/contract.ts'
import { logContract } from '../../lib/testing/contracts/log.ts'
import type { LogControls, LogSubject } from '../../lib/testing/contracts/log-subject.ts'
import { missingTool, sharedBroker } from '../support/kafka.ts'
import { openSource, until } from '../support/kafka-source.ts'
import { asAdmin, deleteRecords, freshTopic, transactionalProducer } from '../support/kafka-topics.ts'

const missing = process.env.KAFKA_BROKERS ? null : missingTool()
let bootstrap = ''
beforeAll(async () => {
  if (missing === null) bootstrap = (await sharedBroker()).bootstrap
})
beforeEach(({ skip }) => {
  if (missing !== null) skip(missing)
})

/** A source and an appender that are closed together. */
async function client(topic: string): Promise<LogSource & LogAppender> {
  const source = await openSource({ bootstrap }, topic, { patienceMs: 2000 })
  const appender = await kafka({ brokers: bootstrap }).openAppender(topic)
  return {
    bounds: () => source.bounds(),
    resolve: (position) => source.resolve(position),
    read: (range) => source.read(range),
    append: (partition, records) => appender.append(partition, records),
    close: async () => {
      await source.close()
      await appender.close()
    },
  }
}

class KafkaPlace implements ContractPlace<LogSubject> {
  readonly #topic: string
  readonly #clients: LogSource[] = []
  #producer: Producer | null = null

  constructor(topic: string) {
    this.#topic = topic
  }

  async open(): Promise<LogSubject> {
    const log = await client(this.#topic)
    this.#clients.push(log)
    return { log, controls: this.#controls(log) }
  }

  async dispose(): Promise<void> {
    for (const open of this.#clients) await open.close()
    await this.#producer?.disconnect()
  }

  #controls(log: LogSource): LogControls {
    const topic = this.#topic
    const names = () => asAdmin({ bootstrap }, (admin) => admin.listTopics())
    const remove = async () => {
      await asAdmin({ bootstrap }, (admin) => admin.deleteTopics({ topics: [topic] }))
      await until(names, (found) => !found.includes(topic))
    }
    return {
      hole: (partition, offsets) => this.#hole(log, partition, offsets),
      loseBefore: (partition, offset) => deleteRecords({ bootstrap }, topic, partition, offset),
      remove,
      recreate: async () => {
        await remove()
        const topics = [{ topic, numPartitions: 3 }]
        await asAdmin({ bootstrap }, (admin) => admin.createTopics({ topics, waitForLeaders: true }))
      },
      grow: async (count) => {
        await asAdmin({ bootstrap }, (admin) => admin.createPartitions({ topicPartitions: [{ topic, count }] }))
        await until(
          () => log.bounds(),
          ({ partitions }) => partitions.length === count,
        )
      },
    }
  }

  /** At least two offsets: aborted records and the marker behind them. */
  async #hole(log: LogSource, partition: number, offsets: number): Promise<void> {
    this.#producer ??= await transactionalProducer({ bootstrap })
    const { end } = (await log.bounds()).partitions[partition]
    const taken = Math.max(offsets, 2)
    const transaction = await this.#producer.transaction()
    const messages = Array.from({ length: taken - 1 }, () => ({ value: 'aborted', partition }))
    await transaction.send({ topic: this.#topic, messages })
    await transaction.abort()
    await until(
      () => log.bounds(),
      ({ partitions }) => partitions[partition].end === end + BigInt(taken),
    )
  }
}

describe('a log: Kafka', () => {
  const fresh = async () =>
    new KafkaPlace(await freshTopic({ bootstrap }, 3, { 'max.message.bytes': '10000000', 'retention.ms': '-1' }))
  test.each(contractCases(logContract, { name: 'Kafka', fresh }))('$name', ({ run }) => run())
})
