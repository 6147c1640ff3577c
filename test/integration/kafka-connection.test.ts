import { createServer, connect as dial } from 'node:net'
import { afterEach, expect } from 'vitest'
import { securityOf } from '../../lib/adapters/kafka/auth.ts'
import { KafkaConnection } from '../../lib/adapters/kafka/connection.ts'
import { metadata } from '../../lib/adapters/kafka/metadata.ts'
import { kafkaTest as test } from '../support/kafka.ts'
import { freshTopic, kafkaClient } from '../support/kafka-topics.ts'

const open: KafkaConnection[] = []
afterEach(async () => {
  for (const connection of open.splice(0)) await connection.close()
})

function connect(brokers: readonly string[]): KafkaConnection {
  const connection = new KafkaConnection({ brokers, clientId: 'test', security: securityOf({}), connectTimeoutMs: 500 })
  open.push(connection)
  return connection
}

test('tells topics by id and leaders, and leaves out what does not exist', async ({ broker }) => {
  const topic = await freshTopic(broker, 3)
  const topics = await connect([broker.bootstrap]).topics([topic, 'no-such-topic'])
  expect([...topics.keys()]).toEqual([topic])
  expect(topics.get(topic)?.leaders).toEqual([1, 1, 1])
  expect(topics.get(topic)?.topicId).toMatch(/^[0-9a-f]{32}$/)
})

test('gives a topic that was created again another id', async ({ broker }) => {
  const topic = await freshTopic(broker)
  const connection = connect([broker.bootstrap])
  const before = (await connection.topics([topic])).get(topic)?.topicId
  const admin = kafkaClient(broker).admin()
  await admin.connect()
  await admin.deleteTopics({ topics: [topic] })
  while ((await connection.topics([topic])).size > 0);
  await admin.createTopics({ topics: [{ topic, numPartitions: 1 }], waitForLeaders: true })
  await admin.disconnect()
  expect((await connection.topics([topic])).get(topic)?.topicId).not.toBe(before)
})

test('goes on to the next address when one does not answer', async ({ broker }) => {
  const connection = connect(['127.0.0.1:1', broker.bootstrap])
  for (let i = 0; i < 3; i++) expect((await connection.describe([])).brokers).toHaveLength(1)
})

test('opens one socket however many requests come first', async ({ broker }) => {
  let sockets = 0
  const [host, port] = broker.bootstrap.split(':')
  const proxy = createServer((incoming) => {
    sockets++
    const outgoing = incoming.pipe(dial(Number(port), host))
    outgoing.pipe(incoming)
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const address = proxy.address() as { port: number }
  const connection = connect([`127.0.0.1:${address.port}`])
  await Promise.all(Array.from({ length: 20 }, () => connection.describe([])))
  expect(sockets).toBe(1)
  proxy.close()
})

test('names the brokers when none answers', async () => {
  await expect(connect(['127.0.0.1:1']).topics(['x'])).rejects.toThrow(/BROKER_UNREACHABLE.*127\.0\.0\.1:1/)
})

test('makes a lost answer an unknown result, and connects anew afterwards', async ({ broker }) => {
  const [host, port] = broker.bootstrap.split(':')
  let swallow = false
  const proxy = createServer((incoming) => {
    const outgoing = dial(Number(port), host)
    outgoing.on('error', () => incoming.destroy())
    incoming.on('error', () => outgoing.destroy())
    incoming.on('data', (chunk) => (swallow ? incoming.destroy() : outgoing.write(chunk)))
    outgoing.pipe(incoming)
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const connection = connect([`127.0.0.1:${(proxy.address() as { port: number }).port}`])
  const request = metadata([])
  await connection.send('any', request)
  swallow = true
  await expect(connection.send('any', request)).rejects.toThrow(/UNKNOWN_RESULT.*Metadata/)
  swallow = false
  expect((await connection.send('any', request)).brokers).toHaveLength(1)
  proxy.close()
})
