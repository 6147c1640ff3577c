/**
 * How fast records come out of Kafka: written as raw batches, read by range over loopback, and decoded from memory.
 *
 *     node --conditions=pawl-source bench/parts/kafka-read.ts [records] [bytes]
 *
 * Takes a broker from KAFKA_BROKERS or starts one. The count of what was read is verified. Never a timed test.
 */
import { securityOf } from '../../lib/adapters/kafka/auth.ts'
import { KafkaConnection } from '../../lib/adapters/kafka/connection.ts'
import { KafkaSource } from '../../lib/adapters/kafka/source.ts'
import { patchProducer, RecordBatchEncoder } from '../../lib/model/record-batch.ts'
import { decodeBatches } from '../../lib/model/record-decode.ts'
import { startBroker } from '../../test/support/kafka-broker.ts'
import { freshTopic, sendBatch } from '../../test/support/kafka-topics.ts'

const [records = 1_000_000, valueBytes = 100] = process.argv.slice(2).map(Number)
const given = process.env.KAFKA_BROKERS
const own = given ? null : await startBroker()
const bootstrap = given ?? own!.bootstrap
const connection = new KafkaConnection({ brokers: [bootstrap], clientId: 'bench', security: securityOf({}) })

function report(name: string, count: number, startedAt: number, cpu: NodeJS.CpuUsage): void {
  const ms = performance.now() - startedAt
  const { user, system } = process.cpuUsage(cpu)
  const perSecond = Math.round(count / (ms / 1000)).toLocaleString('en')
  const perCpuSecond = Math.round(count / ((user + system) / 1e6)).toLocaleString('en')
  process.stdout.write(`${name.padEnd(28)} ${perSecond.padStart(12)} records/s ${perCpuSecond.padStart(12)} /CPU-s\n`)
}

/** Sealed batches of about 64 KB, as a busy producer sends them. */
function encodeAll(): Buffer[] {
  const encoder = new RecordBatchEncoder()
  const batches: Buffer[] = []
  const value = 'v'.repeat(valueBytes)
  for (let i = 0; i < records; i++) {
    encoder.add(1_700_000_000_000 + i, `k${i % 1000}`, value)
    if (encoder.bytes < 64 * 1024 && i < records - 1) continue
    batches.push(encoder.seal())
    encoder.reset()
  }
  return batches
}

try {
  let batches: Buffer[] = []
  for (let round = 0; round < 3; round++) {
    const [at, cpu] = [performance.now(), process.cpuUsage()]
    batches = encodeAll()
    report('encode', records, at, cpu)
  }
  const [patchAt, patchCpu] = [performance.now(), process.cpuUsage()]
  for (const batch of batches) patchProducer(Buffer.from(batch), 1n, 0, 0)
  report('name the producer', records, patchAt, patchCpu)
  for (let round = 0; round < 3; round++) {
    const [at, cpu] = [performance.now(), process.cpuUsage()]
    let count = 0
    for (const batch of batches)
      for (const rows of decodeBatches(batch, { partition: 0, start: 0n, end: 2n ** 40n }).batches) count += rows.count
    report('decode from memory', count, at, cpu)
  }
  const topic = await freshTopic({ bootstrap })
  for (const batch of batches) await sendBatch(connection, topic, batch)
  const source = new KafkaSource(connection, { topic, isolation: 'read_committed' })
  const { end } = (await source.bounds()).partitions[0]
  for (let round = 0; round < 5; round++) {
    const [at, cpu] = [performance.now(), process.cpuUsage()]
    let count = 0
    for await (const rows of source.read({ partition: 0, start: 0n, end })) count += rows.count
    if (count !== records) throw new Error(`${count} records read, not ${records}`)
    report('read over loopback', count, at, cpu)
  }
} finally {
  await connection.close()
  await own?.remove()
}
