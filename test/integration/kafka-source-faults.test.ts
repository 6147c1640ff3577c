import { execFile } from 'node:child_process'
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { batchLayout } from '../../lib/model/record-batch.ts'
import { encoded, rowsOfBatch } from '../model/record-batches.ts'
import { type Broker, missingTool, startBroker } from '../support/kafka.ts'
import { offsets, openSource, readAll, values } from '../support/kafka-source.ts'
import { freshTopic, send } from '../support/kafka-topics.ts'

let own: Broker
beforeAll(async () => {
  if (missingTool() === null) own = await startBroker({ secure: true })
})
afterAll(() => own?.remove())
beforeEach(({ skip }) => {
  const missing = missingTool()
  if (missing !== null) skip(missing)
})

test('goes on reading when the broker dies and comes back in the middle', async () => {
  const topic = await freshTopic(own)
  const count = 300
  const large = 'x'.repeat(1000)
  for (let i = 0; i < 10; i++)
    await send(
      own,
      topic,
      Array.from({ length: count }, (_, n) => ({ value: `${i * count + n} ${large}` })),
    )
  const log = await openSource(own, topic, { fetchBytesMax: 50_000, patienceMs: 60_000 })
  const seen: bigint[] = []
  let restarted: Promise<void> | null = null
  for await (const batch of log.read({ partition: 0, start: 0n, end: 3000n })) {
    for (const { offset, value } of rowsOfBatch(batch)) {
      expect(value).toBe(`${offset} ${large}`)
      seen.push(offset)
    }
    if (restarted === null) {
      await own.kill()
      restarted = own.restart()
    }
  }
  await restarted
  expect(seen).toEqual(Array.from({ length: 3000 }, (_, i) => BigInt(i)))
  await log.close()
})

test('case 38: offsets beyond 2^53 are exact from broker to record', async () => {
  const topic = await freshTopic(own)
  await own.stop()
  const directory = join(own.directory, 'logs', `${topic}-0`)
  for (const name of readdirSync(directory)) if (/^\d{20}\./.test(name)) rmSync(join(directory, name))
  rmSync(join(directory, 'leader-epoch-checkpoint'), { force: true })
  const base = 9007199254740993n
  const batch = encoded(
    ['a', 'b', 'c'].map((value) => ({ timestampMs: Date.now(), key: null, value })),
    { baseOffset: base },
  )
  batch.writeInt32BE(0, batchLayout.leaderEpoch)
  writeFileSync(join(directory, `${base.toString().padStart(20, '0')}.log`), batch)
  // Without the note of an orderly stop the broker builds its indexes again.
  rmSync(join(own.directory, 'logs', '.kafka_cleanshutdown'), { force: true })
  await own.restart()
  const log = await openSource(own, topic)
  const { partitions } = await log.bounds()
  expect(partitions).toEqual([{ partition: 0, start: 9007199254740993n, end: 9007199254740996n }])
  expect(offsets(await readAll(log))).toEqual(['9007199254740993', '9007199254740994', '9007199254740995'])
  expect(values(await readAll(log, { start: 9007199254740994n, end: 9007199254740995n }))).toEqual(['b'])
  await send(own, topic, [{ value: 'd' }])
  expect(offsets(await readAll(log, { start: 9007199254740996n, end: 9007199254740997n }))).toEqual([
    '9007199254740996',
  ])
  await log.publish?.('beyond', new Map([[0, 9007199254740995n]]))
  expect((await log.resolve({ at: 'group', group: 'beyond' })).get(0)).toBe(9007199254740995n)
  await log.close()
})

test('reads over SASL with PLAIN and SCRAM, and over mutual TLS', async () => {
  const topic = await freshTopic(own)
  await send(own, topic, [{ value: 'secret' }])
  const { ca, clientCert: cert, clientKey: key } = own.certificates!
  const ways = [
    ...(['plain', 'scram-sha-256', 'scram-sha-512'] as const).map((mechanism) => ({
      brokers: own.sasl,
      sasl: { mechanism, username: 'alice', password: async () => own.password },
    })),
    { brokers: own.tls, ssl: { ca, cert, key } },
  ]
  for (const way of ways) {
    const log = await openSource(own, topic, way)
    expect(values(await readAll(log))).toEqual(['secret'])
    await log.close()
  }
})

test('names refused credentials, soon and without showing them', async () => {
  const { ca, clientCert: cert, clientKey: key } = own.certificates!
  const password = 'not-the-password'
  const refused = [
    ...(['plain', 'scram-sha-256', 'scram-sha-512'] as const).map((mechanism) => ({
      brokers: own.sasl,
      sasl: { mechanism, username: 'alice', password },
    })),
    { brokers: own.tls, ssl: { ca } },
    { brokers: own.tls, ssl: { cert, key } },
  ]
  for (const way of refused) {
    const log = await openSource(own, 'any', way)
    const error = await log.bounds().catch((thrown: unknown) => thrown as Error)
    expect(error).toMatchObject({ code: 'AUTHENTICATION_FAILED' })
    expect(`${(error as Error).stack} ${JSON.stringify(error)}`).not.toContain(password)
    await log.close()
  }
})

test('says that it spoke TLS when the broker does not', async () => {
  const log = await openSource(own, 'any', { ssl: true, patienceMs: 100 })
  await expect(log.bounds()).rejects.toThrow(/BROKER_UNREACHABLE.*TLS/)
  await log.close()
})

test('reads without a word on the terminal, and lets the process end', async () => {
  const topic = await freshTopic(own)
  await send(own, topic, [{ value: 'x' }])
  const support = fileURLToPath(new URL('../support/kafka-source.ts', import.meta.url))
  const program = `
    const { openSource, readAll } = await import(${JSON.stringify(support)})
    const log = await openSource({ bootstrap: ${JSON.stringify(own.bootstrap)} }, ${JSON.stringify(topic)})
    console.log((await readAll(log)).length)
    await log.close()`
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
    timeout: 20_000,
  })
  expect({ stdout, stderr }).toEqual({ stdout: '1\n', stderr: '' })
})
