import { Kafka, logLevel } from 'kafkajs'
import { expect } from 'vitest'
import { kafkaTest, missingTool, startBroker } from '../support/kafka.ts'

kafkaTest('the shared broker answers', async ({ broker }) => {
  const admin = new Kafka({ brokers: [broker.bootstrap], logLevel: logLevel.NOTHING }).admin()
  await admin.connect()
  expect((await admin.describeCluster()).brokers).toHaveLength(1)
  await admin.disconnect()
})

kafkaTest('a broker of its own comes back with its data after a kill', async ({ skip }) => {
  const missing = missingTool()
  if (missing !== null) skip(missing)
  const broker = await startBroker({ secure: true })
  try {
    const admin = new Kafka({ brokers: [broker.bootstrap], logLevel: logLevel.NOTHING }).admin()
    await admin.connect()
    await admin.createTopics({ topics: [{ topic: 'kept' }] })
    await admin.disconnect()
    await broker.kill()
    await broker.restart()
    const sasl = { mechanism: 'scram-sha-512' as const, username: 'alice', password: broker.password }
    const again = new Kafka({ brokers: [broker.sasl], sasl, logLevel: logLevel.NOTHING }).admin()
    await again.connect()
    expect(await again.listTopics()).toContain('kept')
    await again.disconnect()
  } finally {
    await broker.remove()
  }
})
